"""Regret without tuning: learners with an adaptive rate against the best of five fixed rates, chosen with hindsight.

A fixed rate is theory's for the length `K` of its own game, times a multiplier. For each world and `K` the best
multiplier is the one of the least mean regret over the very seeds that are reported, which favours the fixed rates. The
adaptive learners are told neither `K` nor a multiplier. All learners meet the same losses at the same seed.

The worlds are five of the ten for episodes in `amdp.instances`, at their default sizes, named before the first run of
this study: those of the older studies (tiny, river-swim, forest, lock) and random-dense, which no author has shaped.
Left out for their running time or as near relatives: grid, inventory, queue, random-sparse, random-layered.

Draws docs/figures/no-tuning.svg, prints its tables and writes them to FOLDER/no-tuning.md:

python -m benchmarks.studies.no_tuning FOLDER [--workers 2] [--seeds-long 20] [--still] [--quick]
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import exp, log, nan, sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from amdp.arrays import Floats
from amdp.game.games import Game
from amdp.game.match import play
from amdp.report.drawing import COLORS, GRAY, MARKERS, STYLE
from benchmarks.page import markdown
from benchmarks.studies.curves import FIGURES
from benchmarks.studies.tasks import gathered
from benchmarks.timing import one_thread

NAME = "no-tuning"
REMARKABLE = 1.1  # times the regret of the best fixed rate: above it a ratio is spoken of
LEAST_SEEDS = 2  # for a standard error
LEAST_SHOWN = 0.5  # of the figure's vertical axis
TICKS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # of that axis, as far as it goes


@dataclass(frozen=True, eq=False)
class Family:
    """A learner with a fixed rate, and its form with an adaptive rate."""

    title: str
    fixed: str  # names of `amdp learners`
    settings: Mapping[str, Any]
    adaptive: str
    remark: str = ""


FAMILIES = (
    Family("soft leader", "soft-leader", {"rate": "theory"}, "soft-leader"),
    Family(
        "FTPL, scaled trials",
        "ftpl-scaled",
        {},
        "ftpl-adaptive",
        "Besides the rate the limit of the trials differs: `sqrt(SAK/H)` with a fixed rate; in round `k` of the "
        "adaptive learner `sqrt(SAk/H)`, but at least 2,000.",
    ),
    Family(
        "O-REPS",
        "o-reps",
        {},
        "o-reps-adaptive",
        "`o-reps` is mirror descent, `o-reps-adaptive` the regularized leader on the sum of the losses.",
    ),
)
UNIFORM = "uniform"


class Setting(NamedTuple):
    """A world, an adversary and a length: what a learner may be tuned for."""

    world: str
    adversary: str  # a name of `amdp.losses`, and for `switching` the rounds between switches: `switching:2000`
    rounds: int
    seeds: int

    @property
    def losses(self) -> dict[str, Any]:
        """The adversary as `amdp.Game` takes it."""
        name, _, every = self.adversary.partition(":")
        return {"name": name, "every": int(every)} if every else {"name": name}


@dataclass(frozen=True)
class Run:
    """One game of one learner."""

    setting: Setting
    learner: str
    multiplier: float | None  # None: nothing to multiply
    seed: int

    @property
    def file(self) -> str:
        """The name of its result: the number of seeds does not decide it."""
        world, adversary, rounds, _ = self.setting
        rate = "own" if self.multiplier is None else f"x{self.multiplier:g}"
        return f"{self.learner}_{rate}_{world}_{adversary.replace(':', '-')}_{rounds}_{self.seed}.json"

    def measured(self) -> dict[str, float]:
        """The regret against the best policy in hindsight, and the learner's seconds."""
        setting = self.setting
        game = Game(setting.world, setting.losses, setting.rounds, seed=self.seed)
        settings: dict[str, Any] = {}
        if self.multiplier is not None:
            (family,) = (family for family in FAMILIES if family.fixed == self.learner)
            settings = {**family.settings, "multiplier": self.multiplier}
        run = play(game, self.learner, self.seed, checkpoints=[setting.rounds], progress=False, **settings)
        return {"regret": float(run.regret[-1]), "seconds": run.seconds}


class Sizes(NamedTuple):
    """How much is played."""

    multipliers: tuple[float, ...]
    still: tuple[Setting, ...]  # Bernoulli losses with fixed means: in the figure
    changing: tuple[Setting, ...]


