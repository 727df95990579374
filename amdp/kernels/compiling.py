"""How kernels are compiled, and where their machine code is kept.

Machine code holds the code of everything that it calls, in whichever file that stands. It is therefore kept under a
digest of all sources of this package and of the versions that compile them: a change of any kernel leads to a new
folder, the same sources lead to the old one, wherever the tree lies. The folders of other digests are removed when a
new one is made, but for the few that were used last.

The folder lies in `NUMBA_CACHE_DIR` if that is set, otherwise in `__pycache__` beside the sources, otherwise, where
that cannot be written, in the user's cache of numba. Without sources to read (a zip file, a frozen program) nothing
is kept.
"""

import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from uuid import uuid4

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

Kernel = Callable[..., Any]
Decorator = Callable[[Kernel], Any]

PARTS_TRIED_WITH = "0.68."  # versions of numba

# What the compiler may do to floating-point arithmetic.
EXACT: frozenset[str] = frozenset()  # nothing: every operation as it is written
FUSED = frozenset({"nsz", "contract"})  # a product and a sum rounded once; a sum is still taken in the order written
ANY_ORDER = FUSED | {"reassoc"}  # sums in any order
FINITE_ANY_ORDER = ANY_ORDER | {"nnan"}  # the same, and no number is NaN

FOLDERS_KEPT = 8  # folders: of branches, Python versions and environments that share a place


# --- the decorators ---------------------------------------------------------------------------------------------------


def entry(arithmetic: frozenset[str] = EXACT, *, nogil: bool = False) -> Decorator:
    """Compile a function that Python or other kernels call, and keep its machine code; `nogil` lets threads run."""
    return _compiler(arithmetic, kept=True, by_constants=False, nogil=nogil)


def merged(arithmetic: frozenset[str] = EXACT) -> Decorator:
    """The same for a small function: its machine code is merged into that of its callers."""
    return _compiler(arithmetic, kept=True, forceinline=True)


def inner(arithmetic: frozenset[str] = EXACT) -> Decorator:
    """Compile a function that only kernels call, as a part of theirs: see `amdp.kernels.parts`."""
    return _compiler(arithmetic, kept=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_as_part())


def inlined(arithmetic: frozenset[str] = EXACT) -> Decorator:
    """The same, written out in its callers before they are typed: it hands over large tuples at no cost."""
    return _compiler(arithmetic, kept=False, inline="always")


def _as_part() -> dict[str, Any]:
    """How numba compiles a part; with a version whose inner workings were not tried, as any other function."""
    if not numba.__version__.startswith(PARTS_TRIED_WITH):
        return {}
    from amdp.kernels.parts import PartCompiler

    return {"pipeline_class": PartCompiler}


def _compiler(arithmetic: frozenset[str], *, kept: bool, by_constants: bool = True, **options: Any) -> Decorator:
    compiler = numba.njit(error_model="numpy", fastmath=set(arithmetic), **options)

    def compiled(function: Kernel) -> Any:
        dispatcher = compiler(function)
        if not by_constants:
            _forget_constants(dispatcher)
        path = folder() if kept and not config.DISABLE_JIT else None
        if path is not None:
            dispatcher._cache = KernelCache(function, path)  # `enable_caching` would put numba's own cache there
        return dispatcher

    return compiled


def _forget_constants(dispatcher: Any) -> None:
    """Take a constant in the call of another kernel for any number of its type.

    Numba would compile the function once more for each constant, also for the first value of a number that changes.
    What is merged into its callers or is a part of them gains by that: loops over a known number are unrolled.
    """
    resolve, unliteral = dispatcher.get_call_template, numba.types.unliteral

    def resolved(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        return resolve([unliteral(arg) for arg in args], {name: unliteral(arg) for name, arg in kws.items()})

    dispatcher.get_call_template = resolved


# --- what machine code depends on -------------------------------------------------------------------------------------


def _marks() -> list[tuple[int, int]]:
    """Whatever changes when a source is written."""
    return [(stat.st_mtime_ns, stat.st_size) for stat in (path.stat() for path in _SOURCES)]


def _digest() -> str:
    """Of the sources and of what compiles them."""
    versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__)
    parts = [(path.relative_to(_HERE).as_posix(), sha256(path.read_bytes()).hexdigest()) for path in _SOURCES]
    return sha256(repr((versions, parts)).encode()).hexdigest()[:24]


_HERE = Path(__file__).parent
_SOURCES = sorted(_HERE.rglob("*.py"))
_MARKS, _DIGEST = _marks(), _digest()  # now: the modules that are imported next are read from the same files


def _as_imported() -> bool:
    """Whether the sources were left alone since: if not, nobody knows which of them a module was read from."""
    try:
        return _marks() == _MARKS
    except OSError:
        return False


# --- where it is kept -------------------------------------------------------------------------------------------------


@cache
def folder() -> Path | None:
    """The folder of this digest in the first place that can be written; None if there is none, or no source."""
    for place in _places() if _SOURCES else ():
        chosen = place / f"amdp-kernels-{_DIGEST}"
        with suppress(OSError):
            if not chosen.is_dir():
                _remove_oldest(place)
            _open(chosen)
            return chosen
    return None


def _places() -> Iterator[Path]:
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
    yield _HERE / "__pycache__"
    yield Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)


def _open(chosen: Path) -> None:
    """Make the folder, see that it can be written, and mark it as the one used last."""
    chosen.mkdir(parents=True, exist_ok=True)
    TemporaryFile(dir=chosen).close()
    os.utime(chosen)


def _remove_oldest(place: Path) -> None:
    """Leave room for one more folder; whoever still uses a removed one compiles again."""
    with suppress(OSError):
        used = sorted(place.glob("amdp-kernels-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in used[FOLDERS_KEPT - 1 :]:
            shutil.rmtree(old, ignore_errors=True)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The machine code of one kernel, a file for each signature and processor.

    Numba numbers the files of a kernel and lists them in an index, which two processes that compile at the same time
    can write in such an order that it names the wrong file. Here the name of a file follows from what is in it; it is
    written under another name and then put into place.
    """

    def __init__(self, function: Kernel, path: Path) -> None:
        self._py_func, self._path, self._cache_path = function, path, str(path)
        self._name = f"{function.__module__}.{function.__qualname__}"
        self.enable()

    def flush(self) -> None:
        for path in self._path.glob(f"{self._name}-*.nbc"):
            path.unlink(missing_ok=True)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        key = self._index_key(sig, target_context.codegen())
        try:
            saved_key, data = pickle.loads(self._file(key).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        usable = saved_key == key and self._enabled and _as_imported()
        return CompileResult._rebuild(target_context, *data) if usable else None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._enabled or not _as_imported():
            return
        assert not data.library.has_dynamic_globals, f"{self._name} reads a global whose address changes"
        key = self._index_key(sig, data.codegen)
        target = self._file(key)
        written = target.with_suffix(f".{uuid4().hex[:16]}.tmp")
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            written.write_bytes(dumps((key, data._reduce())))
            written.replace(target)
        except OSError:  # the disk is full, or the file is being read where that forbids to replace it
            with suppress(OSError):
                written.unlink()

    def _file(self, key: Any) -> Path:
        return self._path / f"{self._name}-{sha256(repr(key).encode()).hexdigest()[:24]}.nbc"
