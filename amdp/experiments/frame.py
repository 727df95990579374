"""Results as one long table: a row for each run, role and checkpoint, the same bytes whenever they are the same runs.

Where tuning chose theory's settings, the tuned run is that of theory: one id, with rows for both roles, so that each
role is whole. To count runs, count ids.
"""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from amdp import registry
from amdp.experiments.record import Curve
from amdp.experiments.settings import LearnerSettings, canonical
from amdp.experiments.spec import Planned, Spec
from amdp.experiments.storage import Store
from amdp.game.rounds import Timing
from amdp.text import cell

WHICH = ("id", "game", "learner", "role", "seed")
PLAYED = ("instance", "losses", "delay")
PLAYER = ("oracle", "projection", "multiplier", "settings")
LABELS = WHICH + PLAYED + PLAYER
REGRET = ("rounds", "paid", "best", "best_bound", "regret_low", "regret_high", "paid_entering")
SUMS = (*REGRET, "trials", "oracle_calls", "rebuilds", "bound")
CLOCKS = {"seconds": "spent", "cpu": "cpu"}  # prefix of the columns, field of the curve
PARTS = (*Timing._fields, "total")
TIMINGS = tuple(f"{clock}_{part}" for clock in CLOCKS for part in PARTS)

Cells = tuple[Any, ...]


def columns(timings: bool = False) -> tuple[str, ...]:
    """Names; with `timings` also the seconds by part of the loop, which are never the same twice."""
    return LABELS + SUMS + (TIMINGS if timings else ())


def rows(runs: Iterable[Planned], store: Store, timings: bool = False) -> Iterator[Cells]:
    """The finished runs among those that are planned, in a fixed order; one record is read at a time."""
    for planned in sorted(runs, key=_order):
        record = store.find(planned.id)
        if record and record.curve:
            labels = _labels(planned)
            yield from (labels + cells for cells in _curve_rows(record.curve, timings))


def asked(spec: Spec, store: Store) -> list[Planned]:
    """The runs of a spec as far as they are known: the tuned ones once their tuning is finished."""
    return [planned for batch in spec.plan(store.final_paid) for planned in batch]


def frame(spec: Spec, store: Store, timings: bool = False) -> Any:
    """The rows as a `pandas.DataFrame`, all in memory."""
    registry.require("a data frame", ("pandas",))
    import pandas as pd  # type: ignore[import-untyped]

    table = pd.DataFrame.from_records(list(rows(asked(spec, store), store, timings)), columns=list(columns(timings)))
    return table.astype(dict.fromkeys(("best_bound", "regret_high", "bound"), "float64"))


def write_csv(spec: Spec, store: Store, file: TextIO, timings: bool = False) -> int:
    """Write the table, row by row, and return how many rows there are; what is not known is left empty.

    A text that a spreadsheet would run stands behind a `'`: see `amdp.text.cell`.
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns(timings))
    return sum(bool(writer.writerow(map(_cell, cells))) for cells in rows(asked(spec, store), store, timings))


def write_parquet(spec: Spec, store: Store, file: Path, timings: bool = False) -> int:
    """Write the table, which is held in memory as a whole, and return how many rows there are."""
    registry.require("parquet", ("pandas", "pyarrow"))
    table = frame(spec, store, timings)
    table.to_parquet(file, engine="pyarrow", index=False)
    return len(table)


def _cell(value: Any) -> Any:
    return cell(value) if isinstance(value, str) else value


def _order(planned: Planned) -> tuple[Any, ...]:
    which, settings = (planned.game, planned.learner, planned.role), planned.settings
    learner, length = settings.learner, settings.game.length
    return (*which, learner.multiplier, _keywords(learner), length, settings.seed, planned.id)


def _labels(planned: Planned) -> Cells:
    game, learner, seed = planned.settings.game, planned.settings.learner, planned.settings.seed
    oracle, projection = (str(part) if part else None for part in (learner.oracle, learner.projection))
    which = (planned.id, planned.game, planned.learner, str(planned.role), seed)
    played = (str(game.instance), str(game.losses), game.delay)
    return (*which, *played, oracle, projection, learner.multiplier, _keywords(learner) or None)


def _keywords(learner: LearnerSettings) -> str:
    """The settings of a recipe as JSON; empty without any."""
    return canonical(learner.settings).decode() if learner.settings else ""


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
