"""Named arrays of an `.npz` file that is not trusted.

The header of a member is compared with its size before an array is made: a header of a few bytes may declare any
shape, and a few kilobytes may unpack to any number of bytes. Pickles are never loaded.
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

    `chosen` maps all names in the file to those that are read; it may refuse names.
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
    """The members by name; a name that stands twice is refused, since programs differ in which one they read."""
    members: dict[str, ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise SpecError("is in the archive twice", f"{file}: {name}")
        members[name] = member
    return members


def _array(file: Path, name: str, archive: ZipFile, member: ZipInfo) -> Any:
    try:
        with archive.open(member) as stream:
            _require_header_matches(stream, member.file_size)
        with archive.open(member) as stream:
            array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    except (InvalidInput, *UNREADABLE) as problem:
        reason = str(problem) if isinstance(problem, InvalidInput) else f"cannot be read: {problem}"
        raise SpecError(reason, f"{file}: {name}") from problem
    return array if array.ndim else array.item()


def _require_header_matches(stream: IO[bytes], size: int) -> None:
    """Refuse a member of `size` bytes whose header declares another size, Python objects, or more than the memory."""
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
