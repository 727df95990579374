"""Loss estimates from feedback: resampling, importance weighting, full information, or the total of an episode."""
