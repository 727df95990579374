"""The compiled inner loops: plain functions on arrays, one file or folder a family.

A family is imported at first use, and numba with it, so that `import amdp` stays quick.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amdp.kernels import entropy as entropy
    from amdp.kernels import noise as noise
    from amdp.kernels import paths as paths
    from amdp.kernels import reach as reach
    from amdp.kernels import scores as scores
    from amdp.kernels import search as search
    from amdp.kernels import soft as soft
    from amdp.kernels import sweeps as sweeps
    from amdp.kernels import switches as switches
    from amdp.kernels import trials as trials
    from amdp.kernels import visits as visits
    from amdp.kernels import walks as walks


def __getattr__(name: str) -> ModuleType:
    if name not in (
        "entropy",
        "noise",
        "paths",
        "reach",
        "scores",
        "search",
        "soft",
        "sweeps",
        "switches",
        "trials",
        "visits",
        "walks",
    ):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
