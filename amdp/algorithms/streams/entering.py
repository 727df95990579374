"""Follow a leading policy that seldom changes, in a stream that is played step by step.

With full information the leader depends on the losses alone, not on the states that were visited. When it changes,
policy switching (`amdp.algorithms.streams.switching`) makes the state distributed as if the new policy had been
followed from the start; if it changes again during the switch, the switch begins anew at once. With `c` the chance of a
change in a step and `C` the expected length of a switch, this costs `c T (1 + C)` more than the leaders' own losses
(Chandrasekaran and Tewari 2021).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms.bounds import require_noise_rate, require_rounds
from amdp.algorithms.estimators.feedback import Feedback
from amdp.algorithms.streams.blocks import StepForm
from amdp.algorithms.streams.steps import (
    RandomKey,
    StepLearner,
    StreamBound,
    StreamPosition,
    require_now,
    stationary,
    whole_table,
)
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.algorithms.task import Task
from amdp.arrays import Actions, Floats
from amdp.kernels.blocks import Switch
from amdp.model.chains import rows_of
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.segments import Segment
from amdp.model.transitions import Kernel
from amdp.oracles.base import Planner, Status


class Leader(Protocol):
    """The leading policy after all losses so far; an update gives a new leader and changes none."""

    @property
    def actions(self) -> Actions:
        """The action `[s]` of the policy that is followed."""
        ...

    @property
    def oracle_calls(self) -> int:
        """How often a planning oracle was asked for the leader so far."""
        ...

    def update(self, table: Floats, time: int, random_key: RandomKey) -> Self:
        """The leader after the losses `[s, a]` of one more step; it may use the third random number of the step."""
        ...


@dataclass(frozen=True)
class LeaderScheme(ABC):
    """How the leading policy is perturbed: exponential or Laplace noise in proportion to `1 / rate`."""

    rate: float

    def __post_init__(self) -> None:
        require_noise_rate(self.rate)

    @abstractmethod
    def start(self, domain: StationaryPolicies, rng: np.random.Generator) -> Leader:
        """The leader before the first losses: the noise alone decides."""

    @staticmethod
    @abstractmethod
    def noise(domain: StationaryPolicies, rounds: int) -> float:
        """A bound on the expected noise of any policy, for noise of rate 1."""

    @staticmethod
    @abstractmethod
    def change_factor(domain: StationaryPolicies) -> float:
        """The factor `c` such that the leader changes in a step with chance at most `c` times the rate."""

    def block_form(self, domain: StationaryPolicies) -> "StepForm[Follower] | None":
        """How `SwitchingLeader` plays blocks of steps behind its leader; None: step by step."""
        return None


def leading_policy(planner: Planner, perturbed: Floats) -> Actions:
    """The policy `[h, s]` or `[s]` that is cheapest for losses and noise `[h, s, a]`, proved by a planning oracle."""
    # A policy that is only feasible would be drawn from another law than the analysis speaks of.
    leader: Actions = planner.minimize(perturbed[None]).require(Status.OPTIMAL).actions[0]
    return leader


# --- switching to a policy --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Entering:
    """How far a switch to a policy has come."""

    policy: Actions  # [s]
    entered: bool = False
    goal: int = -1  # the target of an attempt
    left: int = 0  # its steps still to go

    @classmethod
    def of(cls, policy: Actions, come: NDArray[np.int64]) -> Self:
        """From the list of three that compiled steps write."""
        entered, goal, left = come.tolist()
        return cls(policy, bool(entered), goal, left)

    @property
    def come(self) -> NDArray[np.int64]:
        """A list of three that compiled steps read: see `amdp.kernels.switches`."""
        return np.array([self.entered, self.goal, self.left], np.int64)


@dataclass(frozen=True, eq=False)
class Ways:
    """How a switch to a policy goes on, step by step. An entrance, which is never visited again, takes no part."""

    domain: StationaryPolicies
    entry: PolicySwitching

    @classmethod
    def of(cls, domain: StationaryPolicies) -> Self:
        """The switches between the states of a domain that can be visited again."""
        inner = _without_entrance(domain)
        return cls(domain, PolicySwitching(domain.dynamics, domain.initial) if inner is None else inner)

    def begun(self, policy: Actions, time: int, state: int, random_key: RandomKey) -> Entering:
        """A new switch; at the parking state an attempt starts, whose target the step's first random number draws."""
        come = np.zeros(3, np.int64)
        kernels.switches.begin(self.switch, policy, time, state, random_key.word, come)
        return Entering.of(policy, come)

    def went_on(self, entering: Entering, time: int, state: int, random_key: RandomKey) -> Entering:
        """The switch one step later; the second random number of the step decides whether an arrival is accepted."""
        if entering.entered:
            return entering
        come = entering.come
        kernels.switches.go_on(self.switch, entering.policy, time, state, random_key.word, come)
        return Entering.of(entering.policy, come)

    def action(self, entering: Entering, state: int) -> int:
        """The action of the switch in a state."""
        return int(kernels.switches.action(self.switch, entering.policy, state, entering.come))

    def differ(self, first: Actions, other: Actions) -> bool:
        """Whether two policies differ in a state that can be visited again."""
        inside = self.entry.kernel.shape[1]
        return not np.array_equal(first[:inside], other[:inside])

    @cached_property
    def switch(self) -> Switch:
        """The same for compiled steps."""
        routes = self.entry.routes
        return Switch(
            np.ascontiguousarray(rows_of(self.domain.dynamics)),
            self.domain.initial,
            self.entry.kernel.shape[1],
            routes.parked,
            self.entry.diameter.actions[routes.parked].astype(np.int32),
            routes.actions,
            routes.success / routes.arrival,
            routes.length,
        )


