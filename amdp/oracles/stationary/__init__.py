"""Oracles over stationary policies: one rule for all steps."""
