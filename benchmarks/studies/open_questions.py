"""The paper's open questions, measured: draws docs/figures/open-*.svg, writes the tables of docs/open-questions.md.

python -m benchmarks.studies.open_questions FOLDER [QUESTION ...]
"""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from amdp.arrays import Floats
from amdp.experiments.engines import ExternalExecutor
from amdp.experiments.ladders import Ladder, spec_of
from amdp.experiments.runner import run
from amdp.experiments.spec import Role, Spec
from amdp.experiments.storage import Store
from amdp.report.drawing import COLORS, MARKERS, STYLE, plain_logarithms
from amdp.report.rates import fit_ladders
from amdp.report.statistics import Estimate, MeanBand, sign_flips
from benchmarks.page import DOCS, markdown, put
from benchmarks.studies.choosing import least, seeds_apart
from benchmarks.studies.curves import FIGURES
from benchmarks.studies.rivers import CURRENTS, EDGES, LEARNERS, Swim
from benchmarks.studies.stability import NOISES, Stability, single_step_ratio
from benchmarks.studies.tasks import gathered

PAGE = DOCS / "open-questions.md"
WORKERS = 2
BAND = MeanBand()
SEED = 5  # of the bootstrap
ESTIMATORS = ("ftpl-shared", "ftpl-delay-adapted")
LATE = (  # world, losses, delay
    ("tiny", "switching", "fixed:20"),
    ("tiny", "switching", "fixed:100"),
    ("tiny", "switching", "bursts:100:100"),
    ("lock", "bernoulli", "fixed:100"),
)
STREAMS = ("ftpl-infinite", "hedge-infinite")
PANELS = {
    "more": "regret above that of the chosen Laplace",
    "movement": "sum of |p_k - p_k+1|",
    "ratio": "stability / (squares / deviation)",
}
VISITS = (1.0, 0.1, 0.01)
HARD = ("hidden-walk", "bernoulli")  # and the same means without the walk
PROVED = {"ftpl-infinite": 5 / 6, "hedge-infinite": 2 / 3}  # for policies that are entered in every epoch
STILL = ("still", "told the first kernel")  # in which river, and by whom, the rate of all swimmers is chosen
SHORT = {"ftpl-infinite": "FTPL", "hedge-infinite": "Hedge", "ftpl-shared": "plain", "ftpl-delay-adapted": "adapted"}


class Sizes(NamedTuple):
    """How much is played."""

    tries: int  # seeds, apart from those that are reported, on which rates and noises are chosen
    episodes: int
    multipliers: tuple[float, ...]
    late_seeds: int
    rungs: tuple[int, ...]
    stream_seeds: int
    stability_rounds: int
    deviations: tuple[float, ...]
    stability_seeds: int
    swims: int
    swim_multipliers: tuple[float, ...]
    swim_seeds: int


FULL = Sizes(
    tries=8,
    episodes=2_000,
    multipliers=(8.0, 32.0, 128.0, 512.0, 2_048.0),
    late_seeds=50,
    rungs=(500, 1_000, 2_000, 4_000, 8_000, 16_000),
    stream_seeds=16,
    stability_rounds=1_000,
    deviations=(0.01, 0.03, 0.1, 0.3, 1.0),
    stability_seeds=20,
    swims=2_000,
    swim_multipliers=(2.0, 8.0, 32.0, 128.0),
    swim_seeds=20,
)
QUICK = Sizes(
    tries=1,
    episodes=30,
    multipliers=(8.0, 32.0),
    late_seeds=2,
    rungs=(60, 120),
    stream_seeds=2,
    stability_rounds=30,
    deviations=(0.1, 0.3),
    stability_seeds=2,
    swims=32,
    swim_multipliers=(8.0,),
    swim_seeds=2,
)


def interval(samples: Floats) -> Estimate:
    """Mean over seeds with a bootstrap interval of 95 %."""
    return BAND.of(samples[:, None], np.random.default_rng(SEED))


