"""Policy optimization: exponential weights in each step and state, critics, bounds, and recipes by name."""
