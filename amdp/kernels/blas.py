"""The linear algebra library: when it would take more than one thread, and the call that says how many.

numpy and scipy bring one OpenBLAS each, or share one. `threads` says which libraries are looked for.
"""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

NUMPY, SCIPY = "numpy._core._multiarray_umath", "scipy.linalg.cython_blas"  # modules that are linked to theirs

# Multiplications from which on OpenBLAS splits a product among threads. Its other calls are split from more on.
LARGE = 9216  # of a matrix and a vector
LARGE_OF_MATRICES = 262_145

_OWN_THREADS = 1  # what OpenBLAS says of itself if it makes its own threads

Setter = Any  # a function `int -> int`: sets the number of threads, and returns the one before


def setter(module: str) -> Setter | None:
    """That of the library which a module multiplies with; None if it is another than OpenBLAS."""
    for library in _libraries(Path(str(import_module(module).__file__))):
        kind = _symbol(library, "openblas_get_parallel")
        if kind is None or kind() != _OWN_THREADS:
            continue
        call = _symbol(library, "openblas_set_num_threads_local")
        if call is not None:
            call.argtypes, call.restype = [ctypes.c_int], ctypes.c_int
            return call
        get, put = (_symbol(library, f"openblas_{verb}_num_threads") for verb in ("get", "set"))
        if get is not None and put is not None:  # the OpenBLAS of numpy 2.5 has no call that does both
            return GetAndSet(get, put)
    return None


class GetAndSet:
    """A setter made of two C functions."""

    def __init__(self, get: Any, put: Any) -> None:
        self._get, self.c_function = get, put

    def __call__(self, count: int) -> int:
        before = int(self._get())
        self.c_function(count)
        return before


def address(function: Setter) -> int:
    """The memory address of a C function, or of the one that sets."""
    called: Any = function.c_function if isinstance(function, GetAndSet) else function
    return ctypes.cast(called, ctypes.c_void_p).value or 0


def _libraries(extension: Path) -> Iterator[ctypes.PyDLL]:
    """The extension, which finds the symbols of what it is linked to; on Windows that itself, in the wheel's folder."""
    packages = next(folder for folder in extension.parents if not (folder / "__init__.py").exists())
    beside = packages / f"{extension.relative_to(packages).parts[0]}.libs"
    for path in (extension, *sorted(beside.glob("*openblas*.dll"))):
        with suppress(OSError):
            yield ctypes.PyDLL(str(path))


def _symbol(library: ctypes.PyDLL, name: str) -> Any:
    """By its plain name, or as the wheels of numpy and scipy spell it."""
    for spelled in (name, f"scipy_{name}", f"scipy_{name}64_"):
        if hasattr(library, spelled):
            return getattr(library, spelled)
    return None
