"""A clock that compiled code can read."""

import ctypes
import time

import llvmlite.binding
from numba import cfunc, types

from amdp.kernels.compiling import entry

_READ = types.int32(types.int32, types.uintp)
_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", -1)  # not on every platform: then no time ever passes


def _address() -> int:
    """Of the call of the C library; without one, of a call that does nothing."""
    if _MONOTONIC < 0:
        return cfunc(_READ)(lambda clock, space: 0).address  # type: ignore[no-any-return]
    read = ctypes.CDLL(None).clock_gettime
    return ctypes.cast(read, ctypes.c_void_p).value or 0


# A symbol, not a pointer: machine code that is kept on disk finds it anew in each process.
llvmlite.binding.add_symbol("amdp_clock_gettime", _address())
_clock_gettime = types.ExternalFunction("amdp_clock_gettime", _READ)


@entry()
def nanoseconds(space):
    """The time; `space` holds two whole numbers, zero at first."""
    _clock_gettime(_MONOTONIC, space.ctypes.data)
    return space[0] * 1_000_000_000 + space[1]
