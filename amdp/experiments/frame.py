"""Results as one long table: a row for each run, role and checkpoint, the same bytes whenever they are the same runs.

What was compared is in it; the tries that chose settings only if asked for. Every setting is a column, with its
default where the spec does not give it: `instance.n_states`, `losses.every`, `oracle.gap`, `settings.limit`. Columns
such as `rate` say what the run was played with. CSV, parquet and pandas have the same columns and numbers.

Where tuning chose theory's settings, the tuned run is that of theory: one id, with rows for both roles, so that each
role is whole. To count runs, count ids.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Self, TextIO

from amdp import options, registry
from amdp.algorithms.named import recipe
from amdp.errors import AmdpError
from amdp.experiments.entries import CATALOGS, UNLABELLED
from amdp.experiments.record import Curve, Record
from amdp.experiments.settings import LearnerSettings, Named, RunSettings, canonical
from amdp.experiments.spec import Planned, Role, Spec
from amdp.experiments.storage import Store
from amdp.game.games import radius_of
from amdp.game.rounds import Timing
from amdp.text import cell

LABELS = ("id", "game", "learner", "role", "seed", "instance", "losses", "delay", "oracle", "projection", "multiplier")
GAME = ("recipe", "episodes", "steps", "feedback", "unknown", "radius", "radius_scale", "comparator")
MADE = ("total_delay", "epoch", "rate", "limit", "gamma", "exploration")  # numbers that recipe and game made
REGRET = ("rounds", "paid", "best", "best_bound", "regret_low", "regret_high", "paid_entering")
SUMS = (*REGRET, "trials", "oracle_calls", "rebuilds", "bound")
CLOCKS = {"seconds": "spent", "cpu": "cpu"}  # prefix of the columns, field of the curve
PARTS = (*Timing._fields, "total")
TIMINGS = tuple(f"{clock}_{part}" for clock in CLOCKS for part in PARTS)
UNPROVED = ("best_bound", "regret_high", "bound")  # numbers, also where all are missing
EXACT = {False: "dp", True: "auto"}  # the comparator of episodes, of a stream, where none is named

Cells = tuple[Any, ...]


@dataclass(frozen=True)
class Layout:
    """The columns of a table: the settings of its runs are among them, so they differ from spec to spec."""

    runs: tuple[Planned, ...]  # in the order of the rows
    settings: Mapping[str, bool]  # columns of settings, and whether they hold texts
    timings: bool

    @classmethod
    def of(cls, spec: Spec, store: Store, timings: bool = False, tries: bool = False) -> Self:
        """The runs of a spec as far as they are known: the tuned ones once their tuning is finished."""
        asked = [planned for batch in spec.plan(store.final_paid) for planned in batch]
        runs = sorted((run for run in asked if tries or run.role is not Role.TUNING), key=_order)
        found: dict[str, list[Any]] = {}
        for settings in {(run.game, run.learner): run.settings for run in runs}.values():
            for column, value in _flat(settings).items():
                found.setdefault(column, []).append(value)
        texts = {column: not _same_kind(values) for column, values in found.items()}
        return cls(tuple(runs), dict(sorted(texts.items())), timings)

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names; `timings` are the seconds by part of the loop, which are never the same twice."""
        return LABELS + GAME + tuple(self.settings) + MADE + SUMS + (TIMINGS if self.timings else ())

    def rows(self, store: Store) -> Iterator[Cells]:
        """The finished runs, in a fixed order; one record is read at a time."""
        for planned in self.runs:
            record = store.find(planned.id)
            if record and record.curve:
                about = _labels(planned, record) + _game(record) + self._set(record.settings) + _made(record)
                yield from (about + cells for cells in _curve_rows(record.curve, self.timings))

    def _set(self, settings: RunSettings) -> Cells:
        values = _flat(settings)
        return tuple(
            str(value) if text and value is not None else value
            for column, text in self.settings.items()
            for value in [values.get(column)]
        )


def frame(spec: Spec, store: Store, timings: bool = False, tries: bool = False) -> Any:
    """The rows as a `pandas.DataFrame`, all in memory."""
    registry.require("a data frame", ("pandas",))
    import pandas as pd  # type: ignore[import-untyped]

    layout = Layout.of(spec, store, timings, tries)
    table = pd.DataFrame.from_records(list(layout.rows(store)), columns=list(layout.columns))
    return table.astype(dict.fromkeys((*MADE, *UNPROVED), "float64"))


def write_csv(spec: Spec, store: Store, file: TextIO, timings: bool = False, tries: bool = False) -> int:
    """Write the table, row by row, and return how many rows there are; what is not known is left empty.

    A text that a spreadsheet would run stands behind a `'`: see `amdp.text.cell`.
    """
    layout = Layout.of(spec, store, timings, tries)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(layout.columns)
    return sum(bool(writer.writerow(map(_cell, cells))) for cells in layout.rows(store))


