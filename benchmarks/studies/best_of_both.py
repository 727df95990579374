"""Best of both worlds: regret against adversaries and in stochastic losses with a gap; tails with implicit exploration.

Growth. `bobw`, `o-reps` and `ftpl-scaled` in one world, each tuned for the length of its own game: Bernoulli losses,
whose means have a gap; uniform losses without one, which cost every learner an order of `sqrt(K)`; and `swap`, in
which what was best becomes worst. Where regret grows as `ln K`, each doubling of the length adds the same.

Tails. `o-reps` and `o-reps-ix` over many seeds, both also at the same rates, so that what implicit exploration does is
told from what a rate does. Bold rates make the tails of estimates show.

Draws docs/figures/best-of-both.svg, prints its tables and writes them to FOLDER/best-of-both.md:

python -m benchmarks.studies.best_of_both FOLDER [--workers 2] [--page FILE] [--quick]
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

import amdp
from amdp.arrays import Floats
from amdp.report.drawing import COLORS, MARKERS, STYLE
from benchmarks.page import markdown, put, require_places
from benchmarks.studies.beyond_table_1 import THREE
from benchmarks.studies.curves import FIGURES
from benchmarks.studies.no_tuning import Mean, workers
from benchmarks.studies.runs import two_arms
from benchmarks.studies.tasks import gathered

NAME = "best-of-both"
BOLD = (1.0, 16.0, 64.0)  # multiples of the rate of `o-reps-ix`
QUANTILES = (0.5, 0.9, 0.99, 1.0)
Results = Mapping["Run", Mapping[str, float]]


class Entry(NamedTuple):
    """A learner with settings, and what it is called in tables."""

    title: str
    learner: str
    settings: tuple[tuple[str, float], ...] = ()


GROWTH = (
    Entry("bobw, log-barrier 0.1", "bobw", (("barrier", 0.1),)),
    Entry("o-reps", "o-reps"),
    Entry("o-reps x8", "o-reps", (("multiplier", 8.0),)),
    Entry("ftpl-scaled", "ftpl-scaled"),
    Entry("ftpl-scaled x16", "ftpl-scaled", (("multiplier", 16.0),)),
)


class Kind(NamedTuple):
    """Games of growing length."""

    world: str
    losses: str
    words: str
    lengths: tuple[int, ...]

    @property
    def title(self) -> str:
        """The world, the losses, and what they are."""
        return f"{self.world}, {self.losses}: {self.words}"


TO_8_000 = (500, 1_000, 2_000, 4_000, 8_000)
TO_64_000 = (*TO_8_000, 16_000, 32_000, 64_000)  # logarithms take long to show
KINDS = (
    Kind("two-arms", "bernoulli", "stochastic, a gap of 0.2", TO_64_000),
    Kind("tiny", "bernoulli", "stochastic, a gap of 0.003", TO_64_000),
    Kind("tiny", "uniform", "stochastic, no gap", TO_8_000),
    Kind("tiny", "swap", "adversary", TO_8_000),
)
PLAIN, IMPLICIT = Entry("o-reps", "o-reps"), Entry("o-reps-ix", "o-reps-ix")


class Sizes(NamedTuple):
    """How much is played."""

    kinds: tuple[Kind, ...]
    seeds: int
    tail_worlds: tuple[str, ...]
    tail_rounds: int
    tail_seeds: int


FULL = Sizes(KINDS, 10, ("tiny",), 1_000, 200)
QUICK = Sizes(tuple(kind._replace(lengths=(20, 40)) for kind in KINDS), 2, ("tiny",), 20, 3)


@dataclass(frozen=True)
class Run:
    """One game of one learner."""

    world: str
    losses: str
    rounds: int
    entry: Entry
    seed: int

    @property
    def file(self) -> str:
        """The name of its result."""
        settings = "".join(f"_{key}={value:g}" for key, value in self.entry.settings)
        return f"{self.entry.learner}{settings}_{self.world}_{self.losses}_{self.rounds}_{self.seed}.json"

    def measured(self) -> dict[str, float]:
        """The regret against the best policy in hindsight, and the learner's seconds."""
        game = _game(self.world, self.losses, self.rounds, self.seed)
        settings: dict[str, Any] = dict(self.entry.settings)
        run = amdp.play(game, self.entry.learner, self.seed, checkpoints=[self.rounds], progress=False, **settings)
        return {"regret": float(run.regret[-1]), "seconds": run.seconds}


