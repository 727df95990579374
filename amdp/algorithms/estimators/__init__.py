"""Loss estimates from feedback: geometric resampling, importance weighting, or full information."""