def write_parquet(spec: Spec, store: Store, file: Path, timings: bool = False, tries: bool = False) -> int:
    """Write the table, which is held in memory as a whole, and return how many rows there are."""
    registry.require("parquet", ("pandas", "pyarrow"))
    table = frame(spec, store, timings, tries)
    table.to_parquet(file, engine="pyarrow", index=False)
    return len(table)


def _cell(value: Any) -> Any:
    return cell(value) if isinstance(value, str) else value


def _order(planned: Planned) -> tuple[Any, ...]:
    which, settings = (planned.game, planned.learner, planned.role), planned.settings
    learner, length = settings.learner, settings.game.length
    return (*which, learner.multiplier, _keywords(learner), length, settings.seed, planned.id)


# --- settings ---------------------------------------------------------------------------------------------------------


def _flat(settings: RunSettings) -> dict[str, Any]:
    """The settings of all parts by dotted names, those that are not given by their defaults."""
    game, learner = settings.game, settings.learner
    parts = {"instance": game.instance, "losses": game.losses, "comparator": game.comparator}
    parts |= {"oracle": learner.oracle, "projection": learner.projection}
    named = ((key, part.settings, _usual(CATALOGS[key].find, part)) for key, part in parts.items() if part)
    taken = (("settings", learner.settings, _usual(recipe, learner)), *named)
    return {
        f"{key}.{option}": _plain(value)
        for key, given, usual in taken
        for option, value in (usual | dict(given)).items()
        if option not in UNLABELLED
    }


def _usual(find: Any, part: Named | LearnerSettings) -> dict[str, Any]:
    """The defaults of what has that name; a file has none, and one's own code is not run to ask it."""
    if part.source is not None:
        return {}
    try:
        return options.defaults(find(part.name))
    except AmdpError:
        return {}


def _plain(value: Any) -> Any:
    """A setting as a cell: lists and tables as texts, no limit as nothing."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, Mapping):
        return str(dict(value))
    return value if value is None or isinstance(value, bool | int | float | str) else str(list(value))


def _same_kind(values: list[Any]) -> bool:
    """Whether all are numbers, or all truth values: a column of a frame or a file has one kind."""
    kinds = {
        bool if isinstance(value, bool) else float if isinstance(value, int | float) else str
        for value in values
        if value is not None
    }
    return kinds <= {float} or kinds <= {bool}


# --- cells ------------------------------------------------------------------------------------------------------------


def _labels(planned: Planned, record: Record) -> Cells:
    game, learner, seed = planned.settings.game, planned.settings.learner, planned.settings.seed
    given = {"oracle": learner.oracle, "projection": learner.projection}
    oracle, projection = (str(part) if part else _word(record.used.get(key)) for key, part in given.items())
    which = (planned.id, planned.game, planned.learner, str(planned.role), seed)
    played = (str(game.instance), str(game.losses), game.delay)
    return (*which, *played, oracle, projection, learner.multiplier)


def _keywords(learner: LearnerSettings) -> str:
    """The settings of a recipe as JSON; empty without any."""
    return canonical(learner.settings).decode() if learner.settings else ""


def _game(record: Record) -> Cells:
    """What the game is like; a radius only where the transitions are unknown."""
    game = record.settings.game
    radius = radius_of(game.radius, record.settings.learner.name)
    sets = (radius, game.radius_scale) if game.unknown else (None, None)
    comparator = str(game.comparator or EXACT[game.steps is not None])
    told = _word(record.used.get("told")) or game.feedback
    return (record.settings.learner.name, game.episodes, game.steps, told, game.unknown, *sets, comparator)


def _made(record: Record) -> Cells:
    return tuple(_number(record.used.get(name)) for name in MADE)


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None


def _curve_rows(curve: Curve, timings: bool) -> Iterator[Cells]:
    low = [paid - best for paid, best in zip(curve.paid, curve.best, strict=True)]
    high = [None if bound is None else paid - bound for paid, bound in zip(curve.paid, curve.best_bound, strict=True)]
    columns = {**vars(curve), "regret_low": low, "regret_high": high}
    sums = [columns[name] for name in SUMS]
    clocks = [column for field in CLOCKS.values() for column in _clock(getattr(curve, field))] if timings else []
    return zip(*sums, *clocks, strict=True)


def _clock(spent: dict[str, list[float]]) -> list[list[float]]:
    parts = [spent[part] for part in Timing._fields]
    return [*parts, [sum(seconds) for seconds in zip(*parts, strict=True)]]
