"""Runs on disk: one file each, written whole or not at all, and claims that let several runners share a folder.

FOLDER/spec.toml          what was asked for
FOLDER/plan.json          what that meant, for reports
FOLDER/runs/ab/ID.json    a record
FOLDER/runs/ab/ID.npz     the state of a long run under way, or of one that was killed
FOLDER/claims             an empty file; the runs that a living runner works on are locked bytes of it
"""

import os
import re
import secrets
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EAGAIN
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from amdp.errors import InvalidInput
from amdp.experiments.record import Record
from amdp.regular_files import read_bytes

# Not on Windows: without claims two runners may play a run twice; its result is the same.
fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None

ID = re.compile(r"[0-9a-f]{32}")
NOBODY = "0" * 32  # instead of a run: the claim of who writes the spec
BUSY = (EACCES, EAGAIN)
UNFINISHED = ".npz"
HEX_DIGITS = 15  # of an id that choose its byte: an offset in a file has 63 bits


class Store:
    """The runs of a folder. `broken` names the files that were met there and are no sound records."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.spec, self.plan = self.folder / "spec.toml", self.folder / "plan.json"
        self.broken: dict[Path, str] = {}
        self._claims: int | None = None

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up all claims."""
        if self._claims is not None:
            os.close(self._claims)
        self._claims = None

    def file(self, run: str) -> Path:
        """Where a run's record is or will be."""
        return self.folder / "runs" / run[:2] / f"{run}.json"

    def unfinished(self, run: str) -> Path:
        """Where the state of a long run under way is kept."""
        return self.file(run).with_suffix(UNFINISHED)

    def prepare(self, spec: str, plan: bytes | None = None) -> bool:
        """Make the folder, keep the spec and its plan, and clear away what killed runners left half written.

        Returns whether another spec was there.
        """
        other = False
        with _clear(self.spec):
            self.folder.mkdir(parents=True, exist_ok=True)
        if self.claim(NOBODY):  # else another runner is here at this moment
            for left in (*self.folder.glob("spec.*.part"), *self.folder.glob("plan.*.part")):
                left.unlink(missing_ok=True)
            other = _content(self.spec) not in (None, spec.encode())
            for file, content in ((self.spec, spec.encode()), (self.plan, plan)):
                if content is not None and _content(file) != content:
                    write_whole(file, content)
            self.release(NOBODY)
        for left in self.folder.glob("runs/*/*.part"):
            run = left.name.partition(".")[0]
            if ID.fullmatch(run) and self.claim(run):
                left.unlink(missing_ok=True)
                self.release(run)
        for left in self.folder.glob(f"runs/*/*{UNFINISHED}"):
            if ID.fullmatch(left.stem) and self.file(left.stem).exists():
                left.unlink(missing_ok=True)
        return other

    def write(self, record: Record) -> None:
        """Keep a run, in place of a former record of it."""
        write_whole(self.file(record.id), record.to_bytes())
        self.unfinished(record.id).unlink(missing_ok=True)
        self.broken.pop(self.file(record.id), None)

    def read(self, run: str) -> Record:
        """A run; one that is not there, or whose file cannot be trusted, is refused."""
        try:
            record = Record.from_bytes(read_bytes(self.file(run)))
        except (InvalidInput, OSError) as problem:
            raise InvalidInput(f"{self.file(run)}: {problem}") from problem
        if record.id != run:
            raise InvalidInput(f"{self.file(run)}: it holds another run, {record.id}")
        return record

    def find(self, run: str) -> Record | None:
        """A run, or None if there is no sound record of it."""
        if not self.file(run).exists():
            return None
        try:
            return self.read(run)
        except InvalidInput as problem:
            self.broken[self.file(run)] = str(problem)
            return None

    def ids(self) -> Iterator[str]:
        """The ids of all stored runs, in order, whether their files are sound or not."""
        for file in sorted(self.folder.glob("runs/*/*")):
            if ID.fullmatch(file.stem) and file == self.file(file.stem):
                yield file.stem
            elif file.suffix not in (".part", UNFINISHED):
                self.broken[file] = f"{file}: not the name of a run's file"

    def records(self) -> Iterator[Record]:
        """All sound ones, in the order of their ids."""
        for run in self.ids():
            if record := self.find(run):
                yield record

    def others(self, known: Container[str]) -> int:
        """How many sound runs there are besides the known ones; files that are none are named in `broken`."""
        return sum(self.find(run) is not None for run in self.ids() if run not in known)

    def final_paid(self, run: str) -> float | None:
        """The loss incurred in a stored run, infinite if it failed; None if it is not there."""
        record = self.find(run)
        return record.final_paid if record else None

    def claim(self, run: str) -> bool:
        """Whether the run is now this process's own; a claim ends with `release`, or with the process."""
        if fcntl is None:
            return True
        try:
            fcntl.lockf(self._open_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(run))
        except OSError as problem:
            if problem.errno in BUSY:
                return False
            raise InvalidInput(f"{self.folder}: its file system has no locks: {problem.strerror}") from problem
        return True

    def release(self, run: str) -> None:
        """Let others have the run."""
        if fcntl is not None:
            fcntl.lockf(self._open_claims(), fcntl.LOCK_UN, 1, _place(run))

    def _open_claims(self) -> int:
        if self._claims is None:
            with _clear(self.folder / "claims"):
                self._claims = os.open(self.folder / "claims", os.O_RDWR | os.O_CREAT, 0o666)
        return self._claims


def _place(run: str) -> int:
    return int(run[:HEX_DIGITS], 16)


def _content(file: Path) -> bytes | None:
    """The bytes of a file of this folder, None if there is none."""
    try:
        return read_bytes(file)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be read: {problem.strerror or problem}") from problem


def write_whole(file: Path, content: bytes) -> None:
    """Under another name first: a file that has its name is complete."""
    unfinished = file.with_name(f"{file.stem}.{secrets.token_hex(4)}.part")
    with _clear(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with unfinished.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            unfinished.replace(file)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise


@contextmanager
def _clear(file: Path) -> Iterator[None]:
    """A disk that is full or read-only is an error of one line."""
    try:
        yield
    except OSError as problem:
        reason = f"{problem.strerror}; what was written before is kept"
        raise InvalidInput(f"{file} cannot be written: {reason}") from problem
