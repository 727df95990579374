"""The commands of `amdp`, a file each; `amdp/cli.py` lists them, and imports the one that is called.

`screen.py` is what they share: printing, errors and Ctrl-C, `key=value`, options; `listing.py` prints names under
headings, `loading.py` tells loading from working, `completion.py` offers names to the shell; `ladder_rates.py` is
shared by `table` and `rates`.

A new command is a function with typer annotations and an `Example:` in its docstring, in a file of its own, and its
name in `amdp/cli.py`. It works in a terminal of 80 columns, and has `--json` if programs may want its output.
"""
