"""One episode of each learner in mid-game, side by side: who is cheaper, and from which size on."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from amdp import BernsteinBox, Kernel, MarkovPolicies, Radius, SparseKernel
from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    Resampling,
    SharedResampling,
    SharedScaledResampling,
)
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.ftpl.recipes import ftpl_adaptive
from amdp.algorithms.occupancy.measures import MirrorDescent
from amdp.algorithms.occupancy.recipes import o_reps, uob_reps
from amdp.algorithms.soft_leader import SoftLeader, soft_leader
from amdp.algorithms.task import Task
from amdp.arrays import Policies
from amdp.game.blocks import CompiledBlock
from amdp.game.games import Game
from amdp.game.match import enter
from amdp.instances.base import Instance
from amdp.kernels.blocks import ARENA
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from benchmarks import worlds
from benchmarks.results import Goal, Row, as_long, at_most
from benchmarks.timing import Call, Effort, Times, side_by_side

SEED = 20_262
ROUNDS = 10_000  # what the learners are tuned for
WARM_UP = 20  # rounds before the clock runs
STEPS, ACTIONS = 10, 4
DENSE = (5, 10, 20, 40, 80, 200)
SPARSE = (1_000, 5_000)
BOXES = (5, 10, 20, 40)
NARROW = 0.05  # of the published radius
LONG_BLOCKS, FEW_BLOCKS = 80, 3  # states from which on a few blocks last long enough
PATIENCE = 1_000  # states above which independent trials are left out: tens of seconds an episode

Make = Callable[[MarkovPolicies], Learner[Any]]


def known(effort: Effort) -> Iterator[Row]:
    """Known transitions, bandit feedback: FTPL against O-REPS, dense and sparse."""
    for states in DENSE if effort.seconds else DENSE[:2]:
        shape = (STEPS, states, ACTIONS)
        yield from _compared(worlds.kernel(shape, np.random.default_rng(SEED)), "dense", effort)
    for states in SPARSE if effort.seconds else ():
        rows = worlds.sparse_rows(states, ACTIONS, 4, np.random.default_rng(SEED))
        yield from _compared(SparseKernel.homogeneous(rows, STEPS), "sparse", effort)


def unknown(effort: Effort) -> Iterator[Row]:
    """Unknown transitions, bandit feedback: FTPL over wide and narrow boxes against UOB-REPS."""
    for states in BOXES if effort.seconds else BOXES[:1]:
        shape = (STEPS, states, ACTIONS)
        kernel = worlds.kernel(shape, np.random.default_rng(SEED))
        for width, scale in (("wide box", 1.0), ("narrow box", NARROW)):
            radius = Radius.jin_2020(shape, ROUNDS, scale=scale)
            told = MarkovPolicies(BernsteinBox.from_counts(_visits(kernel, 100), radius))
            yield from _against("UOB-REPS, newton", _uob_reps, OVER_A_BOX, kernel, told, width, effort)


def in_blocks(effort: Effort) -> Iterator[Row]:
    """Known transitions, dense, as games are played: rounds in compiled blocks, the learners' part of them."""
    for states in DENSE if effort.seconds else DENSE[:2]:
        kernel = worlds.kernel((STEPS, states, ACTIONS), np.random.default_rng(SEED))
        games = {name: _block_seconds(kernel, name) for name in ("o-reps", *BLOCK_GOALS)}
        count = min(effort.rounds, FEW_BLOCKS) if states >= LONG_BLOCKS else effort.rounds
        turns = [{name: next(game) for name, game in games.items()} for _ in range(count)]
        times = Times({name: [turn[name] for turn in turns] for name in games})
        for name, goal in BLOCK_GOALS.items():
            yield as_long(
                f"round in a block, {name}", _sizes(kernel.shape), times, name, "o-reps", goal, "by the clock"
            )


def _block_seconds(kernel: Kernel, name: str) -> Iterator[float]:
    """The learner's seconds of a round, one block after the other, without the first."""
    match = enter(Game(Instance("dense", kernel, np.zeros(kernel.shape)), "uniform", ROUNDS), name)
    for block in islice(match.blocks(SEED), 1, None):
        assert isinstance(block, CompiledBlock)
        yield float(block.result.played.spent[:ARENA].sum()) * 1e-9 / len(block)


