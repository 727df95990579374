"""The compiled searches over stationary policies.

`chains` evaluates policies and changes them state by state; `couplings` says how fast their laws settle; `bounds`
proves what no policy of a set undercuts; `lanes` tries all policies of a small set side by side; `trees` is branch and
bound, of which threads work on `shares`; `tables` keeps the laws of all policies; `cycles` searches the paths of a
deterministic kernel. `state` names the arrays that they read and write: it is plain Python, and the others are imported
at first use.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amdp.kernels.search import bounds, chains, couplings, cycles, lanes, shares, tables, trees

__all__ = ["bounds", "chains", "couplings", "cycles", "lanes", "shares", "tables", "trees"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
