"""Named arrays in an `.npz` file, read as if anybody had written it.

What a member promises is compared with what it has before anything is made of it: a header of a few bytes may promise
any shape, and a few kilobytes may unpack to any number of bytes. Pickles are never loaded.
"""

import zlib
from collections.abc import Callable, Iterable
from math import prod
from os import PathLike
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import require_room
from amdp.errors import AmdpError, InvalidInput, SpecError
from amdp.regular_files import open_binary

UNREADABLE = (  # what a file may raise that is damaged, encrypted, packed in an unknown way, or made to be a nuisance
    OSError,
    ValueError,
    EOFError,
    RuntimeError,
    MemoryError,
    BadZipFile,
    zlib.error,
)
HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read(path: str | PathLike[str], chosen: Callable[[list[str]], Iterable[str]]) -> dict[str, Any]:
    """The arrays of a file by name, a number or a text alone where an array has no axes.

    `chosen` is told all names, and says which of them are read; it may refuse names.
    """
    file = Path(path)
    try:
        with open_binary(file) as stream:
            if stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise SpecError("holds a single array; save named arrays with numpy.savez", str(file))
            with ZipFile(stream) as archive:
                members = _members(file, archive)
                return {name: _array(file, name, archive, members[name]) for name in chosen(list(members))}
    except AmdpError:
        raise
    except UNREADABLE as problem:
        raise SpecError(f"cannot be read: {problem}", str(file)) from problem


def _members(file: Path, archive: ZipFile) -> dict[str, ZipInfo]:
    """By name; of two with one name, programs differ in which they read."""
    found: dict[str, ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in found:
            raise SpecError("is in the archive twice", f"{file}: {name}")
        found[name] = member
    return found


def _array(file: Path, name: str, archive: ZipFile, member: ZipInfo) -> Any:
    try:
        with archive.open(member) as stream:
            _require_kept(stream, member.file_size)
        with archive.open(member) as stream:
            found: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    except (InvalidInput, *UNREADABLE) as problem:
        reason = str(problem) if isinstance(problem, InvalidInput) else f"cannot be read: {problem}"
        raise SpecError(reason, f"{file}: {name}") from problem
    return found if found.ndim else found.item()


def _require_kept(stream: IO[bytes], size: int) -> None:
    """Refuse a member of `size` bytes, by its header, if it does not keep what that promises, or there is no room."""
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise InvalidInput(f"has a header of version {version}; known are {', '.join(map(str, HEADERS))}")
    shape, _, dtype = HEADERS[version](stream)
    if dtype.hasobject:
        raise InvalidInput("holds Python objects (a pickle), which are never loaded")
    promised, there = prod(shape) * dtype.itemsize, size - stream.tell()
    if promised != there:
        raise InvalidInput(f"promises {promised:,} bytes, shape {shape} of {dtype}, and holds {there:,}")
    require_room("an array", shape, itemsize=dtype.itemsize)