def _compared(kernel: SingleKernel, kind: str, effort: Effort) -> Iterator[Row]:
    contestants = dict(OVER_A_KERNEL)
    if kernel.shape[1] > PATIENCE:
        del contestants["FTPL, independent trials"]
    if isinstance(kernel, SparseKernel):
        contestants |= {name: (make, SPARSE_GOALS.get(name)) for name, (make, _) in contestants.items()}
    yield from _against("O-REPS, newton", _o_reps, contestants, kernel, MarkovPolicies(kernel), kind, effort)


def _against(
    peer: str,
    peer_make: Make,
    contestants: Mapping[str, tuple[Make, Goal | None]],
    kernel: SingleKernel,
    told: MarkovPolicies,
    note: str,
    effort: Effort,
) -> Iterator[Row]:
    calls = {name: _episode(kernel, told, make) for name, (make, _) in contestants.items()}
    times = side_by_side({**calls, peer: _episode(kernel, told, peer_make)}, _few(effort))
    for name, (_, goal) in contestants.items():
        yield as_long(f"episode, {name}", _sizes(kernel.shape), times, name, peer, goal, note)


def _episode(kernel: SingleKernel, told: MarkovPolicies, make: Make) -> Call:
    """Play, weigh, learn, and find the distribution of the next episode; always from the same mid-game."""
    learner, rng = make(told), np.random.default_rng(SEED)
    tables = np.random.default_rng(SEED + 1)

    def once(distribution: Any, policy: Policies) -> Any:
        segment = kernel.walk(policy, 0, rng.random((kernel.shape[0], 2)))
        weights = learner.weigh(distribution, segment, rng)
        told_now = Bandit.reveal(tables.random(kernel.shape), segment, weights)
        return learner.learn(learner.observe(distribution, segment), told_now)

    distribution = learner.start(told, rng)
    for _ in range(WARM_UP if kernel.shape[1] < PATIENCE else 2):
        distribution = once(distribution, distribution.draw(rng))
    policy = distribution.draw(rng)

    def call() -> object:
        return once(distribution, policy).draw(rng)

    return call


def _visits(kernel: Kernel, each: int) -> np.ndarray:
    """Counts `[h, s, a, y]` after so many visits of each pair."""
    return np.random.default_rng(SEED).multinomial(each, kernel.p)


def _ftpl(resampling: type[Resampling], told: MarkovPolicies) -> Ftpl:
    return Ftpl.tuned(told, ROUNDS, resampling=resampling)


def _soft_leader(told: MarkovPolicies) -> SoftLeader:
    return soft_leader(Task(told, ROUNDS))


def _ftpl_adaptive(told: MarkovPolicies) -> Learner[Any]:
    return ftpl_adaptive(Task(told, ROUNDS))


def _o_reps(told: MarkovPolicies) -> MirrorDescent:
    return o_reps(Task(told, ROUNDS))


def _uob_reps(told: MarkovPolicies) -> MirrorDescent:
    return uob_reps(Task(told, ROUNDS))


OVER_A_KERNEL: dict[str, tuple[Make, Goal | None]] = {
    "FTPL, independent trials": (partial(_ftpl, GeometricResampling), None),
    "FTPL, shared trials": (partial(_ftpl, SharedResampling), None),
    "FTPL, scaled trials": (partial(_ftpl, SharedScaledResampling), at_most(0.5)),
    "FTPL, adaptive": (_ftpl_adaptive, None),
    "soft leader": (_soft_leader, at_most(0.2)),
}
BLOCK_GOALS = {"ftpl-shared": None, "ftpl-scaled": at_most(0.5), "ftpl-adaptive": None, "soft-leader": at_most(0.2)}
SPARSE_GOALS = {"FTPL, scaled trials": at_most(3.0), "soft leader": at_most(0.5)}
OVER_A_BOX: dict[str, tuple[Make, Goal | None]] = {
    "FTPL, shared trials": (partial(_ftpl, SharedResampling), None),
    "FTPL, scaled trials": (partial(_ftpl, SharedScaledResampling), at_most(1.0)),
    "soft leader": (_soft_leader, None),
}


def _few(effort: Effort) -> Effort:
    return Effort(min(effort.rounds, 5), 0.0, effort.sample)


def _sizes(shape: Shape) -> dict[str, int]:
    steps, states, actions = shape
    return {"S": states, "A": actions, "H": steps, "K": ROUNDS}
