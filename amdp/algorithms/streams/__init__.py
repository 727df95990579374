"""Learners for an infinite horizon, played as one stream of steps: in epochs, or step by step."""