WORLDS = ("tiny", "random-dense", "river-swim", "forest", "lock")
SHORT_LENGTHS, LONG = (1_000, 5_000), 30_000
SEEDS, CHANGING_SEEDS = 20, 5
CHANGING = ("switching:2000", "switching:100", "sinusoid")  # the last one drifts: two slow waves in a game


def full_sizes(seeds_long: int) -> Sizes:
    """The study, with so many seeds of the longest games with fixed means."""
    seeds = dict.fromkeys(SHORT_LENGTHS, SEEDS) | {LONG: seeds_long}
    return Sizes(
        multipliers=(1.0, 4.0, 16.0, 64.0, 256.0),
        still=tuple(Setting(world, "bernoulli", k, count) for world, (k, count) in product(WORLDS, seeds.items())),
        changing=tuple(
            Setting(world, adversary, LONG, CHANGING_SEEDS) for world, adversary in product(WORLDS[:2], CHANGING)
        ),
    )


QUICK = Sizes(
    multipliers=(1.0, 16.0),
    still=tuple(Setting(world, "bernoulli", k, 2) for world, k in product(WORLDS[:2], (20, 40))),
    changing=(Setting("tiny", "switching:20", 40, 2), Setting("tiny", "sinusoid", 40, 2)),
)


# --- numbers ----------------------------------------------------------------------------------------------------------


