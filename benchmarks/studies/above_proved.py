"""Why some exponents of Table 1 are above the proved ones: the same learners in longer games, other worlds, tuned.

Each row whose exponent at the table's length is above the proved one is played on: ten times as long, in another world
of the same kind, and with rates chosen by trial games on other seeds. Where that leaves a doubt, what is suspected is
put to the test. Puts its tables on docs/exponents.md.

python -m benchmarks.studies.above_proved FOLDER [--only further]
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from amdp.algorithms.paper_table import TABLE
from amdp.experiments import table_1
from amdp.experiments.engines import Engine, ExternalExecutor
from amdp.experiments.ladders import Ladder, spec_of
from amdp.experiments.runner import run
from amdp.experiments.spec import Role
from amdp.experiments.storage import Store
from amdp.report.rates import LadderFit, fit_ladders
from amdp.report.tables import interval
from benchmarks.page import DOCS, markdown, put, require_places
from benchmarks.studies.no_tuning import workers

PAGE = DOCS / "exponents.md"
USUAL, FURTHER = "above-proved", "above-proved-further"  # its tables
ROWS = (  # of the table, with exponents above the proved ones by 0.07 or more
    "FTPL", "FTPL, scaled trials", "Delayed Hedge", "Delayed UOB-FTRL", "FTPL, delayed", "MDP-Exp3",
    "Best of both worlds", "O-REPS, total losses", "FTPL, total losses", "O-SSP, total losses", "Bandit O-SSP",
    "Optimistic POMD", "Delayed OPPO",
)  # fmt: skip
FULL_INFORMATION = ("FPL, noise for each policy", "FPL with start mass")  # whose steps are quick: many seeds
WITHOUT_BLOCKS = ("Best of both worlds", "O-REPS, total losses", "FTPL, total losses")  # whose rounds are slow
OTHER: dict[str, dict[str, Any]] = {  # by the world of the table; one of the same kind
    "tiny": {"name": "random-dense", "n_steps": 4, "n_states": 3, "n_actions": 2, "seed": 1},
    "random-ergodic": {"name": "random-ergodic", "n_states": 4, "n_actions": 2, "seed": 1},
    "random-parked": {"name": "random-parked", "n_states": 3, "n_actions": 2, "seed": 1},
    "random-entered": {"name": "random-entered", "n_states": 3, "n_actions": 2, "seed": 1},
}


class Sizes(NamedTuple):
    """How much is played."""

    lengths: tuple[int, ...]  # of games with all rates and worlds
    slow: int  # the same of rows without compiled blocks
    times: int  # as long is the longest game
    seeds: int
    seeds_full: int  # with full information
    seeds_further: int


FULL = Sizes((1_000, 10_000, 100_000), 10_000, 10, 4, 40, 8)
QUICK = Sizes((20, 40), 40, 2, 2, 2, 2)


class Variant(NamedTuple):
    """Ladders that are played together, and how they are said to differ from the table."""

    what: str
    ladders: list[Ladder]
    role: Role
    seeds: int

    @property
    def folder(self) -> str:
        """Its own, in the folder of the study."""
        return f"{self.what.replace(',', '').replace(' ', '-')}-{self.seeds}"


def variants(sizes: Sizes) -> Iterator[Variant]:
    """Those of most rows, then those of rows with full information."""
    for seeds, names in ((sizes.seeds, ROWS), (sizes.seeds_full, FULL_INFORMATION)):
        rows = [row for row in TABLE if row.name in names]
        same = [_lengths(ladder, sizes) for ladder in table_1.ladders(False, rows)]
        longer = [replace(ladder, rungs=(*ladder.rungs, sizes.times * ladder.rungs[-1])) for ladder in same]
        yield Variant("longer game", longer, Role.THEORY, seeds)
        yield Variant("other world", [_elsewhere(ladder) for ladder in same], Role.THEORY, seeds)
        yield Variant("tuned", same, Role.TUNED, seeds)


class Doubt(NamedTuple):
    """A row that the usual tests leave in doubt, and what is changed."""

    row: str
    what: str
    lengths: tuple[int, ...]
    role: Role
    settings: Mapping[str, float] = MappingProxyType({})


def further(sizes: Sizes) -> Iterator[Variant]:
    """Rows that the usual tests leave in doubt, in the world of the table, with what may be the reason changed."""
    short, middle, long = sizes.lengths[0], sizes.lengths[-2], sizes.lengths[-1]
    longer = sizes.times * long
    all_lengths = tuple(dict.fromkeys((short, middle, long)))  # in the quick form the first two are the same
    doubts = (
        Doubt("FPL, noise for each policy", "much longer game", (long, longer, sizes.times * longer), Role.THEORY),
        Doubt("Delayed OPPO", "tuned, gamma 0.0003", (middle, long, longer), Role.TUNED, {"gamma": 0.0003}),
        Doubt("Best of both worlds", "log-barrier 0.1", all_lengths, Role.THEORY, {"barrier": 0.1}),
        Doubt("FTPL, total losses", "tuned, longer game", (middle, long), Role.TUNED),
    )
    ladders = {ladder.name: ladder for ladder in table_1.ladders()}
    for one in doubts:
        ladder = ladders[one.row]
        ladder = replace(ladder, rungs=one.lengths, learner={**ladder.learner, "settings": dict(one.settings)})
        yield Variant(one.what, [ladder], one.role, sizes.seeds_further)


def _lengths(ladder: Ladder, sizes: Sizes) -> Ladder:
    """The lengths of the table in decades, and fewer where rounds are slow."""
    longest = sizes.slow if ladder.name in WITHOUT_BLOCKS else sizes.lengths[-1]
    return replace(ladder, rungs=tuple(length for length in sizes.lengths if length <= longest))


def _elsewhere(ladder: Ladder) -> Ladder:
    game: Mapping[str, Any] = {**ladder.game, "instance": OTHER[ladder.game["instance"]["name"]]}
    return replace(ladder, game=game)


def played(test: Variant, folder: Path, engine: Engine) -> list[LadderFit]:
    """The fits of the ladders of a test, after the runs that are missing; uniform play is left out."""
    spec = replace(spec_of(test.what, test.ladders, test.seeds, test.role is Role.TUNED), baselines=())
    with Store(folder / test.folder) as store:
        run(spec, store, engine)
        return [fit for fit in fit_ladders(spec, store, test.ladders) if fit.role is test.role]


def lines(found: Sequence[tuple[Variant, list[LadderFit]]]) -> list[str]:
    """The table: for each row of Table 1 its tests, one below the other."""
    names = list(dict.fromkeys(fit.ladder.name for _, fits in found for fit in fits))
    heads = ("row", "proved", "test", "lengths", "mean regret", "exponent between them", "last exponent, 95 % interval")
    rows = [_row(test, fit) for name in names for test, fits in found for fit in fits if fit.ladder.name == name]
    return markdown(heads, rows)


def _row(test: Variant, fit: LadderFit) -> tuple[str, ...]:
    local = np.diff(np.log(np.maximum(fit.regret, 1e-9))) / np.diff(np.log(fit.rungs))
    return (
        fit.ladder.name,
        f"{fit.ladder.proved:.2f}",
        test.what,
        ", ".join(f"{length:,.0f}" for length in fit.rungs),
        ", ".join(f"{regret:,.0f}" for regret in fit.regret),
        ", ".join(f"{exponent:.2f}" for exponent in local),
        interval(fit.exponent),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser(prog="python -m benchmarks.studies.above_proved", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where every run is kept; runs that are there are not repeated")
    parser.add_argument("--workers", type=int, default=2, help="processes that play")
    parser.add_argument("--only", choices=("usual", "further"), help="one of the two tables")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes; the page is left as it is")
    asked = parser.parse_args(arguments)
    require_places(PAGE, [USUAL, FURTHER])
    sizes = QUICK if asked.quick else FULL
    tables = {"usual": (USUAL, variants(sizes)), "further": (FURTHER, further(sizes))}
    with workers(asked.quick, asked.workers) as executor:
        engine = ExternalExecutor(executor, asked.workers)
        for place, tests in [tables[asked.only]] if asked.only else tables.values():
            table = lines([(test, played(test, asked.folder, engine)) for test in tests])
            print("\n".join(table))
            if not asked.quick:
                put(PAGE, place, table)


if __name__ == "__main__":
    main()
