"""Files that somebody names, opened only if they are regular files of a size that fits into memory.

A pipe, a socket or a device behind a known suffix (`world.npz -> /dev/zero`) never ends, or never begins. All refusals
are `OSError`, as those of the system are, so that a reader reports both in the same way.
"""

import io
import os
import stat
from os import PathLike
from pathlib import Path

from amdp import arrays

TEXT_EXPANSION = 4  # numbers that are read from text take several times the bytes of the text
# To open a pipe would wait for somebody who writes. On Windows only `O_BINARY` exists: without it ends of lines change.
READ_WITHOUT_WAITING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def open_binary(path: str | PathLike[str], largest: int | None = None) -> io.BufferedReader:
    """A stream of the bytes of a regular file; at most `largest` bytes, by default as many as the machine's memory."""
    # Looked at before it is opened, since opening a device may already act on it, and after, since another file may
    # have taken its place.
    _require_regular(Path(path).stat(), largest)
    descriptor = os.open(path, READ_WITHOUT_WAITING)
    try:
        _require_regular(os.fstat(descriptor), largest)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def open_text(path: str | PathLike[str], largest: int | None = None, newline: str | None = None) -> io.TextIOWrapper:
    """A stream of UTF-8 text, with or without a byte order mark; at most `largest` bytes, by default of memory / 4."""
    stream = open_binary(path, arrays.memory() // TEXT_EXPANSION if largest is None else largest)
    return io.TextIOWrapper(stream, encoding="utf-8-sig", newline=newline)


def read_bytes(path: str | PathLike[str], largest: int | None = None) -> bytes:
    """The bytes of a regular file, see `open_binary`."""
    with open_binary(path, largest) as stream:
        return stream.read()


def read_text(path: str | PathLike[str], largest: int | None = None) -> str:
    """The text of a regular file, see `open_text`."""
    with open_text(path, largest) as stream:
        return stream.read()


def _require_regular(status: os.stat_result, largest: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "of an unknown kind")
        raise OSError(f"it is {kind}; expected a regular file")
    most = arrays.memory() if largest is None else largest
    if status.st_size > most:
        raise OSError(f"it holds {status.st_size:,} bytes; at most {most:,} are read")
