"""Losses: sequences that an oblivious adversary fixes before the game, and the adversaries that make them.

`FixedLosses(array)` holds losses `[k, h, s, a]`, `load` and `from_columns` read recorded ones, and `named` finds an
adversary by short name. A new adversary is a function in `adversaries` that returns a `LossSequence`; an entry
in `by_name` gives it a short name, for specs and the command line.
"""

from amdp.losses.adversaries import (
    bernoulli,
    beta,
    congestion,
    corrupted,
    corrupted_at,
    repeated,
    seasonal,
    sinusoid,
    spikes,
    swap,
    switching,
    uniform,
)
from amdp.losses.base import CalledLosses, CheckedLosses, FixedLosses, GeneratedLosses, LossSequence
from amdp.losses.by_name import named
from amdp.losses.random_walks import multi_scale_walk, wandering
from amdp.losses.readers import from_columns, load

__all__ = [
    "CalledLosses",
    "CheckedLosses",
    "FixedLosses",
    "GeneratedLosses",
    "LossSequence",
    "bernoulli",
    "beta",
    "congestion",
    "corrupted",
    "corrupted_at",
    "from_columns",
    "load",
    "multi_scale_walk",
    "named",
    "repeated",
    "seasonal",
    "sinusoid",
    "spikes",
    "swap",
    "switching",
    "uniform",
    "wandering",
]
