"""The runs of a study: one small file of JSON for each, so that a study that was stopped goes on where it was."""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amdp import BernsteinBox, Kernel, MarkovPolicies, Radius, instances, losses
from amdp.algorithms.estimators.resampling import GeometricResampling, SharedResampling
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, LiteralFtpl
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.blocks import Block
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame, play_blocks
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.instances import Instance
from amdp.losses import LossSequence
from benchmarks.timing import one_thread

WORKERS = 2
LEARNERS: dict[str, type[Ftpl]] = {"fresh": Ftpl, "fixed": LiteralFtpl}


class Run(NamedTuple):
    """One game, tuned for its own number of rounds; all that is needed to repeat it."""

    world: str
    losses: str
    rounds: int
    seed: int
    noise: str = "fresh"
    multiplier: float = 1.0  # of the theorem's rate
    delay: str = "none"
    told_of_delay: bool = True  # whether the rate is tuned for it
    radius_scale: float | None = None  # None: the kernel is known
    shared: bool = True  # trials serve all steps

    @property
    def file(self) -> str:
        """The name of its file."""
        return "_".join(str(value).replace(":", "-") for value in self) + ".json"


class Result(NamedTuple):
    """What a run gave."""

    run: Run
    regret: float
    total_delay: int
    cut: float  # of the rows that were met, the share whose box no longer allows everything
    seconds: float  # of the learner


def two_arms() -> Instance:
    """One step, one state, two actions that cost 0.6 and 0.4."""
    return Instance("two arms", Kernel.homogeneous(np.ones((1, 2, 1)), 1), np.array([[[0.6, 0.4]]]))


def short_lock() -> Instance:
    """A lock of two digits and four steps: who does not know where a button leads presses at random."""
    return instances.lock((1, 0), n_steps=4)


WORLDS: dict[str, Callable[[], Instance]] = {**instances.standard(), "two-arms": two_arms, "short-lock": short_lock}


def adversary(run: Run, world: Instance, late: Delays) -> LossSequence:
    """By the names of the library, and `coins`: fair coins, thrown again only when the feedback on them is there."""
    if run.losses != "coins":
        return losses.named(run.losses, world.shape, run.rounds, run.seed, world.costs)
    every = int(late.values.max()) + 1
    fair = losses.repeated(np.full(world.shape, 0.5), -(-run.rounds // every))
    return losses.switching(losses.bernoulli(fair, run.seed), every, run.rounds)


def executed(run: Run) -> Result:
    """Play one game."""
    world = WORLDS[run.world]()
    late = delays.parse(run.delay, run.rounds, np.random.default_rng(run.seed))
    game = ArenaGame(Episodic(world.kernel, world.initial), adversary(run, world, late), late)
    told = _told(run, world)
    total = late.total_within if run.told_of_delay else 0
    learner = LEARNERS[run.noise].tuned(
        told,
        run.rounds,
        total,
        resampling=SharedResampling if run.shared else GeometricResampling,
        multiplier=run.multiplier,
    )
    watched = Watched(play_blocks(game, learner, told, Streams.from_seed(run.seed)), told)
    regret = measure(game, watched, checkpoints=[run.rounds])
    return Result(run, float(regret.low[-1]), late.total_within, watched.cut, float(regret.learner_seconds[-1]))


def _told(run: Run, world: Instance) -> MarkovPolicies:
    if run.radius_scale is None:
        return MarkovPolicies(world.kernel, world.initial)
    radius = Radius.paper(world.shape, run.rounds, scale=run.radius_scale)
    return MarkovPolicies(BernsteinBox.vacuous(world.shape, radius), world.initial)


class Watched:
    """Blocks of rounds that pass by, and what their segments leave of what the learner was told."""

    def __init__(self, played: Iterator[Block], told: MarkovPolicies) -> None:
        self.played, self.dynamics = played, told.dynamics

    def __iter__(self) -> Iterator[Block]:
        for block in self.played:
            if isinstance(self.dynamics, BernsteinBox):
                for one in block:
                    self.dynamics = self.dynamics.narrow(one.segment)
            yield block

    @property
    def cut(self) -> float:
        """Of the rows that were met, the share in which an entry has an upper end below 1; of a kernel, all."""
        box = self.dynamics
        if not isinstance(box, BernsteinBox) or box.visits is None:
            return 1.0
        met = box.visits.sum(axis=-1) > 0
        return float(np.mean(box.upper[met].min(axis=-1) < 1.0))


def collected(runs: Iterable[Run], folder: Path) -> dict[Run, Result]:
    """The results of all runs; those that have a file in `folder` are read, the others are played, short ones first."""
    wanted = sorted(set(runs), key=lambda run: (run.rounds, run.seed))
    missing = [run for run in wanted if not (folder / run.file).exists()]
    folder.mkdir(parents=True, exist_ok=True)
    if missing:
        one_thread()  # what is spawned inherits it: each worker has one core
        with ProcessPoolExecutor(min(WORKERS, len(missing)), get_context("spawn")) as pool:
            for done, ready in enumerate(as_completed(pool.submit(_write, run, folder) for run in missing), start=1):
                print(f"{done}/{len(missing)} {ready.result()}", flush=True)
    return {run: _read(folder / run.file) for run in wanted}


def _write(run: Run, folder: Path) -> str:
    result = executed(run)._asdict() | {"run": run._asdict()}
    unfinished = folder / (run.file + ".part")
    unfinished.write_text(json.dumps(result))
    unfinished.replace(folder / run.file)  # a file that is there is whole
    return run.file


def _read(file: Path) -> Result:
    written: dict[str, Any] = json.loads(file.read_text())
    return Result(**{**written, "run": Run(**written["run"])})
