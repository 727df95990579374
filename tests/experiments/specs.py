"""Small specs, engines that need no processes, and what a folder holds."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from amdp.experiments.engines import ExternalExecutor
from amdp.experiments.frame import write_csv
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store

LEARNERS = """
[[learners]]
name = "ftpl-shared"

[[learners]]
name = "o-reps"
"""
TUNE = """
[tune]
multipliers = [1, 4]
seeds = 2
"""


def toml(seeds: int = 3, episodes: int = 12, more: str = "", instance: str = "tiny") -> str:
    """Two learners in one game, without a baseline."""
    game = f'[[games]]\nlabel = "small"\ninstance = "{instance}"\nepisodes = {episodes}\n'
    return f'title = "two learners"\nseeds = {seeds}\ncheckpoints = 5\nbaseline = false\n\n{game}{LEARNERS}{more}'


def small(seeds: int = 3, episodes: int = 12, more: str = "", instance: str = "tiny") -> Spec:
    """The same, read."""
    return Spec.parse(toml(seeds, episodes, more, instance))


def table(spec: Spec, folder: Path) -> str:
    """All results of a folder."""
    written = StringIO()
    write_csv(spec, Store(folder), written)
    return written.getvalue()


@contextmanager
def threads(count: int = 1) -> Iterator[ExternalExecutor]:
    """An engine in this process."""
    with ThreadPoolExecutor(count) as pool:
        yield ExternalExecutor(pool, 2 * count)


class Here(ExternalExecutor):
    """In place of a `LocalPool`, where it does not matter which process plays: this one, a run at a time."""

    def __init__(self, workers: int | None = None) -> None:
        self._thread = ThreadPoolExecutor(1)
        super().__init__(self._thread, 1)

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        self._thread.shutdown()


def workers_of(pid: int) -> list[int]:
    """Processes that a local pool of a process has started."""
    found = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _read(listing).split():
            if "spawn_main" in _read(Path(f"/proc/{child}/cmdline")):
                found.append(int(child))
    return found


def _read(file: Path) -> str:
    """Nothing, if the process or thread has ended."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