def words(found: Estimate, digits: int = 1) -> str:
    """A mean and the ends of its interval, if there are seeds enough for one."""
    value, low, high = (f"{float(np.ravel(part)[0]):,.{digits}f}" for part in found)
    return f"{value} [{low}, {high}]" if np.isfinite(found.low).all() else value


class Answer(NamedTuple):
    """What came of a question."""

    figure: Figure
    tables: Mapping[str, list[str]]  # by their places on the page


# --- 1: estimates that look at the delay ------------------------------------------------------------------------------


class Late(NamedTuple):
    """An estimator at a multiple of the theorem's rate."""

    name: str
    multiplier: float

    @property
    def label(self) -> str:
        """In a spec."""
        return f"{self.name} x{self.multiplier:g}"


def delay_spec(sizes: Sizes, seeds: Iterable[int], players: Mapping[str, Iterable[Late]]) -> Spec:
    """Those who play each game, on these seeds."""
    games: dict[Late, list[str]] = {}
    for game, several in players.items():
        for one in several:
            games.setdefault(one, []).append(game)
    return Spec.from_dict(
        {
            "title": "delay-adapted estimates",
            "seeds": list(seeds),
            "checkpoints": 2,
            "baseline": False,
            "learners": [
                {"label": one.label, "name": one.name, "multiplier": one.multiplier, "games": played}
                for one, played in games.items()
            ],
            "games": [
                {
                    "label": f"{world}, {losses}, {delay}",
                    "instance": world,
                    "losses": losses,
                    "episodes": sizes.episodes,
                    "delay": delay,
                }
                for world, losses, delay in LATE
            ],
        }
    )