class Mean(NamedTuple):
    """A mean over seeds and its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, samples: Floats) -> "Mean":
        """Of one number a seed; without an error if there is only one seed."""
        spread = float(samples.std(ddof=1)) / sqrt(len(samples)) if len(samples) >= LEAST_SEEDS else nan
        return cls(float(samples.mean()), spread)

    def shown(self, digits: int = 1) -> str:
        """As in a table."""
        return f"{self.value:,.{digits}f} ± {self.error:,.{digits}f}"


def ratio(above: Floats, below: Floats) -> Mean:
    """The ratio of two means over the same seeds; its error is to first order that of `above - ratio * below`."""
    value = float(above.mean() / below.mean())
    return Mean(value, Mean.of(above - value * below).error / abs(float(below.mean())))


class Cell(NamedTuple):
    """The regrets of a family in one setting, an entry for each seed."""

    setting: Setting
    fixed: dict[float, Floats]  # by multiplier
    adaptive: Floats
    uniform: Floats

    @property
    def best(self) -> float:
        """The multiplier of the least mean regret."""
        return min(self.fixed, key=lambda multiplier: float(self.fixed[multiplier].mean()))

    @property
    def has_ratio(self) -> bool:
        """Whether the best fixed rate has a regret above two standard errors: else a ratio would mean nothing."""
        mean = Mean.of(self.fixed[self.best])
        return mean.value > 2.0 * float(np.nan_to_num(mean.error))

    @property
    def ratio(self) -> Mean:
        """The adaptive regret over that of the best fixed rate."""
        return ratio(self.adaptive, self.fixed[self.best])

    @property
    def more(self) -> Mean:
        """The adaptive regret less that of the best fixed rate."""
        return Mean.of(self.adaptive - self.fixed[self.best])

    @property
    def is_remarkable(self) -> bool:
        """Whether the adaptive rate pays markedly more: by the ratio, or by two standard errors if there is none."""
        if self.has_ratio:
            return self.ratio.value > REMARKABLE
        return self.more.value > 2.0 * self.more.error


def runs(sizes: Sizes) -> Iterator[Run]:
    """All games, short ones first."""
    for setting in sorted((*sizes.still, *sizes.changing), key=lambda setting: setting.rounds):
        for seed in range(setting.seeds):
            yield Run(setting, UNIFORM, None, seed)
            for family in FAMILIES:
                yield Run(setting, family.adaptive, None, seed)
                yield from (Run(setting, family.fixed, multiplier, seed) for multiplier in sizes.multipliers)


def cell(results: Mapping[Run, Mapping[str, float]], family: Family, setting: Setting, sizes: Sizes) -> Cell:
    """What was measured of a family in a setting."""

    def regrets(learner: str, multiplier: float | None) -> Floats:
        games = (Run(setting, learner, multiplier, seed) for seed in range(setting.seeds))
        return np.array([results[game]["regret"] for game in games])

    fixed = {multiplier: regrets(family.fixed, multiplier) for multiplier in sizes.multipliers}
    return Cell(setting, fixed, regrets(family.adaptive, None), regrets(UNIFORM, None))


# --- tables -----------------------------------------------------------------------------------------------------------

NOTES = """Regrets are means over the seeds, ± one standard error. The best fixed rate is theory's for this K times the
multiplier of the least mean regret over the same seeds. Ratio: adaptive regret over that of the best fixed rate; where
the latter is not above two standard errors (against losses that change it may be negative) the difference stands
instead."""
HEADS = ("world", "losses", "K", "seeds", "best fixed rate", "its regret", "adaptive regret", "ratio", "uniform policy")


def report(cells: Mapping[Family, Sequence[Cell]]) -> str:
    """The page: for each family its table, what one multiplier for all would cost, and the remarkable ratios."""
    return "\n\n".join([NOTES, *(block for family, found in cells.items() for block in _section(family, found))]) + "\n"


def _section(family: Family, cells: Sequence[Cell]) -> Iterator[str]:
    yield f"## {family.title}: `{family.adaptive}` against `{family.fixed}`"
    if family.remark:
        yield family.remark
    yield _table(HEADS, [_row(one) for one in cells])
    still = [one for one in cells if one.setting.adversary == "bernoulli" and one.has_ratio]
    if still:
        yield "One choice for all worlds and lengths with fixed means, as a multiple of the best multiplier's regret:"
        yield _table(("rate", "geometric mean", "worst", "worst in"), list(_one_for_all(still)))
    yield f"Ratios above {REMARKABLE:g}, and differences above two standard errors where there is no ratio:"
    yield "\n".join(f"- {statement(one)}" for one in cells if one.is_remarkable) or "None."


def _row(one: Cell) -> list[str]:
    world, adversary, rounds, seeds = one.setting
    fixed, adaptive = Mean.of(one.fixed[one.best]), Mean.of(one.adaptive)
    times = one.ratio.shown(2) if one.has_ratio else f"none; difference {one.more.shown()}"
    uniform = f"{float(one.uniform.mean()):,.0f}"
    means = fixed.shown(), adaptive.shown()
    return [world, adversary, f"{rounds:,}", str(seeds), f"x{one.best:g}", *means, times, uniform]


def _one_for_all(cells: Sequence[Cell]) -> Iterator[list[str]]:
    """What a choice made without looking at the world costs: each multiplier, and the adaptive rate."""
    choices: dict[str, list[Floats]] = {
        f"x{factor:g}": [one.fixed[factor] for one in cells] for factor in cells[0].fixed
    }
    choices["adaptive"] = [one.adaptive for one in cells]
    for name, regrets in choices.items():
        ratios = [ratio(mine, one.fixed[one.best]).value for mine, one in zip(regrets, cells, strict=True)]
        worst = int(np.argmax(ratios))
        middle = exp(float(np.mean([log(max(value, 1e-9)) for value in ratios])))
        place = cells[worst].setting
        yield [name, f"{middle:.2f}", f"{ratios[worst]:.2f}", f"{place.world}, K = {place.rounds:,}"]


def statement(one: Cell) -> str:
    """What a remarkable ratio amounts to: its size, whether seeds explain it, how sharply the rate matters."""
    world, adversary, rounds, _ = one.setting
    part = 100.0 * one.more.value / abs(float(one.uniform.mean()))
    share = f"{one.more.shown()} more ({part:.1f} % of what the uniform policy loses)"
    size = f"{one.ratio.shown(2)} times the regret of x{one.best:g}, {share}." if one.has_ratio else f"{share}."
    words = [f"**{world}, {adversary}, K = {rounds:,}**: {size}"]
    if one.has_ratio:
        words += [_certainty(one), _sharpness(one)]
    if one.best == max(one.fixed):
        words.append("The best multiplier is the greatest that was tried: a greater one may be better still.")
    return " ".join(words)


def _certainty(one: Cell) -> str:
    if one.ratio.value - 2.0 * one.ratio.error > REMARKABLE:
        return f"It is above {REMARKABLE:g} by more than two standard errors."
    return f"With {one.setting.seeds} seeds it is not above {REMARKABLE:g} by two standard errors."


def _sharpness(one: Cell) -> str:
    """What the other multipliers pay: the price of not knowing the best one."""
    others = sorted(factor for factor in one.fixed if factor != one.best)
    paid = (f"x{factor:g} {ratio(one.fixed[factor], one.fixed[one.best]).value:.2f}" for factor in others)
    return f"Other multipliers, in times of the best: {', '.join(paid)}."


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(markdown(heads, rows))


# --- the figure -------------------------------------------------------------------------------------------------------


def figure(cells: Mapping[Family, Sequence[Cell]]) -> Figure:
    """Fixed regret over adaptive regret against the multiplier: a row a family, a column a world, a curve a length."""
    worlds = list(dict.fromkeys(one.setting.world for found in cells.values() for one in found))
    size = (1.2 + 1.65 * len(worlds), 0.9 + 1.75 * len(cells))
    made, grid = pyplot.subplots(
        len(cells), len(worlds), figsize=size, layout="constrained", squeeze=False, sharex=True, sharey=True
    )
    for row, (family, found) in zip(grid, cells.items(), strict=True):
        row[0].set_ylabel(f"{family.title}\nfixed / adaptive")
        for axes, world in zip(row, worlds, strict=True):
            _panel(axes, [one for one in found if one.setting.world == world])
    for axes, world in zip(grid[0], worlds, strict=True):
        axes.set_title(world)
    highest = 1.2 * max(float(axes.get_ylim()[1]) for axes in grid.flat)
    for axes in grid.flat:
        axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(LEAST_SHOWN, highest)
    made.supxlabel("multiplier of theory's rate", fontsize=STYLE["font.size"])
    handles, labels = grid.flat[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return made


def _panel(axes: Axes, cells: Sequence[Cell]) -> None:
    axes.axhline(1.0, color="black", linewidth=1.1, label="adaptive rate")
    axes.axhline(1.0 / REMARKABLE, color=GRAY, linewidth=0.9, linestyle=":", label=f"adaptive / {REMARKABLE:g}")
    for place, one in enumerate(cells):
        multipliers = list(one.fixed)
        nudged = np.array(multipliers) * 1.12 ** (place - (len(cells) - 1) / 2)  # bars beside each other
        ratios = [ratio(regrets, one.adaptive) for regrets in one.fixed.values()]
        bars = [2.0 * float(np.nan_to_num(mean.error)) for mean in ratios]
        look: dict[str, Any] = {"color": COLORS[place], "marker": MARKERS[place], "markersize": 3.5, "linewidth": 1.2}
        label = f"K = {one.setting.rounds:,}"
        axes.errorbar(nudged, [mean.value for mean in ratios], bars, label=label, elinewidth=0.9, capsize=1.5, **look)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(multipliers, [f"{factor:g}" for factor in multipliers])
    axes.xaxis.set_minor_locator(NullLocator())


# --- the command ------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where every run leaves a file; runs that have one are not repeated")
    parser.add_argument("--workers", type=int, default=2, help="processes that play")
    parser.add_argument("--seeds-long", type=int, default=SEEDS, help=f"seeds of the games of {LONG:,} rounds")
    parser.add_argument("--still", action="store_true", help="leave out the losses that change")
    parser.add_argument("--quick", action="store_true", help="seconds instead of hours; the figure goes to the folder")
    asked = parser.parse_args(arguments)
    sizes = QUICK if asked.quick else full_sizes(asked.seeds_long)
    if asked.still:
        sizes = sizes._replace(changing=())
    with workers(asked.quick, asked.workers) as executor:
        results = gathered(runs(sizes), asked.folder, executor)
    of = partial(cell, results, sizes=sizes)
    page = report({family: [of(family, setting) for setting in (*sizes.still, *sizes.changing)] for family in FAMILIES})
    (asked.folder / f"{NAME}.md").write_text(page)
    print(page)
    matplotlib.use("svg")
    with matplotlib.rc_context(STYLE):
        drawing = figure({family: [of(family, setting) for setting in sizes.still] for family in FAMILIES})
        drawing.savefig((asked.folder if asked.quick else FIGURES) / f"{NAME}.svg", metadata={"Date": None})
        pyplot.close(drawing)
    print(f"drawn: {NAME}.svg")


def workers(quick: bool, count: int) -> Executor:
    """One thread for the quick form, otherwise processes with one core each."""
    if quick:
        return ThreadPoolExecutor(1)
    one_thread()  # what is spawned inherits it: each worker has one core
    return ProcessPoolExecutor(count, get_context("spawn"))


if __name__ == "__main__":
    main()
