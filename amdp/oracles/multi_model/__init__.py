"""Oracles for `MultiModel`, one policy for several models: every policy, branch and bound, a mixed-integer program.

They are reached by the names `enumeration`, `branch-and-bound`, `milp` and `auto`, which hand such a domain over to
the searches here; `planning` makes plans of what these find.
"""
