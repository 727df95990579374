"""Follow the perturbed leader."""
