"""Studies behind the figures of the docs; each is a script of a few minutes."""
