"""Follow the perturbed leader: the learner, its noise, its delay-adapted variant, and recipes by name."""
