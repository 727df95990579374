"""Comparisons from Python: what `amdp.compare` does, and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from amdp.errors import InvalidInput
from amdp.experiments.engines import LocalPool
from amdp.experiments.frame import frame
from amdp.experiments.manifest import origin
from amdp.experiments.runner import Outcome, run
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from amdp.report import Look, Written, write

Table = Mapping[str, Any]  # a table of a spec, as a dictionary


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """The runs of a comparison, in their folder."""

    spec: Spec
    folder: Path
    outcome: Outcome

    def __repr__(self) -> str:
        runs = self.outcome.found + self.outcome.played
        failed = f", {len(self.outcome.failed)} failed" if self.outcome.failed else ""
        return f"Results({self.spec.title!r}, {runs} runs{failed}, in {self.folder})"

    def frame(self, timings: bool = False) -> Any:
        """All curves as one `pandas.DataFrame`: a row for each run and checkpoint, sums from the start."""
        return frame(self.spec, Store(self.folder), timings)

    def report(self, folder: str | PathLike[str] | None = None, look: Look | None = None) -> Written:
        """Write figures, tables and one HTML page; by default into `report` inside the folder of the runs."""
        return write(self.spec, Store(self.folder), self.folder / "report" if folder is None else Path(folder), look)


def compare(
    spec: str | PathLike[str] | Table | None = None,
    out: str | PathLike[str] = "results",
    *,
    games: Sequence[str | Table] | None = None,
    learners: Sequence[str | Table] | None = None,
    seeds: int | Sequence[int] = 10,
    workers: int | None = None,
    retry_failed: bool = False,
) -> Results:
    """Play every learner in every game with every seed, in parallel, and keep each run in the folder `out`.

    Parameters
    ----------
    spec
        A `.toml` or `.json` file, or a dictionary of the same form: see `amdp new` for one with comments.
    out
        The folder of the runs. What is there already is not played again: a comparison that was stopped goes on.
    games, learners, seeds
        Instead of a spec: tables of `[[games]]` and `[[learners]]`, or names of worlds and learners.
    workers
        Processes, one thread each; by default as many as there are cores.
    retry_failed
        Play again what failed before.
    """
    wanted = _spec(spec, games, learners, seeds)
    with Store(Path(out)) as store:
        outcome = run(wanted, store, LocalPool(workers), retry_failed=retry_failed)
    return Results(wanted, Path(out), outcome)


def _spec(
    given: str | PathLike[str] | Table | None,
    games: Sequence[str | Table] | None,
    learners: Sequence[str | Table] | None,
    seeds: int | Sequence[int],
) -> Spec:
    if (given is None) == (games is None or learners is None):
        raise InvalidInput("give either a spec, or games and learners")
    if games is not None and learners is not None:
        tables = {"games": _tables(games, "instance"), "learners": _tables(learners, "name")}
        return Spec.from_dict({**tables, "seeds": seeds if isinstance(seeds, int) else list(seeds)})
    if isinstance(given, Mapping):
        return Spec.from_dict(given)
    assert given is not None
    return Spec.load(given, origin(Path(given)))


def _tables(given: Sequence[str | Table], key: str) -> list[dict[str, Any]]:
    return [{key: part} if isinstance(part, str) else dict(part) for part in given]
