"""Sizes that compiled code and those who call it share.

They are part of the machine code, so they stand among the sources that it is kept under: see `compiling`.
"""

LANES = 64  # generators that `noise` runs side by side
