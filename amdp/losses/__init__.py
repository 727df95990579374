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
from amdp.losses.catalog import named
from amdp.losses.readers import from_columns, load
from amdp.losses.walks import multi_scale_walk, wandering

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
