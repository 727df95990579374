"""What is done, how fast, how long still; as a live table, as a few lines, or not at all."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import inf
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from amdp.experiments.engines import Playing
from amdp.experiments.record import Record
from amdp.experiments.spec import Planned, Role
from amdp.notebook import NotebookBar

REFRESH_SECONDS = 0.25  # between two drawings of the live table
MOST_LINES = 10  # of a whole experiment, if it is quick
LINE_SECONDS = 60.0  # after which a line is due in any case
OTHER_LINES = 8  # of a terminal, which are not for rows


@dataclass
class Row:
    """The runs of one learner in one game."""

    game: str
    learner: str
    role: Role
    all: int = 0
    done: float = 0  # runs; those under way count in part where that is known
    failed: int = 0
    timed: float = 0  # of those done, the ones that did not fail
    rounds: int = 0
    seconds: float = 0.0  # of the workers
    best: float = inf
    worst: float = -inf

    @property
    def name(self) -> str:
        """The learner, and its part in the comparison if that is not the usual one."""
        return self.learner if self.role is Role.THEORY else f"{self.learner} ({self.role})"

    def count(self, record: Record) -> None:
        """Count a run of the row as done."""
        self.done += 1
        if record.curve is None:
            self.failed += 1
            return
        self.timed += 1
        self.rounds += record.curve.rounds[-1]
        self.seconds += float(record.made["seconds"])
        self.best, self.worst = min(self.best, record.final_regret), max(self.worst, record.final_regret)

    def including(self, run: Playing) -> "Row":
        """The row after a part of one more run."""
        rounds, seconds = self.rounds + run.rounds, self.seconds + run.seconds
        return replace(self, done=self.done + run.share, timed=self.timed + run.share, rounds=rounds, seconds=seconds)

    @property
    def speed(self) -> float:
        """Rounds a second of one worker."""
        return self.rounds / self.seconds if self.seconds else 0.0


@dataclass
class Tally:
    """Counts of all runs, row by row, from which speed and remaining time are estimated."""

    rows: list[Row] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    worked: float = 0.0  # seconds of runs that were played here
    waiting: int = 0  # runs that another runner has claimed
    playing: list[Playing] = field(default_factory=list)
    _places: dict[tuple[str, str, Role], int] = field(default_factory=dict)

    def expect(self, runs: Iterable[Planned]) -> None:
        """Count runs as planned."""
        for planned in runs:
            self.rows[self.place(planned)].all += 1

    def place(self, planned: Planned) -> int:
        """The index of the row of a run."""
        key = planned.game, planned.learner, planned.role
        if key not in self._places:
            self._places[key] = len(self.rows)
            self.rows.append(Row(*key))
        return self._places[key]

    def count(self, planned: Planned, record: Record, here: bool) -> None:
        """Count a run as done; `here`: it was played by this runner, not found."""
        self.rows[self.place(planned)].count(record)
        self.worked += float(record.made["seconds"]) if here else 0.0

    @property
    def all(self) -> int:
        """The number of runs planned."""
        return sum(row.all for row in self.rows)

    @property
    def done(self) -> int:
        """The number of runs that are stored, failed ones included."""
        return int(sum(row.done for row in self.rows))

    @property
    def elapsed(self) -> float:
        """Seconds since the runner began to play."""
        return time.monotonic() - self.began

    @property
    def rows_now(self) -> list[Row]:
        """The rows with the runs that are under way."""
        rows = list(self.rows)
        for run in self.playing:
            rows[run.row] = rows[run.row].including(run)
        return rows

    @property
    def busy(self) -> float:
        """The number of workers that were busy, on average."""
        return (self.worked + sum(run.seconds for run in self.playing)) / self.elapsed

    @property
    def speed(self) -> float:
        """Rounds a second of all workers, those of unfinished runs included."""
        rows = self.rows_now
        seconds = sum(row.seconds for row in rows)
        return sum(row.rounds for row in rows) / seconds * self.busy if seconds else 0.0

    def lefts(self) -> list[float | None]:
        """Seconds of the clock that each row's unfinished runs will take, were they the only ones; None: not known yet.

        A row of which nothing is known is as slow as the others on average.
        """
        rows, busy = self.rows_now, self.busy
        paces = [row.seconds / row.timed if row.timed else None for row in rows]
        known = [pace for pace in paces if pace is not None]
        if not known or not busy:
            return [0.0 if row.done == row.all else None for row in rows]
        usual = sum(known) / len(known)
        return [(row.all - row.done) * (pace or usual) / busy for row, pace in zip(rows, paces, strict=True)]

    @property
    def all_left(self) -> float | None:
        """Seconds of the clock until all runs are done; None if nothing is known of any."""
        each = self.lefts()
        return None if None in each else sum(seconds for seconds in each if seconds is not None)


class Watcher:
    """Receives notes and progress to show them to a user, as a context; this one shows nothing."""

    def note(self, text: str) -> None:
        """Show a line of text."""

    def show(self, tally: Tally) -> None:
        """Show the progress, which may have changed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        pass


