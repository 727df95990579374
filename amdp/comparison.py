"""Comparisons from Python: what `amdp.compare` does, and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

from rich.console import Console

from amdp.errors import InvalidInput
from amdp.experiments.dynamic import dynamic_frame
from amdp.experiments.engines import LocalPool, leave_if_importing
from amdp.experiments.frame import frame
from amdp.experiments.manifest import load, origin
from amdp.experiments.progress import NotebookLine, Tally, Watcher, watcher
from amdp.experiments.runner import Outcome, run
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from amdp.game.dynamic_regret import INTERVALS
from amdp.game.games import ROUNDS
from amdp.instances import continuing
from amdp.notebook import in_notebook
from amdp.report import Look, StoredRuns, Written, write
from amdp.report.page import overview

SEEDS = 10

Table = Mapping[str, Any]  # a table of a spec, as a dictionary


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """The runs of a comparison, in their folder; `Results.open` reads a folder that is there already."""

    spec: Spec
    folder: Path
    outcome: Outcome
    notes: tuple[str, ...] = ()  # skipped pairings, failures, ties: what `amdp compare` prints

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Self:
        """The runs that are stored in a folder of `amdp.compare` or `amdp compare`; nothing is played."""
        with Store(Path(folder)) as store:
            runs = StoredRuns.gather(load(folder), store)
        failed = list(dict.fromkeys(entry.id for entry, _ in runs.failed))
        found = runs.counts["finished"] + len(failed)
        outcome = Outcome(found, failed=failed, missing=runs.counts["missing"])
        return cls(runs.spec, Path(folder), outcome, tuple(f"left out: {text}" for text in store.broken.values()))

    def __repr__(self) -> str:
        runs = self.outcome.found + self.outcome.played
        failed = f", {len(self.outcome.failed)} failed" if self.outcome.failed else ""
        return f"Results({self.spec.title!r}, {runs} runs{failed}, in {self.folder})"

    def _repr_html_(self) -> str:
        """In a notebook: the final regret of every learner in every game."""
        return overview(StoredRuns.gather(self.spec, Store(self.folder)), Look())

    def frame(self, timings: bool = False, tries: bool = False) -> Any:
        """All curves as one `pandas.DataFrame`: a row for each run and checkpoint, sums from the start.

        Every setting is a column, with its default where the spec does not give it. With `tries` the runs that chose
        multipliers are in it too, with `timings` the seconds of each part of the loop.
        """
        return frame(self.spec, Store(self.folder), timings, tries)

    def dynamic(self, edges: int | Sequence[int] = INTERVALS) -> Any:
        """Final regrets against sequences of policies, as a `pandas.DataFrame`: a row for each number of changes.

        Games in episodes only. A comparator may change its policy at edges only: rounds, from 0 to the last one, or so
        many equal intervals.
        """
        return dynamic_frame(self.spec, Store(self.folder), edges)

    def report(
        self, folder: str | PathLike[str] | None = None, look: Look | None = None, width: str | None = None
    ) -> Written:
        """Write figures, tables and one HTML page; by default into `report` inside the folder of the runs.

        For a paper, `width` is "column" (figures of 3.3 inches) or "page" (6.9 inches), with letters of 8 to 9 points.
        In a notebook the page is shown below the cell.
        """
        drawn = replace(look or Look(), width=width) if width else look
        return write(self.spec, Store(self.folder), self.folder / "report" if folder is None else Path(folder), drawn)


def compare(
    spec: str | PathLike[str] | Table | None = None,
    out: str | PathLike[str] = "results",
    *,
    games: Sequence[str | Table] | None = None,
    learners: Sequence[str | Table] | None = None,
    seeds: int | Sequence[int] | None = None,
    rounds: int = ROUNDS,
    workers: int | None = None,
    retry_failed: bool = False,
    progress: bool | None = None,
) -> Results:
    """Play every learner in every game with every seed, in parallel, and keep each run in the folder `out`.

    The runs are played in processes of their own: in a script, call this under `if __name__ == "__main__":`.

    Parameters
    ----------
    spec
        A `.toml` or `.json` file, or a dictionary of the same form: see `amdp new` for one with comments.
    out
        The folder of the runs. What is there already is not played again: a comparison that was stopped goes on.
    games, learners, seeds
        Instead of a spec: tables of `[[games]]` and `[[learners]]`, or names of worlds and learners; 10 seeds if not
        given.
    rounds
        The length of games by name: episodes, or steps of a world without end.
    workers
        Processes, one thread each; by default as many as there are cores.
    retry_failed
        Play again what failed before.
    progress
        Whether to show how far it is; None: in a terminal and in a notebook.
    """
    leave_if_importing()
    wanted = _spec(spec, games, learners, seeds, rounds)
    notes = _Notes(_progress(progress))
    with Store(Path(out)) as store:
        outcome = run(wanted, store, LocalPool(workers), notes, retry_failed=retry_failed)
    return Results(wanted, Path(out), outcome, tuple(notes.lines))


def read(folder: str | PathLike[str], timings: bool = False, tries: bool = False) -> Any:
    """The curves of a comparison that is stored in a folder, as one `pandas.DataFrame`: see `Results.frame`."""
    return Results.open(folder).frame(timings, tries)


def _progress(wanted: bool | None) -> Watcher:
    """What shows the progress of a comparison."""
    console = Console(stderr=True)
    if not (in_notebook() or console.is_terminal if wanted is None else wanted):
        return Watcher()
    return NotebookLine() if in_notebook() else watcher(console)


class _Notes(Watcher):
    """Keeps notes for the results, and leaves the progress to another watcher."""

    def __init__(self, shown: Watcher) -> None:
        self.lines: list[str] = []
        self._shown = shown

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self._shown.__exit__(*problem)

    def note(self, text: str) -> None:
        self.lines.append(text)

    def show(self, tally: Tally) -> None:
        self._shown.show(tally)


def _spec(
    given: str | PathLike[str] | Table | None,
    games: Sequence[str | Table] | None,
    learners: Sequence[str | Table] | None,
    seeds: int | Sequence[int] | None,
    rounds: int,
) -> Spec:
    if given is not None:
        if games is not None or learners is not None or seeds is not None:
            raise InvalidInput("a spec has games, learners and seeds of its own; give either it or them")
        return Spec.from_dict(given, str(Path.cwd())) if isinstance(given, Mapping) else Spec.load(given, origin(given))
    if games is None or learners is None:
        raise InvalidInput("give either a spec, or games and learners")
    if isinstance(games, str) or isinstance(learners, str):
        raise InvalidInput("games and learners are lists: games=['tiny'], learners=['ftpl']")
    tables = {
        "games": [_game(game, rounds) for game in games],
        "learners": [{"name": learner} if isinstance(learner, str) else learner for learner in learners],
        "seeds": SEEDS if seeds is None else seeds,
    }
    return Spec.from_dict(tables, str(Path.cwd()))


def _game(given: str | Table, rounds: int) -> Table:
    if not isinstance(given, str):
        return given
    return {"instance": given, "steps" if given in continuing() else "episodes": rounds}
