"""A policy that seldom changes, followed in an unbroken stream that is played step by step.

Whoever knows all losses can tell a leader without looking at the states. When the leader changes, policy switching
(`amdp.algorithms.streams.switching`) makes the state distributed as if the new one had been followed from the start; if
it changes again on the way, the way begins anew at once. With `c` the chance of a change in a step and `C` the expected
length of a switch, this costs `c T (1 + C)` more than the leaders' own losses (Chandrasekaran and Tewari 2021).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from amdp.algorithms.bounds import require_noise_rate, require_rounds
from amdp.algorithms.estimators.feedback import Feedback, FullInformation, Weights
from amdp.algorithms.streams.steps import Luck, StreamBound, choice, require_now, stationary, step_of, whole_table
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import Actions, Floats, Policies, one_hot
from amdp.model.chains import chains, laws, rows_of
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.segments import Segment
from amdp.model.transitions import Kernel


class Leader(Protocol):
    """Who leads after all losses so far; a value."""

    @property
    def actions(self) -> Actions:
        """Its policy `[s]`."""
        ...

    @property
    def oracle_calls(self) -> int:
        """How often a planning oracle was asked for the leader so far."""
        ...

    def heard(self, table: Floats, time: int, luck: Luck) -> Self:
        """Who leads after the losses `[s, a]` of one more step; the last of its three numbers may decide."""
        ...


@dataclass(frozen=True)
class Engine(ABC):
    """A law of leaders, whose noise is in proportion to `1 / rate`."""

    rate: float

    def __post_init__(self) -> None:
        require_noise_rate(self.rate)

    @abstractmethod
    def start(self, domain: StationaryPolicies, rng: np.random.Generator) -> Leader:
        """The leader before anything was lost."""

    @staticmethod
    @abstractmethod
    def noise(domain: StationaryPolicies, rounds: int) -> float:
        """What noise of rate 1 is worth to a policy at most, in expectation."""

    @staticmethod
    @abstractmethod
    def change_factor(domain: StationaryPolicies) -> float:
        """The chance that the leader changes in a step is at most so many times the rate."""


# --- the way into a policy --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Entering:
    """How far a switch to a policy has come."""

    policy: Actions  # [s]
    entered: bool = False
    goal: int = -1  # the target of an attempt
    left: int = 0  # its steps still to go


@dataclass(frozen=True, eq=False)
class Ways:
    """How policies are entered. An initial state to which nobody returns is no part of the ways."""

    domain: StationaryPolicies
    entry: PolicySwitching

    @classmethod
    def of(cls, domain: StationaryPolicies) -> Self:
        """The ways between the states that are met again and again."""
        inner = _without_entrance(domain)
        return cls(domain, PolicySwitching(domain.dynamics, domain.initial) if inner is None else inner)

    def first(self, policy: Actions) -> Entering:
        """At step 0 every policy is where it should be."""
        return Entering(policy, entered=True)

    def begun(self, policy: Actions, time: int, state: int, luck: Luck) -> Entering:
        """A new switch; an attempt starts as soon as it is at the parking state. The first number draws its target."""
        if state != self.entry.routes.parked:
            return Entering(policy)
        law = np.cumsum(self._law(policy, time + self.entry.routes.length))
        goal = int(np.searchsorted(law, luck.uniforms(time, 1)[0] * law[-1], side="right"))
        return Entering(policy, goal=goal, left=self.entry.routes.length)

    def went_on(self, entering: Entering, time: int, state: int, luck: Luck) -> Entering:
        """One step later; the second number decides over being accepted."""
        if entering.entered:
            return entering
        if entering.left > 1:
            return replace(entering, left=entering.left - 1)
        arrived = entering.left == 1 and state == entering.goal
        if arrived and luck.uniforms(time, 2)[1] < self.entry.routes.success / self.entry.routes.arrival[state]:
            return Entering(entering.policy, entered=True)
        return self.begun(entering.policy, time, state, luck)

    def action(self, entering: Entering, state: int) -> int:
        """What to do in a state."""
        if entering.entered:
            return int(entering.policy[state])
        if entering.left > 0:
            return int(self.entry.routes.actions[entering.goal, entering.left - 1, state])
        return int(self.entry.diameter.actions[self.entry.routes.parked, state])

    def differ(self, one: Actions, other: Actions) -> bool:
        """Whether two policies differ in a state that is met again."""
        inside = self.entry.kernel.shape[1]
        return not np.array_equal(one[:inside], other[:inside])

    def _law(self, policy: Actions, time: int) -> Floats:
        """The law `[s]` of the state at a step, if the policy had been followed from the start."""
        moves = chains(self._rows, one_hot(policy, self.domain.shape[2])[None])
        found: Floats = laws(moves, self.domain.initial, time, time + 1)[0, 0, : self.entry.kernel.shape[1]]
        return found

    @cached_property
    def _rows(self) -> Floats:
        return rows_of(self.domain.dynamics)


def _without_entrance(domain: StationaryPolicies) -> PolicySwitching | None:
    """Switching between all states but the last, if that is the initial one and nobody returns to it."""
    rows, last = rows_of(domain.dynamics), domain.shape[1] - 1
    if last == 0 or domain.initial != last or rows[:, :, last].any():
        return None
    return PolicySwitching(Kernel.homogeneous(rows[:last, :, :last], domain.shape[0]))


# --- the learner ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Follower:
    """The leader, and how far the way into its policy has come."""

    domain: StationaryPolicies
    ways: Ways
    leader: Leader
    entering: Entering
    luck: Luck = field(repr=False)
    time: int
    state: int

    @property
    def oracle_calls(self) -> int:
        """How often the leader was asked of a planning oracle."""
        return self.leader.oracle_calls

    def draw(self, rng: np.random.Generator) -> Policies:
        """The next choice `[s, a]`, without luck."""
        _, states, actions = self.domain.shape
        return choice(states, actions, self.state, self.ways.action(self.entering, self.state))


@dataclass(frozen=True)
class SwitchingLeader:
    """Follow the leader of an engine; full information, a communicating kernel with a parking pair."""

    engine: Engine
    feedback: ClassVar[type] = FullInformation

    @classmethod
    def tuned(
        cls, kind: type[Engine], domain: Domain, rounds: int, *, multiplier: float = 1.0, **settings: Any
    ) -> Self:
        """Rate `sqrt(noise / (change_factor T (1 + C)))`: balances the bound [derived]; `settings` are the engine's."""
        told = stationary(domain)
        cost = kind.change_factor(told) * require_rounds(rounds) * (1.0 + Ways.of(told).entry.expected_length)
        return cls(kind(rate=multiplier * sqrt(kind.noise(told, rounds) / cost), **settings))

    def start(self, domain: Domain, rng: np.random.Generator) -> Follower:
        """The first leader needs no switch."""
        told = stationary(domain)
        ways, luck = Ways.of(told), Luck.drawn(rng)
        leader = self.engine.start(told, rng)
        return Follower(told, ways, leader, ways.first(leader.actions), luck, 0, told.initial)

    def observe(self, distribution: Follower, segment: Segment) -> Follower:
        """One step on."""
        time, state = step_of(segment).time + 1, step_of(segment).reached
        entering = distribution.ways.went_on(distribution.entering, time, state, distribution.luck)
        return replace(distribution, entering=entering, time=time, state=state)

    def weigh(self, distribution: Follower, segment: Segment, rng: np.random.Generator) -> Weights:
        """Nothing to weigh."""
        return Weights(np.empty(0))

    def learn(self, distribution: Follower, feedback: Feedback) -> Follower:
        """Hear the losses; turn to another leader at once."""
        require_now(feedback, distribution.time)
        leader = distribution.leader.heard(whole_table(feedback)[0], distribution.time - 1, distribution.luck)
        heard = replace(distribution, leader=leader)
        if not distribution.ways.differ(leader.actions, distribution.leader.actions):
            return heard
        return replace(
            heard,
            entering=distribution.ways.begun(leader.actions, distribution.time, distribution.state, distribution.luck),
        )

    def bound(self, domain: Domain, rounds: int) -> StreamBound:
        """`noise / rate + change_factor rate T (1 + C)`, for any rate, and 1 for the step at an entrance [derived]."""
        told = stationary(domain)
        ways, changes = Ways.of(told), self.engine.change_factor(told) * self.engine.rate * rounds
        entrance = float(ways.entry.kernel.shape[1] < told.shape[1])
        penalty = self.engine.noise(told, rounds) / self.engine.rate
        return StreamBound(penalty, changes, changes * ways.entry.expected_length, entrance)
