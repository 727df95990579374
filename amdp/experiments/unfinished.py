"""Runs under way, kept from time to time: a long run whose process was killed goes on from where it was.

Games that are played in compiled blocks are kept, as arrays and nothing else. A state is taken up only by the same
version of everything that decides results.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from amdp.errors import InvalidInput
from amdp.experiments.storage import write_whole
from amdp.game.compiled import CompiledGame
from amdp.game.regret import Measurement

SECONDS = 20.0  # of play, after which the state is written again

Parts = Mapping[str, CompiledGame | Measurement]


class UnfinishedRun:
    """The file of a run under way."""

    def __init__(self, file: Path, origin: Mapping[str, Any], seconds: float = SECONDS) -> None:
        self._file, self._origin, self._seconds = file, json.dumps(origin, sort_keys=True), seconds
        self._written = monotonic()

    def take_up(self, parts: Parts) -> bool:
        """Put game and measurement where they were; whether there was a state of the same origin."""
        try:
            with np.load(BytesIO(self._file.read_bytes()), allow_pickle=False) as stored:
                state = {name: stored[name] for name in stored.files}
            if str(state.pop("origin")) != self._origin:
                return False
            for part, owner in parts.items():
                owner.resume(_of(state, f"{part}: "))
        except (OSError, KeyError, ValueError, EOFError, BadZipFile):  # no file, or not a whole one
            return False
        return True

    def keep(self, parts: Parts) -> None:
        """Write the state, if the last time is long ago."""
        if monotonic() - self._written < self._seconds:
            return
        content = BytesIO()
        states: Any = {
            f"{part}: {name}": value for part, owner in parts.items() for name, value in owner.state().items()
        }
        np.savez(content, origin=np.array(self._origin), **states)
        with suppress(InvalidInput):  # a full disk: the run can do without
            write_whole(self._file, content.getvalue())
        self._written = monotonic()


def _of(state: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