def _without_entrance(domain: StationaryPolicies) -> PolicySwitching | None:
    """Switching between all states but the last, if that is the initial one and is never visited again."""
    rows, last = rows_of(domain.dynamics), domain.shape[1] - 1
    if last == 0 or domain.initial != last or rows[:, :, last].any():
        return None
    return PolicySwitching(Kernel.homogeneous(rows[:last, :, :last], domain.shape[0]))


# --- the learner ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Follower(StreamPosition):
    """The state of `SwitchingLeader`: the leader, and how far the switch to its policy has come."""

    ways: Ways
    leader: Leader
    entering: Entering
    random_key: RandomKey = field(repr=False)

    @property
    def oracle_calls(self) -> int:
        return self.leader.oracle_calls

    @property
    def action(self) -> int:
        return self.ways.action(self.entering, self.state)

    def led_by(self, leader: Leader) -> Self:
        """With the leader after one more step; if it changed, a switch to its policy begins at once."""
        updated = replace(self, leader=leader)
        if not self.ways.differ(leader.actions, self.leader.actions):
            return updated
        return replace(updated, entering=self.ways.begun(leader.actions, self.time, self.state, self.random_key))


@dataclass(frozen=True)
class SwitchingLeader(StepLearner[Follower]):
    """Follow the leader of a scheme; full information, a communicating kernel with a parking pair."""

    scheme: LeaderScheme

    @classmethod
    def tuned(
        cls, kind: type[LeaderScheme], domain: Domain, rounds: int, *, multiplier: float = 1.0, **settings: Any
    ) -> Self:
        """Rate `sqrt(noise / (change_factor T (1 + C)))`: balances the bound [derived]; `settings` are the scheme's."""
        known = stationary(domain)
        cost = kind.change_factor(known) * require_rounds(rounds) * (1.0 + Ways.of(known).entry.expected_length)
        return cls(kind(rate=multiplier * sqrt(kind.noise(known, rounds) / cost), **settings))

    def start(self, domain: Domain, rng: np.random.Generator) -> Follower:
        known = stationary(domain)
        ways, random_key = Ways.of(known), RandomKey.fresh(rng)
        leader = self.scheme.start(known, rng)
        # At step 0 no policy needs a switch: the initial state is that of every policy.
        return Follower(known, ways, leader, Entering(leader.actions, entered=True), random_key, state=known.initial)

    def observe(self, distribution: Follower, segment: Segment) -> Follower:
        moved = super().observe(distribution, segment)
        entering = moved.ways.went_on(moved.entering, moved.time, moved.state, moved.random_key)
        return replace(moved, entering=entering)

    def learn(self, distribution: Follower, feedback: Feedback) -> Follower:
        """Update the leader by the losses; if it changed, a switch to its policy begins at once."""
        require_now(feedback, distribution.time)
        leader = distribution.leader.update(whole_table(feedback)[0], distribution.time - 1, distribution.random_key)
        return distribution.led_by(leader)

    def block_form(self, domain: Domain) -> "StepForm[Follower] | None":
        """Its compiled form, if the scheme has one."""
        return self.scheme.block_form(stationary(domain)) if type(self) is SwitchingLeader else None

    def bound(self, domain: Domain, rounds: int) -> StreamBound:
        """`noise / rate + change_factor rate T (1 + C)`, for any rate, and 1 for the step at an entrance [derived]."""
        known = stationary(domain)
        ways, changes = Ways.of(known), self.scheme.change_factor(known) * self.scheme.rate * rounds
        entrance = float(ways.entry.kernel.shape[1] < known.shape[1])
        penalty = self.scheme.noise(known, rounds) / self.scheme.rate
        return StreamBound(penalty, changes, changes * ways.entry.expected_length, entrance)


def saved_follower(distribution: Follower) -> dict[str, NDArray[Any]]:
    """Where a stream is and how far its switch has come, as arrays."""
    entering, place = distribution.entering, np.array([distribution.time, distribution.state])
    key = np.array(distribution.random_key.key)
    return {"place": place, "come": entering.come, "headed": entering.policy, "key": key}


def loaded_follower(distribution: Follower, saved: Mapping[str, NDArray[Any]]) -> Follower:
    """The distribution with what was saved, from one that starts."""
    time, state = saved["place"].tolist()
    entering, key = Entering.of(saved["headed"], saved["come"]), RandomKey(int(saved["key"]))
    return replace(distribution, entering=entering, random_key=key, time=time, state=state)


def number_of(policy: Actions, listed: Actions) -> int:
    """The place of a policy `[s]` in a list `[n, s]` of all."""
    (places,) = np.nonzero((listed == policy).all(axis=1))
    return int(places[0])


def switching_leader(kind: type[LeaderScheme], task: Task, rate: float | None, **settings: Any) -> SwitchingLeader:
    """The leader of a scheme for a task, at the rate that balances its bound or at one that was given by hand."""
    theory = SwitchingLeader.tuned(kind, task.stream(), task.rounds, **settings)
    return replace(theory, scheme=task.by_hand(theory.scheme, rate))
