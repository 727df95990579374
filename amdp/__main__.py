"""`python -m amdp`: the command line."""

from amdp.cli import app

app(prog_name="amdp")
