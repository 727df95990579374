"""FTPL and mirror descent, each at its best rate: regret in five worlds, rates chosen on other seeds than reported.

Puts its table on docs/ftpl-or-omd.md.

python -m benchmarks.studies.tuned_rivals FOLDER
"""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from amdp.experiments.engines import ExternalExecutor
from amdp.experiments.runner import run
from amdp.experiments.spec import Role, Spec
from amdp.experiments.storage import Store
from amdp.report.results import Contest, Series, StoredRuns
from amdp.report.statistics import MeanBand, sign_flips
from amdp.report.tables import interval
from benchmarks.page import DOCS, markdown, put
from benchmarks.studies.no_tuning import WORLDS, workers

NAME, PAGE = "tuned-rivals", DOCS / "ftpl-or-omd.md"
SEED = 7  # of the bootstrap
TUNED = ("ftpl-shared", "ftpl-scaled", "o-reps")
BY_THEMSELVES = ("ftpl-adaptive", "o-reps-adaptive", "soft-leader")
KINDS = ((TUNED, Role.TUNED), (BY_THEMSELVES, Role.THEORY))
DIFFERENCE = ("ftpl-scaled", "o-reps")  # the first less the second
BAND = MeanBand()


class Sizes(NamedTuple):
    """How much is played."""

    worlds: tuple[str, ...]
    rounds: int
    seeds: int
    multipliers: tuple[float, ...]
    tries: int  # seeds of each multiplier


FULL = Sizes(WORLDS, 5_000, 20, (1.0, 4.0, 16.0, 64.0, 256.0), 4)
QUICK = Sizes(WORLDS[:1], 20, 2, (1.0, 16.0), 1)


def spec(sizes: Sizes) -> Spec:
    """All learners in all worlds."""
    return Spec.from_dict(
        {
            "title": "FTPL and mirror descent, tuned",
            "seeds": sizes.seeds,
            "checkpoints": 2,
            "tune": {"multipliers": list(sizes.multipliers), "seeds": sizes.tries},
            "learners": [{"label": name, "name": name} for name in (*TUNED, *BY_THEMSELVES)],
            "games": [
                {"label": world, "instance": world, "losses": "bernoulli", "episodes": sizes.rounds}
                for world in sizes.worlds
            ],
        }
    )


def lines(contests: Sequence[Contest]) -> list[str]:
    """The table: a row for each world."""
    difference = f"`{DIFFERENCE[0]}` - `{DIFFERENCE[1]}`"
    heads = (
        "world",
        *(f"`{name}`, tuned" for name in TUNED),
        *(f"`{name}`" for name in BY_THEMSELVES),
        difference,
        "p",
    )
    return markdown(heads, map(_row, contests))


def _row(game: Contest) -> tuple[str, ...]:
    rng = np.random.default_rng(SEED)
    tuned, own = ([_series(game, name, role) for name in names] for names, role in KINDS)
    more = tuned[TUNED.index(DIFFERENCE[0])].final - tuned[TUNED.index(DIFFERENCE[1])].final
    return (
        game.label,
        *(f"{interval(BAND.of(one.final[:, None], rng))} (x{one.settings.multiplier:g})" for one in tuned),
        *(interval(BAND.of(one.final[:, None], rng)) for one in own),
        interval(BAND.of(more[:, None], rng)),
        f"{sign_flips(more, rng).p:.1g}",
    )


def _series(game: Contest, name: str, role: Role) -> Series:
    (found,) = (one for one in game.series if (one.learner, one.role) == (name, role))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser(prog="python -m benchmarks.studies.tuned_rivals", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where every run is kept; runs that are there are not repeated")
    parser.add_argument("--workers", type=int, default=2, help="processes that play")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes; the page is left as it is")
    asked = parser.parse_args(arguments)
    wanted = spec(QUICK if asked.quick else FULL)
    with workers(asked.quick, asked.workers) as executor, Store(asked.folder) as store:
        run(wanted, store, ExternalExecutor(executor, asked.workers))
        table = lines(StoredRuns.gather(wanted, store).contests)
    print("\n".join(table))
    if not asked.quick:
        put(PAGE, NAME, table)


if __name__ == "__main__":
    main()
