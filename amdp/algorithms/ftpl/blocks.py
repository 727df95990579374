"""FTPL in compiled blocks: see `amdp.algorithms.blocks`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms.blocks import (
    BlockDynamics,
    BlockResult,
    empty_played,
    has_compiled_form,
    loaded_dynamics,
    narrows,
    part_of_block,
    saved_dynamics,
    waiting,
)
from amdp.algorithms.estimators.base import Estimator, WholeTable
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    Resampling,
    ScaledResampling,
    SharedResampling,
    SharedScaledResampling,
)
from amdp.algorithms.estimators.trials import require_sound
from amdp.algorithms.ftpl.adaptive import AdaptiveFtpl, AdaptiveLeader
from amdp.algorithms.ftpl.perturbations import Exponential, Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, PerturbedLeader
from amdp.algorithms.rates import AdaptiveRate, as_numbers, has_numbers
from amdp.arrays import Actions
from amdp.kernels.blocks import Block, BoxSearch, PlainSearch, Played, ScaledSearch, Waiting
from amdp.kernels.layout import many_lanes
from amdp.kernels.rows import IntervalRows
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain
from amdp.model.reach import BATCH, BOX_BATCH, BoxReach, TwoStepReach
from amdp.model.transitions import SparseKernel
from amdp.oracles.base import bind
from amdp.oracles.markov.dynamic_programming import BackwardInduction

FULL: tuple[type, ...] = (WholeTable,)
PLAIN: tuple[type, ...] = (GeometricResampling, SharedResampling)
SCALED: tuple[type, ...] = (ScaledResampling, SharedScaledResampling)
COUNTS = ("seed", "rounds", "arrived", "oracle_calls")  # of an adaptive leader's state


def ftpl_blocks(learner: Ftpl, domain: Domain) -> "FtplBlocks | None":
    """By backward induction, with the paper's noise and its estimators.

    Scaled trials over a sparse kernel have no compiled form: their bounds are found when they are first asked for.
    """
    planned = type(bind(learner.oracle, domain).oracle) is BackwardInduction and type(learner) is Ftpl
    if not planned or not has_compiled_form(domain):
        return None
    kinds = FULL if type(learner.perturbation) in (Laplace, Exponential) else ()
    if type(learner.perturbation) is Laplace:
        kinds += PLAIN + (() if isinstance(domain.dynamics, SparseKernel) else SCALED)
    return FtplBlocks(learner) if type(learner.estimator) in kinds else None


def adaptive_blocks(learner: AdaptiveFtpl, domain: Domain) -> "AdaptiveBlocks | None":
    """Where FTPL with a fixed rate has a compiled form."""
    same = Ftpl(Laplace(learner.rate.value), learner.resampling(1), learner.oracle)
    exactly = type(learner) is AdaptiveFtpl and has_numbers(learner.rate)
    return AdaptiveBlocks(learner) if exactly and ftpl_blocks(same, domain) is not None else None


@dataclass(frozen=True)
class FtplBlocks:
    """FTPL, block by block."""

    learner: Ftpl

    def space(self, slots: int, domain: Domain) -> Waiting:
        """Memory for the segments whose feedback has not arrived."""
        return waiting(slots, domain.shape[0])

    def play(
        self, distribution: PerturbedLeader, block: Block, space: Waiting, rng: np.random.Generator
    ) -> tuple[PerturbedLeader, BlockResult]:
        b, (steps, states, _) = len(block.slots), distribution.total.shape
        total, played = distribution.total.copy(), empty_played(b, steps)
        policies = np.empty((b, steps, 1, states), np.int32)
        dynamics, scale = BlockDynamics.of(distribution.domain), 1.0 / distribution.perturbation.rate
        trials = None
        if isinstance(self.learner.estimator, WholeTable):
            law = scale, isinstance(distribution.perturbation, Laplace)
            rows = dynamics.rows, dynamics.told
            bad = kernels.episodes.fpl(*rows, block, many_lanes(rng, b), *law, total, policies, played)
        else:
            trials = trials_in_blocks(distribution, dynamics, self.learner.estimator)
            all_rows = dynamics.rows, dynamics.leader_rows, distribution.domain.reached, dynamics.told
            seeds = many_lanes(rng, 3 * b).reshape(b, 3, 4, -1)
            bad = kernels.episodes.ftpl(*all_rows, trials, block, space, seeds, scale, total, policies, played)
        require_sound(total, bad < 0)
        after = leader_after(distribution, dynamics, trials)
        after = replace(after, total=total, oracle_calls=distribution.oracle_calls + b)
        return after, BlockResult(played, policies[:, :, 0], 1 + played.trials, dynamics.told is not None)

    def save(self, distribution: PerturbedLeader) -> dict[str, NDArray[Any]]:
        return {"total": distribution.total, "oracle_calls": np.array(distribution.oracle_calls)} | saved(distribution)

    def load(self, distribution: PerturbedLeader, state: Mapping[str, NDArray[Any]]) -> PerturbedLeader:
        return replace(loaded(distribution, state), total=state["total"], oracle_calls=int(state["oracle_calls"]))


@dataclass(frozen=True)
class AdaptiveBlocks:
    """FTPL with an adaptive rate, block by block."""

    learner: AdaptiveFtpl

    def space(self, slots: int, domain: Domain) -> tuple[Waiting, NDArray[np.int64]]:
        """Segments that wait, and how many feedbacks had arrived when they were played."""
        return waiting(slots, domain.shape[0]), np.zeros(slots, np.int64)

    def play(
        self, distribution: AdaptiveLeader, block: Block, space: Any, rng: np.random.Generator
    ) -> tuple[AdaptiveLeader, BlockResult]:
        b, steps = len(block.slots), len(distribution.total)
        limits = [self.learner.limit_of(distribution.domain, distribution.rounds + k) for k in range(b)]
        played, policies = empty_played(b, steps), np.empty((b, steps, 1, distribution.total.shape[1]), np.int32)
        cuts = [0, *(k for k in range(1, b) if limits[k] != limits[k - 1]), b]  # the limit grows slowly
        for low, high in pairwise(cuts):
            part = part_of_block(block, low, high)
            distribution = self._played(distribution, limits[low], part, space, rng, policies[low:high], played, low)
        plans = 1 + played.trials + 2 * self.learner.plans * np.diff(block.starts)
        return distribution, BlockResult(played, policies[:, :, 0], plans, narrows(distribution.domain))

    def save(self, distribution: AdaptiveLeader) -> dict[str, NDArray[Any]]:
        counts = {name: np.array(getattr(distribution, name)) for name in COUNTS}
        return {"total": distribution.total, "rate": as_numbers(distribution.rate), **counts} | saved(distribution)

    def load(self, distribution: AdaptiveLeader, state: Mapping[str, NDArray[Any]]) -> AdaptiveLeader:
        rate, leader = AdaptiveRate(*state["rate"].tolist()), loaded(distribution, state)
        counts: Any = {name: int(state[name]) for name in COUNTS}
        return replace(leader, total=state["total"], rate=rate, perturbation=Laplace(rate.value), **counts)

    def _played(
        self,
        state: AdaptiveLeader,
        limit: int,
        block: Block,
        space: tuple[Waiting, NDArray[np.int64]],
        rng: np.random.Generator,
        policies: Actions,
        played: Played,
        low: int,
    ) -> AdaptiveLeader:
        """Plays rounds of one limit of trials."""
        b, total, rate = len(policies), state.total.copy(), as_numbers(state.rate)
        dynamics = BlockDynamics.of(state.domain)
        trials = trials_in_blocks(state, dynamics, self.learner.resampling(limit))
        seeds = many_lanes(rng, 3 * b).reshape(b, 3, 4, -1)
        gaps = np.uint64(state.seed), state.arrived, self.learner.plans
        rows = dynamics.rows, dynamics.leader_rows, state.domain.reached, dynamics.told
        here = slice(low, low + b)
        part = Played(played.states[here], played.actions[here], played.trials[here], played.spent)
        bad = kernels.episodes.ftpl_adaptive(*rows, trials, block, *space, seeds, *gaps, rate, total, policies, part)
        require_sound(total, bad < 0)
        after = AdaptiveRate(*rate.tolist())
        arrived = len(block.arrived)
        return replace(
            leader_after(state, dynamics, trials),
            total=total,
            rate=after,
            perturbation=Laplace(after.value),
            rounds=state.rounds + b,
            arrived=state.arrived + arrived,
            oracle_calls=state.oracle_calls + b + 2 * self.learner.plans * arrived,
        )


# --- what both keep of the dynamics -----------------------------------------------------------------------------------

Leader = TypeVar("Leader", bound=PerturbedLeader)


def leader_after(
    leader: Leader, dynamics: BlockDynamics, trials: PlainSearch | ScaledSearch | BoxSearch | None
) -> Leader:
    """The leader over what a block has left of the dynamics, and its trials of the reach of states."""
    domain = dynamics.after(leader.domain)
    if not isinstance(domain.dynamics, BernsteinBox):
        return leader
    reach = leader.reach
    if isinstance(trials, BoxSearch):
        reach = BoxReach(domain.dynamics, domain.initial, trials.known, trials.seen)
    return replace(leader, planner=bind(leader.planner.oracle, domain), reach=reach)


def saved(leader: PerturbedLeader) -> dict[str, NDArray[Any]]:
    """What a leader knows of the dynamics, as arrays."""
    reach = leader.reach
    bounds = {"reach": reach.known, "reach visits": reach.visits} if isinstance(reach, BoxReach) else {}
    return saved_dynamics(leader.domain) | bounds


def loaded(leader: Leader, state: Mapping[str, NDArray[Any]]) -> Leader:
    """A leader that starts, with the dynamics that were saved."""
    domain, reach = loaded_dynamics(leader.domain, state), leader.reach
    if isinstance(reach, BoxReach) and isinstance(domain.dynamics, BernsteinBox):
        reach = BoxReach(domain.dynamics, domain.initial, state["reach"], state["reach visits"])
    return replace(leader, planner=bind(leader.planner.oracle, domain), reach=reach)


def trials_in_blocks(
    leader: PerturbedLeader, dynamics: BlockDynamics, estimator: Estimator
) -> PlainSearch | ScaledSearch | BoxSearch:
    """Resampling as compiled games do it."""
    reach, rows = leader.reach, dynamics.meeting_rows
    assert isinstance(estimator, Resampling)
    is_shared = isinstance(estimator, SharedResampling | SharedScaledResampling)
    if isinstance(reach, TwoStepReach):
        return ScaledSearch(reach.rows, *reach.every(estimator.limit), is_shared)
    if isinstance(reach, BoxReach):
        assert isinstance(rows, IntervalRows)
        visits = reach.dynamics.visits if dynamics.told is None else dynamics.told.visits
        assert visits is not None
        return BoxSearch(rows, visits, reach.known.copy(), reach.visits.copy(), estimator.limit, BOX_BATCH, is_shared)
    return PlainSearch(rows, estimator.limit, BATCH, is_shared)
