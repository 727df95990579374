"""Learners: each turns one distribution over policies into the next."""
