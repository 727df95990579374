"""Our products on one thread of the linear algebra library, and the user's number of threads afterwards.

Our matrices are small: a second thread gains little on a quiet machine, and on a busy one the threads wait for each
other. Compiled kernels multiply by `amdp.kernels.products`; this is for products of numpy and scipy.

Held is the OpenBLAS of numpy and of scipy, from version 0.3.27 on and with threads of its own, as in their wheels.
Not held are MKL (whose number of threads is that of one thread of Python, and would need other accounts than those
below), Accelerate (which has no call for it), BLIS, and OpenBLAS on OpenMP: products run there as they would without
this module. `OMP_NUM_THREADS=1`, or `VECLIB_MAXIMUM_THREADS=1` for Accelerate, holds these for the whole process.

The number of threads of OpenBLAS belongs to the process. Until it is put back, a product that another thread of Python
starts runs on one thread too: its result is right, and it may be slower.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from amdp.kernels import blas


class _Hold(AbstractContextManager[None]):
    """Of those who hold at the same time, the first sets the number of threads, and the last puts it back."""

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0
        self._before: list[tuple[blas.Setter, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._before = [(setter, setter(1)) for setter in _setters()]
            self._holders += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                for setter, before in self._before:
                    found = setter(before)
                    if found != 1:  # someone else has set it meanwhile
                        setter(found)


_HOLD, _NOTHING = _Hold(), nullcontext()


def one_thread(work: int, large: int = blas.LARGE) -> AbstractContextManager[None]:
    """Hold the library to one thread for calls of so many multiplications; if that is not `large`, it is by itself."""
    return _NOTHING if work < large else _HOLD


def multiply(left: Any, right: Any) -> Any:
    """`left @ right` on one thread, each a matrix or a vector."""
    rows = left.shape[0] if left.ndim > 1 else 1
    columns = right.shape[1] if right.ndim > 1 else 1
    with one_thread(left.size * columns, blas.LARGE if 1 in (rows, columns) else blas.LARGE_OF_MATRICES):
        return left @ right


@cache
def _setters() -> tuple[blas.Setter, ...]:
    """Those of numpy and scipy, each library once."""
    found = [setter for setter in map(blas.setter, (blas.NUMPY, blas.SCIPY)) if setter is not None]
    return tuple({blas.address(setter): setter for setter in found}.values())
