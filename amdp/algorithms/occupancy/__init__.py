"""Learners over occupancy measures: mirror descent, the regularized leader, and recipes by name."""
