"""Loss estimates from bandit feedback: geometric resampling and importance weighting."""
