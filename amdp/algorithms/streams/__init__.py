"""Learners for infinite-horizon games, played as one unbroken stream of steps."""
