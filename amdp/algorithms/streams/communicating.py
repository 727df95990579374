"""Perturbed leaders over communicating kernels (Chandrasekaran and Tewari 2021), with full information.

`EveryPolicy` gives each stationary policy an exponential number of its own: `sqrt(T)` regret, exponential time [quoted
as `D^2 sqrt(ST)`; the bound here is derived]. `StartNoise` asks a planning oracle instead, and needs a start that has
mass at least `alpha` on every state: regret of order `sqrt(T / alpha)` [confirmed: its abstract; details derived].
Both draw their noise once: full information and losses that do not look at the learner make that legitimate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, log
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms.blocks import BlockResult
from amdp.algorithms.hedge import MOST_POLICIES, count_policies, list_policies
from amdp.algorithms.streams.blocks import StepForm, chosen_result, empty_steps
from amdp.algorithms.streams.entering import (
    Entering,
    Follower,
    LeaderScheme,
    SwitchingLeader,
    leading_policy,
    loaded_follower,
    number_of,
    saved_follower,
    switching_leader,
)
from amdp.algorithms.streams.steps import RandomKey, stationary
from amdp.algorithms.task import Task
from amdp.arrays import Actions, Floats
from amdp.errors import InvalidInput
from amdp.kernels.blocks import Block, Played
from amdp.model.chains import rows_of, start_mass
from amdp.model.domains import StationaryPolicies
from amdp.model.segments import Shape
from amdp.oracles.base import Listed, Planner, PlanningOracle, bind


@dataclass(frozen=True, eq=False)
class NoisyPolicies:
    """All stationary policies: their state distributions, and the losses that each has incurred minus its noise."""

    listed: Actions = field(repr=False)  # [n, s]
    rows: Floats = field(repr=False)  # [s, a, y]
    perturbed: Floats = field(repr=False)  # [n]
    at: Floats = field(repr=False)  # [n, s], where each would be in the next step, followed from the start
    oracle_calls: ClassVar[int] = 0

    @cached_property
    def actions(self) -> Actions:
        """The action `[s]` of the leader in each state."""
        leader: Actions = self.listed[self.perturbed.argmin()]
        return leader

    def update(self, table: Floats, time: int, random_key: RandomKey) -> "NoisyPolicies":
        """Every policy incurs its expected loss of the step, and its state distribution moves on."""
        at, perturbed = np.empty_like(self.at), np.empty_like(self.perturbed)
        kernels.walks.walk_on(self.listed, self.rows, table, self.at, self.perturbed, at, perturbed)
        return replace(self, perturbed=perturbed, at=at)


@dataclass(frozen=True)
class EveryPolicy(LeaderScheme):
    """Exponential noise of `rate` for each of all stationary policies, refused above 100 000 of them.

    A policy incurs at most 1 in a step, so the leader changes with chance at most `rate`. As `C <= 12 D^2`, the tuned
    rate `sqrt((1 + S ln A) / (T (1 + C)))` gives regret of order `D sqrt(ST ln A)` [derived]; the quoted `D^2 sqrt(ST)`
    belongs to the rate `sqrt(S ln A / T)`.
    """

    def start(self, domain: StationaryPolicies, rng: np.random.Generator) -> NoisyPolicies:
        listed = list_policies(domain).actions
        rows = rows_of(domain.dynamics)
        sums = rows.sum(axis=2, keepdims=True)
        exact = rows / np.where(sums > 0.0, sums, 1.0)  # rows may sum to 1 + 1e-8: too much after many steps
        at = np.zeros(listed.shape)
        at[:, domain.initial] = 1.0
        return NoisyPolicies(listed, exact, -rng.exponential(1.0 / self.rate, len(at)), at)

    @staticmethod
    def noise(domain: StationaryPolicies, rounds: int) -> float:
        """`1 + ln N` for `N` policies bounds the mean of the largest of `N` exponential numbers."""
        count = count_policies(domain)
        if count > MOST_POLICIES:
            raise InvalidInput(
                f"there are {count} stationary policies, more than {MOST_POLICIES}; use another learner, such as "
                "ct-deterministic where moves are certain, or ct-oracle"
            )
        return 1.0 + log(count)

    @staticmethod
    def change_factor(domain: StationaryPolicies) -> float:
        """1: a policy incurs at most 1 in a step, so the leader changes with chance at most the rate."""
        return 1.0

    def block_form(self, domain: StationaryPolicies) -> "NoisySteps | None":
        return NoisySteps() if type(self) is EveryPolicy else None


class NoisySteps(StepForm[Follower]):
    """Behind `NoisyPolicies`, block by block."""

    def play(
        self, distribution: Follower, block: Block, space: object, rng: np.random.Generator
    ) -> tuple[Follower, BlockResult]:
        leader, entering, played = distribution.leader, distribution.entering, empty_steps(block)
        assert isinstance(leader, NoisyPolicies)
        listed, time, key = leader.listed, distribution.time, distribution.random_key.word
        at, perturbed, come = leader.at.copy(), leader.perturbed.copy(), entering.come
        numbers = (number_of(policy, listed) for policy in (leader.actions, entering.policy))
        policies = distribution.ways.switch, listed, leader.rows, at, perturbed
        reached, _, headed = kernels.switches.follow_least(block, *policies, *numbers, time, key, come, played)
        after = replace(
            distribution,
            leader=replace(leader, at=at, perturbed=perturbed),
            entering=Entering.of(listed[headed], come),
            time=time + len(block.slots),
            state=int(reached),
        )
        return after, chosen_result(played, after.state, listed.shape[1])

    def save(self, distribution: Follower) -> dict[str, NDArray[Any]]:
        leader = distribution.leader
        assert isinstance(leader, NoisyPolicies)
        return saved_follower(distribution) | {"at": leader.at, "perturbed": leader.perturbed}

    def load(self, distribution: Follower, saved: Mapping[str, NDArray[Any]]) -> Follower:
        assert isinstance(distribution.leader, NoisyPolicies)
        leader = replace(distribution.leader, at=saved["at"], perturbed=saved["perturbed"])
        return replace(loaded_follower(distribution, saved), leader=leader)


@dataclass(frozen=True, eq=False)
class PastLosses:
    """The losses of all steps so far. What grows from it shares its memory, and changes nothing in it."""

    array: Floats = field(repr=False)  # [t, s, a], of which the first `known` steps are its own
    known: int
    written: list[int] = field(repr=False)  # [1], the steps of the array that somebody has written

    @classmethod
    def none(cls, shape: Shape) -> Self:
        """Before the first step of a stream."""
        return cls(np.zeros(shape), 0, [0])

    def plus(self, tables: Floats) -> Self:
        """After the losses `[m, s, a]` of the next steps."""
        array, written, known = self.array, self.written, self.known + len(tables)
        if written[0] != self.known:  # somebody else has gone on from here
            array, written = self.whole, [self.known]
        array[self.known : known] = tables
        written[0] = known
        return replace(self, array=array, known=known, written=written)

    @property
    def whole(self) -> Floats:
        """The losses `[t, s, a]` of all steps, zero in those to come; a copy."""
        losses = np.zeros(self.array.shape)
        losses[: self.known] = self.array[: self.known]
        return losses


@dataclass(frozen=True, eq=False)
class Watch:
    """What policies have paid, noise included, and where each would be in the next step; one of them leads.

    If all policies are listed and the others have paid more by `margin`, an oracle can only name the leader again.
    """

    listed: Actions = field(repr=False)  # [n, s]
    at: Floats = field(repr=False)  # [n, s]
    paid: Floats = field(repr=False)  # [n]
    leader: int
    margin: float  # infinite if only the leader is listed

    @classmethod
    def over(cls, listed: Listed, domain: StationaryPolicies, noise: Floats, leader: Actions) -> Self:
        """All policies before the first step; the noise `[s, a]` is on the step after it.

        The choice at the entrance, the initial state, shifts what all others pay by the same: it is 0 in the list.
        """
        states, rows = np.arange(domain.shape[1]), rows_of(domain.dynamics)
        policies = listed.policies[listed.policies[:, domain.initial] == 0]
        at = np.zeros((len(policies), len(states)))
        at[:, domain.initial] = 1.0
        later = rows[domain.initial, policies[:, domain.initial]]
        paid = (later * noise[states, policies]).sum(axis=1)
        margin = listed.gap * domain.shape[0] * max(1.0, float(np.abs(noise).max()))
        return cls(policies, at, paid, 0, margin).led_by(leader)

    @classmethod
    def alone(cls, domain: StationaryPolicies, leader: Actions, time: int) -> Self:
        """A leader whose rivals are not listed, before a step."""
        at = np.empty((1, domain.shape[1]))
        kernels.switches.law_at(rows_of(domain.dynamics), leader, domain.initial, time, at[0])
        return cls(leader[None], at, np.zeros(1), 0, inf)

    def moved(self, rows: Floats, table: Floats) -> tuple[Self, bool]:
        """One step later, and whether the leader had to pay in it."""
        paid, at = self.paid.copy(), np.empty_like(self.at)
        pays = kernels.switches.watch(self.listed, rows, table, self.leader, self.at, paid, at)
        return replace(self, at=at, paid=paid), bool(pays)

    def led_by(self, leader: Actions) -> Self:
        """With another leader out of the list, whatever it does at the entrance, which comes last."""
        return replace(self, leader=number_of(leader[:-1], self.listed[:, :-1]))

    @property
    def is_ahead(self) -> bool:
        """Whether no other policy can be the cheapest."""
        return bool(kernels.switches.is_ahead(self.paid, self.leader, self.margin))


@dataclass(frozen=True, eq=False)
class PlannedLeader:
    """The cheapest policy for the losses so far and noise on the second step, by a planning oracle."""

    planner: Planner = field(repr=False)
    noise: Floats = field(repr=False)  # [s, a]
    past: PastLosses = field(repr=False)
    watch: Watch
    oracle_calls: int = 1  # questions to the oracle so far

    @classmethod
    def of(cls, planner: Planner, noise: Floats) -> Self:
        """The leader before the first step: the noise `[s, a]` alone decides."""
        domain = stationary(planner.domain)
        past = PastLosses.none(domain.shape)
        actions, listed = leading_policy(planner, _with_noise(past, noise)), planner.listed
        if listed is None:
            return cls(planner, noise, past, Watch.alone(domain, actions, 0))
        return cls(planner, noise, past, Watch.over(listed, domain, noise, actions))

    @property
    def actions(self) -> Actions:
        """The action `[s]` of the leader in each state."""
        leader: Actions = self.watch.listed[self.watch.leader]
        return leader

    @property
    def at(self) -> Floats:
        """Where the leader would be in the next step, `[s]`, followed from the start."""
        law: Floats = self.watch.at[self.watch.leader]
        return law

    @property
    def total(self) -> Floats:
        """The losses so far and the noise, `[t, s, a]`."""
        return _with_noise(self.past, self.noise)

    def update(self, table: Floats, time: int, random_key: RandomKey) -> "PlannedLeader":
        """The leader after one more step.

        The oracle is not asked if the leader's expected loss is zero, or if the watch proves that it still leads.
        """
        watch, pays = self.watch.moved(rows_of(stationary(self.planner.domain).dynamics), table)
        updated = replace(self, past=self.past.plus(table[None]), watch=watch)
        return updated.planned() if pays and not watch.is_ahead else updated

    def planned(self) -> Self:
        """With the answer of the oracle to the losses so far."""
        actions = leading_policy(self.planner, self.total)
        if self.watch.margin == inf:
            watch = Watch.alone(stationary(self.planner.domain), actions, self.past.known)
        else:
            watch = self.watch.led_by(actions)
        return replace(self, watch=watch, oracle_calls=self.oracle_calls + 1)


def _with_noise(past: PastLosses, noise: Floats) -> Floats:
    total = past.whole
    total[1] += noise
    return total


@dataclass(frozen=True)
class StartNoise(LeaderScheme):
    """Exponential noise of `rate` on the first step after an entrance, and a planning oracle.

    The initial state is an entrance (see `entrance`): all its actions lead to a law `d_1` that gives every other state
    mass `alpha` or more, and nobody returns. The leader minimizes `L[pi] - sum_s d_1(s) z(s, pi(s))`. Raising all
    `z(s, pi(s))` by `1/alpha` is worth `1/alpha` to `pi`, and less by 1 or more to every other policy; it changes the
    density by `exp(-rate S / alpha)`. So the leader changes with chance at most `rate S / alpha` [derived].
    """

    oracle: str | PlanningOracle = "auto"

    def start(self, domain: StationaryPolicies, rng: np.random.Generator) -> PlannedLeader:
        start_mass(domain)
        noise = np.zeros(domain.shape[1:])
        noise[:-1] = -rng.exponential(1.0 / self.rate, size=noise[:-1].shape)
        return PlannedLeader.of(bind(self.oracle, domain), noise)

    @staticmethod
    def noise(domain: StationaryPolicies, rounds: int) -> float:
        """`1 + ln A`: the mean over `d_1` of the largest of `A` numbers."""
        return 1.0 + log(domain.shape[2])

    @staticmethod
    def change_factor(domain: StationaryPolicies) -> float:
        """`S / alpha`, with the entrance not counted."""
        return (domain.shape[1] - 1) / start_mass(domain)

    def block_form(self, domain: StationaryPolicies) -> "WatchedSteps | None":
        """Where the oracle lists all policies; otherwise it has to be asked in nearly every step."""
        return WatchedSteps() if type(self) is StartNoise and bind(self.oracle, domain).listed else None


class WatchedSteps(StepForm[Follower]):
    """Behind a `PlannedLeader` whose rivals are listed, block by block: Python asks the oracle when it is in doubt."""

    def play(
        self, distribution: Follower, block: Block, space: object, rng: np.random.Generator
    ) -> tuple[Follower, BlockResult]:
        played, plans, low = empty_steps(block), np.zeros(len(block.slots), np.int64), 0
        first, leader = distribution.time, _planned(distribution)
        plans[0] = leader.oracle_calls if first == 0 else 0  # the question before the first step
        while low < len(block.slots):
            distribution, in_doubt = self._followed(distribution, block, low, first, played)
            leader, low = _planned(distribution), distribution.time - first
            if in_doubt:
                distribution = distribution.led_by(leader.planned())
                plans[low - 1] += 1
        return distribution, chosen_result(played, distribution.state, distribution.domain.shape[1], plans)

    def _followed(
        self, distribution: Follower, block: Block, low: int, first: int, played: Played
    ) -> tuple[Follower, bool]:
        """After the steps from the number `low` of a block on, until somebody has to say who leads."""
        leader, entering, key = _planned(distribution), distribution.entering, distribution.random_key.word
        watch = leader.watch
        at, paid, come = watch.at.copy(), watch.paid.copy(), entering.come
        headed = number_of(entering.policy, watch.listed)
        policies = watch.listed, at, paid, watch.leader, headed, watch.margin
        place = first, distribution.state, key, come
        high, state, in_doubt = kernels.switches.follow_watched(
            block, low, distribution.ways.switch, *policies, *place, played
        )
        past = leader.past.plus(block.tables[low:high, 0])
        moved = replace(leader, past=past, watch=replace(watch, at=at, paid=paid))
        entering = Entering.of(entering.policy, come)
        return replace(distribution, leader=moved, entering=entering, time=first + high, state=int(state)), in_doubt

    def save(self, distribution: Follower) -> dict[str, NDArray[Any]]:
        leader = _planned(distribution)
        watch, past = leader.watch, leader.past
        numbers = np.array([watch.leader, leader.oracle_calls])
        watched = {"at": watch.at, "paid": watch.paid, "numbers": numbers, "past": past.array[: past.known]}
        return saved_follower(distribution) | watched

    def load(self, distribution: Follower, saved: Mapping[str, NDArray[Any]]) -> Follower:
        leader = _planned(distribution)
        number, calls = saved["numbers"].tolist()
        watch = replace(leader.watch, at=saved["at"], paid=saved["paid"], leader=number)
        known = replace(leader, watch=watch, past=leader.past.plus(saved["past"]), oracle_calls=calls)
        return replace(loaded_follower(distribution, saved), leader=known)


def _planned(distribution: Follower) -> PlannedLeader:
    assert isinstance(distribution.leader, PlannedLeader)
    return distribution.leader


def ct_communicating(task: Task, *, rate: float | None = None) -> SwitchingLeader:
    """Full information, few policies: noise for each of them, after Chandrasekaran and Tewari."""
    return switching_leader(EveryPolicy, task, rate)


def ct_oracle(task: Task, *, rate: float | None = None) -> SwitchingLeader:
    """Full information, a start with mass everywhere: a planning oracle, after Chandrasekaran and Tewari."""
    return switching_leader(StartNoise, task, rate, oracle=task.planning_oracle)
