"""Follow the perturbed leader over closed walks (Chandrasekaran and Tewari 2021, deterministic transitions).

Full information, certain moves, all states reaching each other. The experts are the closed walks of length
`k = 1 .. S` of `amdp.model.walk_graphs`; `C_k[j, s, a]` sums the losses of the steps `t` with `t mod k = j`. One
exponential number of `rate` for each `(k, j, s, a)` is drawn once, and

    the leader minimizes  sum_j C_k[j, e_j] - Z_k[j, e_j]  over all closed walks e.

From a state that is not on the leading walk, the shortest path leads there, within the critical length `d`.

**Why it seldom changes.** All walks with the pair `e_j` at place `j = t mod k` pay the same at step `t` and share the
number `Z_k[j, e_j]`. No other walk has it, and none becomes cheaper. So the leader stays if that number exceeds its
threshold by the loss, and being exponential it does so with chance `exp(-rate loss)`: the leader changes with chance at
most `rate`.

**Uncertain.** The source puts noise on the first `S` losses, shared by all lengths [from memory], and is quoted with
`S^4 sqrt(T)`. Here each length has noise of its own: walks of other lengths could share a number without paying at that
step, and the argument above would not hold (though small simulations with shared noise showed no more changes). This
costs `ln S` inside the bound. All details and the bound are [derived].
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import log, sqrt
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms.blocks import BlockResult
from amdp.algorithms.bounds import require_noise_rate, require_rounds
from amdp.algorithms.estimators.feedback import Feedback
from amdp.algorithms.streams.blocks import StepForm, chosen_result, empty_steps
from amdp.algorithms.streams.steps import StepLearner, StreamBound, StreamPosition, stationary, step_of, whole_table
from amdp.algorithms.task import Task
from amdp.arrays import Floats
from amdp.kernels.blocks import Block
from amdp.model.domains import Domain
from amdp.model.walk_graphs import ClosedWalk, Closing, Pursuit, WalkGraph


@dataclass(frozen=True, eq=False)
class PursuedWalk(StreamPosition):
    """A stream on the way to a closed walk, or on it."""

    pursuit: Pursuit
    oracle_calls: ClassVar[int] = 0

    @property
    def action(self) -> int:
        return self.pursuit.action(self.time)


@dataclass(frozen=True, eq=False)
class LeadingWalk(PursuedWalk):
    """The state of `WalkingLeader`: the closed walk that leads, and how far the path to it has come."""

    graph: WalkGraph
    closing: Closing
    perturbed: Floats = field(repr=False)  # [r, s, a], sums of losses minus noise
    bounds: Floats = field(repr=False)  # [i, c], no walk of that length and start is cheaper

    @property
    def leader(self) -> ClosedWalk:
        """The closed walk that is cheapest for the perturbed losses."""
        return self.pursuit.walk

    def led(self) -> Self:
        """With the leader found again; if it is another walk, the path to it begins at once."""
        leader, bounds = self.graph.cheapest(self.perturbed, self.closing, self.bounds)
        if leader.same_as(self.leader):
            return replace(self, bounds=bounds)
        return replace(self, bounds=bounds, pursuit=self.graph.pursue(leader, self.time, self.state))


@dataclass(frozen=True)
class WalkingLeader(StepLearner[LeadingWalk]):
    """Follow the perturbed leader over closed walks of at most `longest` pairs, as many as states if None."""

    rate: float
    longest: int | None = None

    def __post_init__(self) -> None:
        require_noise_rate(self.rate)

    @classmethod
    def tuned(cls, domain: Domain, rounds: int, *, multiplier: float = 1.0, longest: int | None = None) -> Self:
        """Rate `sqrt(S (1 + ln S^2 A) / (T (1 + d)))`: balances the bound [derived].

        With walks of at most `longest` pairs there are fewer noises, and `S` is `longest`.
        """
        graph = certain_moves(domain)
        noise = (longest or graph.states) * (1.0 + log(_numbers(graph, graph.closing(longest))))
        return cls(multiplier * sqrt(noise / (require_rounds(rounds) * (1 + graph.critical))), longest)

    def start(self, domain: Domain, rng: np.random.Generator) -> LeadingWalk:
        graph, known = certain_moves(domain), stationary(domain)
        closing = graph.closing(self.longest)
        noise = rng.exponential(1.0 / self.rate, size=(closing.rows, *domain.shape[1:]))
        unknown = np.full((len(closing.lengths), len(closing.starts)), -np.inf)
        leader, bounds = graph.cheapest(-noise, closing, unknown)
        pursuit = graph.pursue(leader, 0, known.initial)
        return LeadingWalk(known, pursuit, graph, closing, -noise, bounds, state=known.initial)

    def learn(self, distribution: LeadingWalk, feedback: Feedback) -> LeadingWalk:
        """Add the losses; a leader that incurs none stays, since no other walk becomes cheaper."""
        table, time = whole_table(feedback)[0], step_of(feedback.segment).time
        perturbed = distribution.perturbed.copy()
        kernels.walks.add_step(perturbed, distribution.closing.lengths, time, table)
        updated = replace(distribution, perturbed=perturbed)
        return updated.led() if table[distribution.leader.pair(time)] > 0.0 else updated

    def block_form(self, domain: Domain) -> "LeadingSteps | None":
        """How it plays blocks of steps in machine code; None for types derived from it, which may do something else."""
        return LeadingSteps() if type(self) is WalkingLeader else None

    def bound(self, domain: Domain, rounds: int) -> StreamBound:
        """`S (1 + ln(nSA)) / rate + rate T (1 + d) + d + S` with `n` lengths of walks, for any rate [derived].

        The noise of the best walk is at most the sum over its places of the largest of `nSA` numbers.
        """
        graph = certain_moves(domain)
        closing = graph.closing(self.longest)
        noise = float(closing.lengths[-1] * (1.0 + log(_numbers(graph, closing))))
        changes = self.rate * rounds
        return StreamBound(noise / self.rate, changes, (changes + 1.0) * graph.critical, float(graph.states))


class LeadingSteps(StepForm[LeadingWalk]):
    """`WalkingLeader`, block by block."""

    def play(
        self, distribution: LeadingWalk, block: Block, space: object, rng: np.random.Generator
    ) -> tuple[LeadingWalk, BlockResult]:
        graph, closing, pursuit = distribution.graph, distribution.closing, distribution.pursuit
        played, time = empty_steps(block), distribution.time
        perturbed, bounds = distribution.perturbed.copy(), distribution.bounds.copy()
        reached, walk, since, route = kernels.walks.follow_leader(
            block, graph.following, *closing, graph.critical, perturbed, bounds, *as_arrays(pursuit), time, played
        )
        after = replace(
            distribution,
            perturbed=perturbed,
            bounds=bounds,
            pursuit=Pursuit(ClosedWalk(*walk), int(since), route),
            time=time + len(block.slots),
            state=int(reached),
        )
        return after, chosen_result(played, after.state, graph.states)

    def save(self, distribution: LeadingWalk) -> dict[str, NDArray[Any]]:
        return saved_pursuit(distribution) | {"perturbed": distribution.perturbed, "bounds": distribution.bounds}

    def load(self, distribution: LeadingWalk, saved: Mapping[str, NDArray[Any]]) -> LeadingWalk:
        return replace(loaded_pursuit(distribution, saved), perturbed=saved["perturbed"], bounds=saved["bounds"])


def as_arrays(pursuit: Pursuit) -> tuple[NDArray[np.int64], int, NDArray[np.int64]]:
    """A pursuit as compiled streams read it: the walk `[2, k]`, when it began, and the way to the walk."""
    return np.stack([pursuit.walk.states, pursuit.walk.actions]), pursuit.since, pursuit.route


Pursuing = TypeVar("Pursuing", bound=PursuedWalk)


def saved_pursuit(distribution: PursuedWalk) -> dict[str, NDArray[Any]]:
    """Where a stream is and what it pursues, as arrays."""
    walk, since, route = as_arrays(distribution.pursuit)
    place = np.array([distribution.time, distribution.state, since])
    return {"walk": walk, "route": route, "place": place}


def loaded_pursuit(distribution: Pursuing, saved: Mapping[str, NDArray[Any]]) -> Pursuing:
    """The distribution with what was saved, from one that starts."""
    time, state, since = saved["place"].tolist()
    return replace(
        distribution, pursuit=Pursuit(ClosedWalk(*saved["walk"]), since, saved["route"]), time=time, state=state
    )


def certain_moves(domain: Domain) -> WalkGraph:
    """The graph of the deterministic transitions of a domain of stationary policies."""
    known = stationary(domain)
    return WalkGraph.of(known.dynamics, known.initial)


def _numbers(graph: WalkGraph, closing: Closing) -> int:
    """The number of noise variables at each place of a walk."""
    return len(closing.lengths) * graph.following.size


def ct_deterministic(task: Task, *, rate: float | None = None, longest: int | None = None) -> WalkingLeader:
    """Full information, certain moves: the perturbed leader over closed walks, after Chandrasekaran and Tewari."""
    return task.by_hand(WalkingLeader.tuned(task.stream(), task.rounds, longest=longest), rate)