def _game(world: str, losses: str, rounds: int, seed: int) -> amdp.Game:
    return amdp.Game(
        two_arms() if world == "two-arms" else amdp.instances.build(**THREE[world]), losses, rounds, seed=seed
    )


def growth_runs(sizes: Sizes) -> Iterator[Run]:
    """The games of the first part."""
    for kind in sizes.kinds:
        for rounds, entry, seed in product(kind.lengths, GROWTH, range(sizes.seeds)):
            yield Run(kind.world, kind.losses, rounds, entry, seed)


def tail_entries(world: str, rounds: int) -> tuple[Entry, ...]:
    """Both learners by theory, and both at the rates of the second one: theory's, and so many times as bold."""
    rate = float(amdp.settings(_game(world, "bernoulli", rounds, 0), IMPLICIT.learner)["rate"])
    alike = (
        pair
        for bold in BOLD
        for pair in (
            Entry(f"o-reps, rate of o-reps-ix x{bold:g}", PLAIN.learner, (("rate", rate), ("multiplier", bold))),
            Entry(f"o-reps-ix x{bold:g}", IMPLICIT.learner, (("multiplier", bold),)),
        )
    )
    return PLAIN, *alike


def tail_runs(sizes: Sizes) -> Iterator[Run]:
    """The games of the second part."""
    for world in sizes.tail_worlds:
        for entry, seed in product(tail_entries(world, sizes.tail_rounds), range(sizes.tail_seeds)):
            yield Run(world, "bernoulli", sizes.tail_rounds, entry, seed)


def regrets(results: Results, world: str, losses: str, rounds: int, entry: Entry, seeds: int) -> Floats:
    """An entry for each seed."""
    return np.array([results[Run(world, losses, rounds, entry, seed)]["regret"] for seed in range(seeds)])


def slope(lengths: Sequence[int], means: Sequence[float]) -> str:
    """The exponent of a power law through the means: about 1/2 for `sqrt(K)`, near 0 for `ln K`; none below zero."""
    if min(means) <= 0.0:
        return "none"
    return f"{np.polyfit([log(length) for length in lengths], [log(mean) for mean in means], 1)[0]:.2f}"


def report(results: Results, sizes: Sizes) -> list[str]:
    """The lines of the page: a table for each kind of losses, and one of quantiles."""
    return [*_growth_tables(results, sizes), *_tail_tables(results, sizes)]


def _growth_tables(results: Results, sizes: Sizes) -> Iterator[str]:
    for kind in sizes.kinds:
        yield f"**{kind.title}**; regret, mean of {sizes.seeds} seeds ± one standard error."
        rows = []
        for entry in GROWTH:
            found = (regrets(results, kind.world, kind.losses, rounds, entry, sizes.seeds) for rounds in kind.lengths)
            means = [Mean.of(each) for each in found]
            exponent = slope(kind.lengths, [mean.value for mean in means])
            rows.append([entry.title, *(mean.shown(0) for mean in means), exponent])
        yield from _spaced(["learner", *(f"K = {rounds:,}" for rounds in kind.lengths), "exponent"], rows)


