"""What is done, how fast, how long still; as a live table, as a few lines, or not at all."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from amdp.experiments.engines import Playing
from amdp.experiments.record import Record
from amdp.experiments.spec import Planned, Role

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
    done: int = 0
    failed: int = 0
    timed: int = 0  # of those done, the ones that did not fail
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

    def speed(self, playing: list[Playing]) -> float | None:
        """Rounds a second of one worker."""
        seconds = self.seconds + sum(run.seconds for run in playing)
        rounds = self.rounds + sum(run.rounds for run in playing)
        return rounds / seconds if seconds > 0 and rounds else None

    def each(self, playing: list[Playing]) -> float | None:
        """Seconds of a worker that one run takes; None if nobody can know yet."""
        under_way = [run for run in playing if run.rounds]
        runs = self.timed + sum(run.share for run in under_way)
        return (self.seconds + sum(run.seconds for run in under_way)) / runs if runs else None

    def left(self, playing: list[Playing], each: float) -> float:
        """Seconds of a worker that its unfinished runs will still take."""
        return max(0.0, (self.all - self.done - sum(run.share for run in playing)) * each)


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
        return sum(row.done for row in self.rows)

    @property
    def failed(self) -> int:
        """The number of runs that failed."""
        return sum(row.failed for row in self.rows)

    @property
    def elapsed(self) -> float:
        """Seconds since the runner began to play."""
        return time.monotonic() - self.began

    @property
    def speed(self) -> float:
        """Rounds a second of all workers, those of unfinished runs included."""
        seconds = sum(row.seconds for row in self.rows) + sum(run.seconds for run in self.playing)
        rounds = sum(row.rounds for row in self.rows) + sum(run.rounds for run in self.playing)
        return rounds / seconds * self._busy if seconds else 0.0

    @property
    def by_row(self) -> dict[int, list[Playing]]:
        """The runs that are under way, by their row."""
        by_row: dict[int, list[Playing]] = {}
        for run in self.playing:
            by_row.setdefault(run.row, []).append(run)
        return by_row

    def lefts(self) -> list[float | None]:
        """Seconds of the clock that each row's unfinished runs will take, were they the only ones; None: not known yet.

        A row of which nothing is known is as slow as the others on average.
        """
        playing, busy = self.by_row, self._busy
        paces = [row.each(playing.get(i, [])) for i, row in enumerate(self.rows)]
        known = [pace for pace in paces if pace is not None]
        if not known or not busy:
            return [0.0 if row.done == row.all else None for row in self.rows]
        usual = sum(known) / len(known)
        return [
            row.left(playing.get(i, []), pace or usual) / busy
            for i, (row, pace) in enumerate(zip(self.rows, paces, strict=True))
        ]

    @property
    def all_left(self) -> float | None:
        """Seconds of the clock until all runs are done; None if nothing is known of any."""
        each = self.lefts()
        return None if None in each else sum(seconds for seconds in each if seconds is not None)

    @property
    def _busy(self) -> float:
        """The number of workers that were busy, on average."""
        return (self.worked + sum(run.seconds for run in self.playing)) / self.elapsed


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
        """Print a line of text."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, tally: Tally) -> None:
        """Print the progress as one line, if that is due."""
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
        """Print a line of text above the table."""
        self._live.console.print(text, markup=False, highlight=False)

    def show(self, tally: Tally) -> None:
        """Draw the table anew, if the last drawing is old enough."""
        if time.monotonic() - self._when >= REFRESH_SECONDS:
            self._when = time.monotonic()
            self._live.update(table(tally, self._live.console.height - OTHER_LINES), refresh=True)


def watcher(console: Console, quiet: bool = False) -> Watcher:
    """The watcher that suits a console: a live table in a terminal, else lines."""
    if quiet:
        return Watcher()
    return LiveTable(console) if console.is_terminal else Lines(console)


def sentence(tally: Tally) -> str:
    """The progress in one line."""
    parts = [f"{tally.done} of {tally.all} runs"]
    if tally.failed:
        parts.append(f"{tally.failed} failed")
    if tally.waiting:
        parts.append(f"{tally.waiting} played by another runner")
    if tally.done < tally.all:
        parts.append(f"{tally.speed:.3g} rounds a second")
        parts.append(f"{duration(tally.all_left)} left")
    return ", ".join(parts)


def table(tally: Tally, height: int) -> Table:
    """A line for each game and learner; where there are too many, those that are done give way."""
    drawn = Table(caption=Text(sentence(tally)), caption_justify="left")
    for heading in ("game", "learner"):
        drawn.add_column(heading, overflow="fold")
    for heading in ("runs", "failed", "rounds/s", "left", "best", "worst"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    shown = sorted(range(len(tally.rows)), key=lambda i: tally.rows[i].done == tally.rows[i].all)[: max(1, height)]
    playing, left = tally.by_row, tally.lefts()
    for i in sorted(shown):
        drawn.add_row(*map(Text, _cells(tally.rows[i], playing.get(i, []), left[i])))
    if len(shown) < len(tally.rows):
        drawn.add_row(f"and {len(tally.rows) - len(shown)} more")
    return drawn


def duration(seconds: float | None) -> str:
    """Seconds as text, such as 1:02:03, or 45 s."""
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}" if minutes else f"{rest} s"


def _cells(row: Row, playing: list[Playing], left: float | None) -> list[str]:
    speed = row.speed(playing)
    regrets = [f"{value:.4g}" if row.timed else "" for value in (row.best, row.worst)]
    return [
        row.game,
        row.name,
        f"{row.done}/{row.all}",
        str(row.failed or ""),
        f"{speed:.3g}" if speed else "",
        duration(left) if row.done < row.all else "",
        *regrets,
    ]
