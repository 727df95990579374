"""Policy optimization: exponential weights in each state."""
