"""Oracles over Markov policies: one rule for each step."""
