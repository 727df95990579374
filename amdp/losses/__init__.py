"""Losses: sequences that an adversary fixed in advance, and the adversaries that make one."""

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