def final_regrets(spec: Spec, store: Store) -> dict[tuple[str, str], Floats]:
    """By game and learner, the seeds in their order."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in spec.first():
        if one.role is Role.THEORY:
            found.setdefault((one.game, one.learner), []).append(store.read(one.id).final_regret)
    return {pair: np.array(values) for pair, values in found.items()}


def delays(folder: Path, sizes: Sizes, workers: Executor) -> Answer:
    """Does a delay-adapted estimator help FTPL?"""
    every = [Late(name, factor) for name, factor in product(ESTIMATORS, sizes.multipliers)]
    games = [", ".join(one) for one in LATE]
    with Store(folder / "delays") as store:
        tries = _late(delay_spec(sizes, seeds_apart(sizes.tries), dict.fromkeys(games, every)), store, workers)
        chosen = {game: [_best(tries, game, name, sizes.multipliers) for name in ESTIMATORS] for game in games}
        regrets = _late(delay_spec(sizes, range(sizes.late_seeds), chosen), store, workers)
    rows = []
    for game, best in chosen.items():
        plain, adapted = (regrets[game, one.label] for one in best)
        chance = sign_flips(adapted - plain, np.random.default_rng(SEED)).p
        shown = [f"{words(interval(regrets[game, one.label]))} (x{one.multiplier:g})" for one in best]
        rows.append([game, *shown, words(interval(adapted - plain)), f"{chance:.2g}"])
    heads = ["world, losses, delay", "plain, chosen rate", "adapted, chosen rate", "adapted - plain", "p"]
    tables = {"open-delays": markdown(heads, rows), "open-delays-rates": _per_rate(tries, games, sizes)}
    return Answer(_tries_drawn(tries, games, sizes), tables)


def _late(spec: Spec, store: Store, workers: Executor) -> dict[tuple[str, str], Floats]:
    run(spec, store, ExternalExecutor(workers, WORKERS))
    return final_regrets(spec, store)


def _best(tries: Mapping[tuple[str, str], Floats], game: str, name: str, multipliers: Iterable[float]) -> Late:
    return Late(name, least({factor: tries[game, Late(name, factor).label] for factor in multipliers}))


def _tries_drawn(tries: Mapping[tuple[str, str], Floats], games: Sequence[str], sizes: Sizes) -> Figure:
    figure, grid = _grid(2, 2)
    for axes, game in zip(grid.flat, games, strict=True):
        for place, name in enumerate(ESTIMATORS):
            means = [interval(tries[game, Late(name, factor).label]) for factor in sizes.multipliers]
            _points(axes, place, SHORT[name], sizes.multipliers, means)
        axes.set(xscale="log", title=game)
    for axes in grid[-1]:
        axes.set_xlabel("multiple of the theorem's rate")
    return _finished(figure, grid, "regret", sizes.multipliers)


def _per_rate(tries: Mapping[tuple[str, str], Floats], games: Iterable[str], sizes: Sizes) -> list[str]:
    """The difference at every rate, on the seeds of the tries."""
    rows = []
    for game, factor in product(games, sizes.multipliers):
        plain, adapted = (tries[game, Late(name, factor).label] for name in ESTIMATORS)
        rows.append([game, f"x{factor:g}", words(interval(plain)), words(interval(adapted - plain))])
    return markdown(["world, losses, delay", "rate", "plain", "adapted - plain"], rows)


# --- 2: other noises --------------------------------------------------------------------------------------------------


def noises(folder: Path, sizes: Sizes, workers: Executor) -> Answer:
    """Do other perturbations change the stability?"""
    tasks = {
        (noise, spread): [
            Stability(noise, spread, sizes.stability_rounds, seed)
            for seed in (*range(sizes.stability_seeds), *seeds_apart(sizes.tries))
        ]
        for noise, spread in product(NOISES, sizes.deviations)
    }
    results = gathered((one for several in tasks.values() for one in several), folder / "noises", workers)
    found, tried = (
        {pair: _columns([results[one] for one in several[part]]) for pair, several in tasks.items()}
        for part in _parts(sizes.stability_seeds)
    )
    for columns in found.values():
        columns["ratio"] = columns["stability"] * columns["deviation"] / columns["squares"]
    best = {noise: least({spread: tried[noise, spread]["regret"] for spread in sizes.deviations}) for noise in NOISES}
    reference = found["laplace", best["laplace"]]["regret"]  # in games of the same losses
    for columns in found.values():
        columns["more"] = columns["regret"] - reference
    figure, grid = _grid(1, len(PANELS))
    for axes, (column, title) in zip(grid.flat, PANELS.items(), strict=True):
        for place, noise in enumerate(NOISES):
            means = [interval(found[noise, spread][column]) for spread in sizes.deviations]
            nudged = np.array(sizes.deviations) * 1.06 ** (place - 1.5)  # bars beside each other
            _points(axes, place, noise, nudged, means)
        axes.set(xscale="log", title=title, xlabel="deviation of the noise / sqrt(HSAK)")
    grid[0, 1].set_yscale("log")
    rows = []
    for noise in NOISES:
        columns = found[noise, best[noise]]
        shown = [words(interval(columns[name]), 2 if name == "ratio" else 1) for name in ("regret", *PANELS)]
        greatest = max(float(found[noise, spread]["ratio"].max()) for spread in sizes.deviations)
        steps = [f"{single_step_ratio(noise, chance):.3g}" for chance in VISITS]
        rows.append([noise, f"{best[noise]:g}", *shown, f"{greatest:.2f}", *steps])
    heads = [
        "noise",
        "chosen deviation",
        "regret",
        "more than Laplace",
        "movement",
        "ratio",
        "greatest ratio of a game",
    ]
    heads += [f"single step, chance {chance:g}" for chance in VISITS]
    return Answer(_finished(figure, grid, ""), {"open-noises": markdown(heads, rows)})


def _parts(seeds: int) -> tuple[slice, slice]:
    """Of seeds in their order: those that are reported, and those of the tries."""
    return slice(seeds), slice(seeds, None)


def _columns(results: Sequence[dict[str, float]]) -> dict[str, Floats]:
    return {name: np.array([one[name] for one in results]) for name in results[0]}


# --- 3: the exponent on the hard instance -----------------------------------------------------------------------------


def stream_ladders(sizes: Sizes) -> list[Ladder]:
    """Each length tuned for itself; the good arm is not the one that the stream starts at."""
    world = {"name": "switching-bandit", "n_arms": 2, "seed": 0}
    return [
        Ladder(name, "steps", sizes.rungs, {"instance": world, "losses": losses}, {"name": name}, PROVED[name])
        for losses, name in product(HARD, STREAMS)
    ]


def exponents(folder: Path, sizes: Sizes, workers: Executor) -> Answer:
    """What does the regret of infinite-horizon FTPL grow like where switching is hard?"""
    ladders = stream_ladders(sizes)
    spec = spec_of("hidden walks", ladders, sizes.stream_seeds)
    with Store(folder / "streams") as store:
        run(spec, store, ExternalExecutor(workers, WORKERS))
        fits = fit_ladders(spec, store, ladders)
        samples = final_regrets(spec, store)
        switches = {pair: _entering(spec, store, pair) for pair in samples}
    figure, grid = _grid(1, len(HARD))
    rows = []
    for axes, losses in zip(grid[0], HARD, strict=True):
        for place, one in enumerate(one for one in fits if one.ladder.game["losses"] == losses):
            ladder = one.ladder
            pairs = [(ladder.label(rung), ladder.player) for rung in ladder.rungs]
            means = [interval(samples[pair]) for pair in pairs]
            _points(axes, place, SHORT[ladder.name], np.array(ladder.rungs), means)
            _slope(axes, ladder.rungs, one.regret, PROVED[ladder.name], COLORS[place])
            paid = [f"{words(mean, 0)}; {switches[pair].mean():.0f}" for pair, mean in zip(pairs, means, strict=True)]
            rows.append([f"{SHORT[ladder.name]}, {losses}", *paid, words(one.exponent, 2), f"{ladder.proved:.2f}"])
        axes.set(xscale="log", yscale="log", xlabel="steps T", title=f"switching bandit, {losses}")
    heads = ["learner, losses", *(f"T = {rung:,}" for rung in sizes.rungs), "exponent", "proved"]
    return Answer(_finished(figure, grid, "regret", sizes.rungs), {"open-exponents": markdown(heads, rows)})


def _entering(spec: Spec, store: Store, pair: tuple[str, str]) -> Floats:
    records = (store.read(one.id) for one in spec.first() if (one.game, one.learner) == pair)
    return np.array([one.curve.paid_entering[-1] for one in records if one.curve])


def _slope(axes: Axes, x: Sequence[int], y: Floats, exponent: float, color: str) -> None:
    """A power through the geometric middle of the points."""
    middle = np.exp(np.log(x).mean()), np.exp(np.log(np.abs(y)).mean())
    axes.plot(x, middle[1] * (np.array(x) / middle[0]) ** exponent, "--", color=color, linewidth=1.0)


# --- 4: kernels that change -------------------------------------------------------------------------------------------


def rivers(folder: Path, sizes: Sizes, workers: Executor) -> Answer:
    """What do learners pay that are not told that the current changes?"""
    rate = _swimming_rate(folder / "rivers", sizes, workers)
    tasks = {
        (current, learner): [Swim(current, learner, sizes.swims, seed, rate) for seed in range(sizes.swim_seeds)]
        for current, learner in product(CURRENTS, LEARNERS)
    }
    results = gathered((one for several in tasks.values() for one in several), folder / "rivers", workers)
    figure, grid = _grid(2, 2)
    rows = []
    for axes, current in zip(grid.flat, CURRENTS, strict=True):
        for place, learner in enumerate(LEARNERS):
            whole = [one for one in (results[task] for task in tasks[current, learner]) if not one["empty"]]
            empty = f"{sizes.swim_seeds - len(whole)} of {sizes.swim_seeds}"
            if not whole:
                rows.append([current, learner, "", "", "", empty])
                continue
            columns = _columns(whole)
            counts = range(min(EDGES, sizes.swims))
            _points(axes, place, learner, np.array(counts), [interval(columns[f"changes {m}"]) for m in counts])
            shown = [words(interval(columns[name]), 0) for name in ("changes 0", f"changes {counts[-1]}", "dynamic")]
            rows.append([current, learner, *shown, empty])
        axes.set(title=current, xticks=range(0, EDGES, 3))
    for axes in grid[-1]:
        axes.set_xlabel("changes that the comparator is allowed")
    heads = ["current", "learner", "static", f"{EDGES - 1} changes", "each round", "empty boxes"]
    return Answer(_finished(figure, grid, "regret"), {"open-rivers": markdown(heads, rows)})


def _swimming_rate(folder: Path, sizes: Sizes, workers: Executor) -> float:
    """The multiple of the theorem's rate for all: the best of who knows a river that stays, on seeds of the tries."""
    tries = {
        factor: [Swim(*STILL, sizes.swims, seed, factor) for seed in seeds_apart(sizes.tries)]
        for factor in sizes.swim_multipliers
    }
    results = gathered((one for several in tries.values() for one in several), folder, workers)
    regrets = {factor: np.array([results[one]["changes 0"] for one in several]) for factor, several in tries.items()}
    shown = ", ".join(f"x{factor:g} {float(regret.mean()):,.0f}" for factor, regret in regrets.items())
    best = least(regrets)
    print(f"rate x{best:g} chosen for all: {shown}")
    return best