def _tail_tables(results: Results, sizes: Sizes) -> Iterator[str]:
    for world in sizes.tail_worlds:
        yield f"**{world}, bernoulli, K = {sizes.tail_rounds:,}**: quantiles of regret over {sizes.tail_seeds} seeds."
        rows = []
        for entry in tail_entries(world, sizes.tail_rounds):
            found = regrets(results, world, "bernoulli", sizes.tail_rounds, entry, sizes.tail_seeds)
            numbers = [found.mean(), found.std(ddof=1), *np.quantile(found, QUANTILES)]
            rows.append([entry.title, *(f"{number:,.1f}" for number in numbers)])
        yield from _spaced(["learner", "mean", "deviation", *(f"{100 * q:g} %" for q in QUANTILES)], rows)


def _spaced(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from ("", *markdown(heads, rows), "")


def figure(results: Results, sizes: Sizes) -> Figure:
    """Regret against the length, a panel for each kind of games; the last panel has the distribution of the tails."""
    made, panels = pyplot.subplots(3, 2, figsize=(7.6, 9.0), layout="constrained")
    *growing, tail, spare = panels.flat
    spare.set_axis_off()
    for axes, kind in zip(growing, sizes.kinds, strict=True):
        _growth_panel(axes, results, kind, sizes.seeds)
    _tail_panel(tail, results, sizes)
    made.legend(*growing[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return made


def _growth_panel(axes: Axes, results: Results, kind: Kind, seeds: int) -> None:
    lowest = np.inf
    for place, entry in enumerate(GROWTH):
        found = [regrets(results, kind.world, kind.losses, rounds, entry, seeds).mean() for rounds in kind.lengths]
        lowest = min(lowest, *found)
        axes.plot(kind.lengths, found, label=entry.title, color=COLORS[place], marker=MARKERS[place], markersize=3.5)
    axes.set(xscale="log", xlabel="rounds", ylabel="regret")
    axes.set_title(kind.title, fontsize=9)
    if lowest > 0.0:  # a learner that follows the changes may pay less than the best policy in hindsight
        axes.set_yscale("log")
    shown = kind.lengths[:: 1 + len(kind.lengths) // 5]
    axes.set_xticks(shown, [f"{rounds:,}" for rounds in shown])
    axes.xaxis.set_minor_locator(NullLocator())


def _tail_panel(axes: Axes, results: Results, sizes: Sizes) -> None:
    world, rounds = sizes.tail_worlds[0], sizes.tail_rounds
    for place, entry in enumerate(tail_entries(world, rounds)):
        found = np.sort(regrets(results, world, "bernoulli", rounds, entry, sizes.tail_seeds))
        share = 1.0 - np.arange(len(found)) / len(found)
        axes.plot(found, share, label=entry.title, color=COLORS[place % len(COLORS)], drawstyle="steps-post")
    axes.set(yscale="log", title=f"tails: {world}, K = {rounds:,}", xlabel="regret", ylabel="share of seeds above")
    axes.legend(frameon=False, fontsize=6, loc="upper right")
    axes.set_xlim(right=1.6 * axes.get_xlim()[1])  # room for the legend


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where every run leaves a file; runs that have one are not repeated")
    parser.add_argument("--workers", type=int, default=2, help="processes that play")
    parser.add_argument("--page", type=Path, help="put the tables in their place on this page")
    parser.add_argument("--quick", action="store_true", help="seconds; the figure goes to the folder")
    asked = parser.parse_args(arguments)
    if asked.page:
        require_places(asked.page, [NAME])
    sizes = QUICK if asked.quick else FULL
    with workers(asked.quick, asked.workers) as executor:
        results = gathered([*growth_runs(sizes), *tail_runs(sizes)], asked.folder, executor)
    lines = report(results, sizes)
    text = "\n".join(lines)
    (asked.folder / f"{NAME}.md").write_text(text)
    print(text)
    if asked.page:
        put(asked.page, NAME, lines)
    matplotlib.use("svg")
    with matplotlib.rc_context(STYLE):
        drawing = figure(results, sizes)
        drawing.savefig((asked.folder if asked.quick else FIGURES) / f"{NAME}.svg", metadata={"Date": None})
        pyplot.close(drawing)
    print(f"drawn: {NAME}.svg")


if __name__ == "__main__":
    main()
