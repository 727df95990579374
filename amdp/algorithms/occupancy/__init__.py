"""Learners over occupancy measures: mirror descent, the regularized leader, losses that move, and recipes by name."""