# --- figures and the command ------------------------------------------------------------------------------------------


def _grid(rows: int, columns: int) -> tuple[Figure, Any]:
    return pyplot.subplots(
        rows, columns, figsize=(1.2 + 3.3 * columns, 0.9 + 2.5 * rows), layout="constrained", squeeze=False
    )


def _points(axes: Axes, place: int, label: str, x: Any, means: Sequence[Estimate]) -> None:
    value, low, high = (np.array([float(np.ravel(part)[0]) for part in column]) for column in zip(*means, strict=True))
    bars = np.abs(np.nan_to_num(np.stack([value - low, high - value])))
    look: dict[str, Any] = {"color": COLORS[place], "marker": MARKERS[place], "capsize": 2.5, "elinewidth": 1.0}
    axes.errorbar(x, value, bars, label=label, **look)


def _finished(figure: Figure, grid: Any, label: str, ticks: Sequence[float] = ()) -> Figure:
    for axes in grid[:, 0]:
        axes.set_ylabel(label)
    for axes in grid.flat:
        plain_logarithms(axes)
        if ticks:
            axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
            axes.set_xticks([], minor=True)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=2 if len(labels) > 3 else len(labels), frameon=False
    )
    return figure


QUESTIONS: dict[str, Callable[[Path, Sizes, Executor], Answer]] = {
    "delays": delays,
    "noises": noises,
    "exponents": exponents,
    "rivers": rivers,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where every run leaves a file; runs that have one are not repeated")
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=f"of {', '.join(QUESTIONS)}; all if none")
    parser.add_argument(
        "--quick", action="store_true", help="a small form; its figures go to the folder, no page is written"
    )
    given = parser.parse_args(arguments)
    unknown = set(given.questions) - set(QUESTIONS)
    if unknown:
        parser.error(f"no question {', '.join(sorted(unknown))}; known: {', '.join(QUESTIONS)}")
    matplotlib.use("svg")
    place = given.folder if given.quick else FIGURES
    given.folder.mkdir(parents=True, exist_ok=True)
    with _workers(given.quick) as workers, matplotlib.rc_context(STYLE):
        for name in given.questions or QUESTIONS:
            answer = QUESTIONS[name](given.folder, QUICK if given.quick else FULL, workers)
            answer.figure.savefig(place / f"open-{name}.svg", metadata={"Date": None})
            pyplot.close(answer.figure)
            for part, lines in answer.tables.items():
                print("\n".join(lines), flush=True)
                if not given.quick:
                    put(PAGE, part, lines)


def _workers(quick: bool) -> Executor:
    return ThreadPoolExecutor(1) if quick else ProcessPoolExecutor(WORKERS, get_context("spawn"))


if __name__ == "__main__":
    main()
