"""Every learner that goes beyond the paper's Table 1, beside its nearest rival and uniform play, in three worlds.

All are tuned alike: five multiples of theory's rate are tried on seeds of their own, and the one of the least mean loss
plays on 20 other seeds. Learners that tune themselves have nothing to try. Differences to the rival, tuned in the same
way, are taken seed by seed: both meet the same losses. Prints a table for each part, writes them to
FOLDER/beyond-table-1.md and, if asked, to a page between two comments. Runs are those of `amdp compare`, a folder for
each part: a study that was stopped goes on, and `amdp report FOLDER/PART` draws its curves.

python -m benchmarks.studies.beyond_table_1 FOLDER [--workers 2] [--only PART ...] [--page FILE] [--quick]
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from amdp.arrays import Floats
from amdp.experiments.dynamic import dynamic_frame
from amdp.experiments.engines import Engine, ExternalExecutor
from amdp.experiments.progress import watcher
from amdp.experiments.runner import run
from amdp.experiments.spec import Role, Spec
from amdp.experiments.storage import Store
from amdp.experiments.tuning import Tuning
from amdp.report.results import StoredRuns
from benchmarks.page import markdown, put, require_places
from benchmarks.studies.no_tuning import Mean, workers

NAME = "beyond-table-1"
MULTIPLIERS = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
TUNING_SEEDS, SEEDS = 3, 20
PHASES = 8  # of the losses that switch; the comparator may change as often
CERTAIN = 2.0  # standard errors of a difference, above which it is spoken of
RADIUS_SCALE = 0.05  # of the confidence sets: with published ones nothing is learned in games so short

TINY: Mapping[str, Any] = {"name": "tiny"}
RIVER: Mapping[str, Any] = {"name": "river-swim", "n_states": 4, "n_steps": 8}
DENSE: Mapping[str, Any] = {"name": "random-dense", "n_states": 4, "n_steps": 5}
THREE: Mapping[str, Mapping[str, Any]] = {"tiny": TINY, "river-swim": RIVER, "random-dense": DENSE}
REACHED: Mapping[str, Mapping[str, Any]] = {  # every policy comes everywhere
    "tiny": TINY,
    "random-dense": DENSE,
    "random-layered": {"name": "random-layered", "n_steps": 4, "width": 3, "n_actions": 2},
}
FEW_POLICIES: Mapping[str, Mapping[str, Any]] = {  # 512 each
    "tiny": TINY,
    "forest": {"name": "forest", "n_steps": 3},
    "river-swim": {"name": "river-swim", "n_states": 3, "n_steps": 3},
}
BUDGETED: Mapping[str, Mapping[str, Any]] = {
    "maintenance": {"name": "maintenance", "n_steps": 8, "hours": 1.0},
    "river-swim, strokes": {"name": "budgeted_worlds:river_swim"},
    "random-dense, units": {"name": "budgeted_worlds:random_dense"},
}
STILL: Mapping[str, Any] = {"name": "bernoulli"}


@dataclass(frozen=True)
class Part:
    """Learners that are told the same, and the games in which they meet."""

    name: str
    title: str
    worlds: Mapping[str, Mapping[str, Any]]  # by label
    rounds: int
    rivals: Mapping[str, str]  # the rival of each learner
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of learners whose label is not their name
    losses: Mapping[str, Any] = field(default_factory=lambda: STILL)
    told: Mapping[str, Any] = field(default_factory=dict)  # further keys of the games
    changes: int = 0  # of the comparator

    def spec(self, rounds: int, seeds: int, tuning_seeds: int) -> Spec:
        """The runs of the part."""
        losses = self.losses if self.losses is STILL else {**self.losses, "every": max(1, rounds // PHASES)}
        game = {"losses": losses, "episodes": rounds, **self.told}
        players = dict.fromkeys([*self.rivals, *self.rivals.values()])
        tables = {
            "title": self.title,
            "seeds": seeds,
            "checkpoints": 2,
            "games": [{"label": label, "instance": world, **game} for label, world in self.worlds.items()],
            "learners": [{"label": label, **self.settings.get(label, {"name": label})} for label in players],
            "tune": {"multipliers": list(MULTIPLIERS), "seeds": tuning_seeds},
        }
        return Spec.from_dict(tables, str(Path(__file__).parent))

    def regrets(self, spec: Spec, store: Store, runs: StoredRuns) -> dict[tuple[str, str, Role], Floats]:
        """The final regret for each seed, by game, learner and role."""
        if self.changes:
            frame = dynamic_frame(spec, store, PHASES)
            groups = frame[frame["changes"] == self.changes].groupby(["game", "learner", "role"])
            return {
                (game, learner, Role(role)): group.sort_values("seed")["regret"].to_numpy()
                for (game, learner, role), group in groups
            }
        shown = [series for contest in runs.contests for series in contest.shown]
        return {(series.game, series.learner, series.role): series.final for series in shown}


BARRIER, OF_THEORY = "bobw, log-barrier 0.1", "bobw, log-barrier of theory"
PARTS = (
    Part(
        "bandit",
        "Losses of the pairs that were met, known transitions",
        THREE,
        2_000,
        {
            BARRIER: "o-reps",
            OF_THEORY: "o-reps",
            "o-reps-ix": "o-reps",
            "o-reps-ix-anytime": "o-reps-ix",
        },
        {BARRIER: {"name": "bobw", "settings": {"barrier": 0.1}}, OF_THEORY: {"name": "bobw"}},
    ),
    Part(
        "few-policies",
        "The same in worlds with 512 policies",
        FEW_POLICIES,
        2_000,
        {"hedge-anytime": "hedge"},
    ),
    Part(
        "full",
        "All losses, known transitions",
        THREE,
        1_000,
        {"o-reps-full-anytime": "o-reps-full", "oppo-full-anytime": "delayed-oppo-full"},
    ),
    Part(
        "unknown-bandit",
        "Losses of the pairs that were met, unknown transitions",
        THREE,
        1_000,
        {"uob-reps-anytime": "uob-reps"},
        told={"unknown": True, "radius_scale": RADIUS_SCALE},
    ),
    Part(
        "unknown-full",
        "All losses, unknown transitions",
        THREE,
        1_000,
        {"uc-o-reps-bernstein-anytime": "uc-o-reps-bernstein"},
        told={"unknown": True, "radius_scale": RADIUS_SCALE},
    ),
    Part(
        "totals",
        "The total loss of an episode",
        THREE,
        2_000,
        {"o-reps-aggregate": "o-reps", "soft-leader-aggregate": "soft-leader", "ftpl-aggregate": "ftpl-scaled"},
    ),
    Part(
        "totals-reached",
        "The total loss of an episode, where every policy comes everywhere",
        REACHED,
        2_000,
        {"o-ssp-aggregate": "o-ssp"},
    ),
    Part(
        "moving",
        f"All losses, which switch {PHASES - 1} times; regret against as many changes",
        THREE,
        320,
        {"do-reps": "o-reps-full", "do-reps-optimistic": "do-reps", "o-reps-fixed-share": "o-reps-full"},
        {"o-reps-fixed-share": {"name": "o-reps-fixed-share", "settings": {"changes": PHASES - 1}}},
        {"name": "switching"},
        changes=PHASES - 1,
    ),
    Part(
        "budgets",
        "Losses of the pairs that were met, within budgets",
        BUDGETED,
        240,
        {
            "o-reps": "ftpl-scaled",
            "o-reps-adaptive": "o-reps",
            "ftpl-scaled": "o-reps",
            "ftpl-adaptive": "o-reps-adaptive",
        },
    ),
    Part("budgets-full", "All losses, within budgets", BUDGETED, 240, {"o-reps-full": "fpl", "fpl": "o-reps-full"}),
)

HEADS = ("world", "learner", "by theory", "rate", "tuned", "share of uniform", "rival, tuned", "its regret", "more", "")
NOTES = f"""Mean regrets of {SEEDS} seeds, ± one standard error. `by theory`: at theory's rate. `rate`: the multiple of
it that {TUNING_SEEDS} other seeds chose among {", ".join(f"{each:g}" for each in MULTIPLIERS)}, with a star at the
edge of these; `own` tunes itself. `share of uniform`: of the mean regret of uniform play. `more`: the regret less that
of the rival, seed by seed; `better` and `worse` are said above {CERTAIN:g} standard errors."""


@dataclass(frozen=True)
class Played:
    """A part whose runs are there."""

    part: Part
    rounds: int
    regrets: Mapping[tuple[str, str, Role], Floats]
    tunings: Mapping[tuple[str, str], Tuning]

    def lines(self) -> list[str]:
        """Its title and its table."""
        return [f"**{self.part.title}**, K = {self.rounds:,}:", "", *markdown(HEADS, self._rows()), ""]

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for learner, rival in self.part.rivals.items():
            for game in self.part.worlds:
                uniform = float(self.regrets[game, "uniform", Role.BASELINE].mean())
                mine, theirs = self._best(game, learner), self._best(game, rival)
                more = Mean.of(mine - theirs)
                yield (
                    game,
                    learner,
                    Mean.of(self.regrets[game, learner, Role.THEORY]).shown(),
                    self._rate(game, learner),
                    Mean.of(mine).shown(),
                    f"{float(mine.mean()) / uniform:.2f}" if uniform > 0.0 else "none",
                    f"{rival} {self._rate(game, rival)}",
                    Mean.of(theirs).shown(),
                    more.shown(),
                    verdict(more),
                )

    def _best(self, game: str, learner: str) -> Floats:
        """The regrets as tuned; of a learner that tunes itself, as it is."""
        theory = self.regrets[game, learner, Role.THEORY]
        return self.regrets.get((game, learner, Role.TUNED), theory)

    def _rate(self, game: str, learner: str) -> str:
        tuning = self.tunings.get((game, learner))
        chosen = tuning.chosen if tuning else None
        if tuning is None or chosen is None:
            return "own"
        (axis,) = tuning.grid.axes
        return f"x{chosen.multiplier:g}" + ("\\*" if axis.is_edge(chosen[axis.name]) else "")


def verdict(more: Mean) -> str:
    """What a difference to the rival says."""
    if abs(more.value) <= CERTAIN * more.error:
        return "alike"
    return "worse" if more.value > 0.0 else "better"


def played(part: Part, folder: Path, engine: Engine, quick: bool = False) -> Played:
    """A part of which the missing runs have been played."""
    rounds, seeds, tuning_seeds = (2 * PHASES, 2, 1) if quick else (part.rounds, SEEDS, TUNING_SEEDS)
    spec = part.spec(rounds, seeds, tuning_seeds)
    with Store(folder / part.name) as store:
        outcome = run(spec, store, engine, watcher(Console(stderr=True)))
        if outcome.failed or not outcome.complete:
            raise SystemExit(f"{part.name}: {len(outcome.failed)} runs failed, {outcome.missing} are missing")
        runs = StoredRuns.gather(spec, store)
        return Played(part, rounds, part.regrets(spec, store, runs), runs.tunings)


def main(arguments: Sequence[str] | None = None) -> None:
    names = [part.name for part in PARTS]
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where every run leaves a file; runs that have one are not repeated")
    parser.add_argument("--workers", type=int, default=2, help="processes that play")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="PART", help=", ".join(names))
    parser.add_argument("--page", type=Path, help="put the tables in their place on this page")
    parser.add_argument(
        "--quick", action="store_true", help="a few rounds in this process: to see that everything runs"
    )
    asked = parser.parse_args(arguments)
    if asked.page:
        require_places(asked.page, [NAME])
    lines = [NOTES, ""]
    with workers(asked.quick, asked.workers) as executor:  # one for all parts: processes take seconds to start
        for part in (part for part in PARTS if part.name in asked.only):
            lines += played(part, asked.folder, ExternalExecutor(executor, asked.workers), asked.quick).lines()
    text = "\n".join(lines)
    (asked.folder / f"{NAME}.md").write_text(text)
    print(text)
    if asked.page:
        put(asked.page, NAME, lines)


if __name__ == "__main__":
    main()