class Lines(Watcher):
    """For files and pipes: a line for every tenth of the runs, or after a minute."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown, self._when = -1, time.monotonic()

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, tally: Tally) -> None:
        tenth = tally.done * MOST_LINES // tally.all if tally.all else 0
        if tenth != self._shown or time.monotonic() - self._when >= LINE_SECONDS:
            self._shown, self._when = tenth, time.monotonic()
            self.note(sentence(tally))


class LiveTable(Watcher):
    """For terminals: a table that is drawn anew in its place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._when = -inf

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._live.stop()

    def note(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False)

    def show(self, tally: Tally) -> None:
        if time.monotonic() - self._when >= REFRESH_SECONDS:
            self._when = time.monotonic()
            self._live.update(table(tally, self._live.console.height - OTHER_LINES), refresh=True)


class NotebookLine(Watcher):
    """For notebooks: a bar and the progress in words."""

    def __init__(self) -> None:
        self._bar = NotebookBar(keep=True)

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self._bar.__exit__(*problem)

    def show(self, tally: Tally) -> None:
        self._bar.show(sum(row.done for row in tally.rows_now), tally.all, sentence(tally))


def watcher(console: Console, quiet: bool = False) -> Watcher:
    """The watcher that suits a console: a live table in a terminal, else lines."""
    if quiet:
        return Watcher()
    return LiveTable(console) if console.is_terminal else Lines(console)


def sentence(tally: Tally) -> str:
    """The progress in one line."""
    parts = [f"{tally.done} of {tally.all} runs"]
    if failed := sum(row.failed for row in tally.rows):
        parts.append(f"{failed} failed")
    if tally.waiting:
        parts.append(f"{tally.waiting} played by another runner")
    if tally.done < tally.all:
        parts.append(f"{tally.speed:.3g} rounds a second")
        parts.append(f"{_duration(tally.all_left)} left")
    return ", ".join(parts)


def table(tally: Tally, height: int) -> Table:
    """A line for each game and learner; where there are too many, those that are done give way."""
    drawn = Table(caption=Text(sentence(tally)), caption_justify="left")
    for heading in ("game", "learner"):
        drawn.add_column(heading, overflow="fold")
    for heading in ("runs", "failed", "rounds/s", "left", "best", "worst"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    shown = sorted(range(len(tally.rows)), key=lambda i: tally.rows[i].done == tally.rows[i].all)[: max(1, height)]
    now, left = tally.rows_now, tally.lefts()
    for i in sorted(shown):
        drawn.add_row(*map(Text, _cells(tally.rows[i], now[i].speed, left[i])))
    if len(shown) < len(tally.rows):
        drawn.add_row(f"and {len(tally.rows) - len(shown)} more")
    return drawn


def _duration(seconds: float | None) -> str:
    return "?" if seconds is None else str(timedelta(seconds=round(seconds)))


def _cells(row: Row, speed: float, left: float | None) -> list[str]:
    regrets = [f"{value:.4g}" if row.timed else "" for value in (row.best, row.worst)]
    runs, time_left = f"{row.done:.0f}/{row.all}", _duration(left) if row.done < row.all else ""
    return [row.game, row.name, runs, str(row.failed or ""), f"{speed:.3g}" if speed else "", time_left, *regrets]
