"""The compiled inner loops: plain functions on arrays, one file or folder a family.

A family is imported at first use, and numba with it, so that `import amdp` stays quick.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amdp.kernels import (
        boxes,
        entropy,
        episodes,
        ergodic,
        hedge,
        hedge_episodes,
        leaders,
        measures,
        meetings,
        noise,
        paths,
        philox,
        policies,
        policy_episodes,
        reach,
        regularized,
        search,
        soft,
        sweeps,
        switches,
        trials,
        walks,
    )

__all__ = [
    "boxes",
    "entropy",
    "episodes",
    "ergodic",
    "hedge",
    "hedge_episodes",
    "leaders",
    "measures",
    "meetings",
    "noise",
    "paths",
    "philox",
    "policies",
    "policy_episodes",
    "reach",
    "regularized",
    "search",
    "soft",
    "sweeps",
    "switches",
    "trials",
    "walks",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
