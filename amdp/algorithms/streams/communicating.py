"""Perturbed leaders over communicating kernels (Chandrasekaran and Tewari 2021), with full information.

`EveryPolicy` gives each stationary policy an exponential number of its own: `sqrt(T)` regret, exponential time [quoted
as `D^2 sqrt(ST)`; the bound here is derived]. `StartNoise` asks a planning oracle instead, and needs a start that has
mass at least `alpha` on every state: regret of order `sqrt(T / alpha)` [confirmed: its abstract; details derived].
Both draw their noise once: full information and losses that do not look at the learner make that legitimate.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from typing import ClassVar

import numpy as np

from amdp import kernels
from amdp.algorithms.hedge import MOST_POLICIES, count_policies, list_policies
from amdp.algorithms.streams.entering import LeaderScheme, SwitchingLeader, leading_policy, switching_leader
from amdp.algorithms.streams.steps import RandomKey
from amdp.algorithms.task import Task
from amdp.arrays import Actions, Floats, one_hot
from amdp.errors import InvalidInput
from amdp.kernels.threads import multiply
from amdp.model.chains import chains, laws, rows_of, start_mass
from amdp.model.domains import StationaryPolicies
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Planner, PlanningOracle, bind


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


@dataclass(frozen=True, eq=False)
class PlannedLeader:
    """The cheapest policy for `total`, by a planning oracle."""

    planner: Planner = field(repr=False)
    total: Floats = field(repr=False)  # [t, s, a], losses so far and noise
    actions: Actions  # [s]
    at: Floats = field(repr=False)  # [s], where it would be in the next step
    oracle_calls: int = 1  # questions to the oracle so far

    @classmethod
    def of(cls, planner: Planner, total: Floats, time: int, oracle_calls: int = 1) -> "PlannedLeader":
        """The leader for the perturbed losses `total` `[t, s, a]` before step `time`."""
        domain = planner.domain
        assert isinstance(domain.dynamics, SingleKernel)
        actions = leading_policy(planner, total)
        moves = chains(rows_of(domain.dynamics), one_hot(actions, domain.shape[2])[None])
        return cls(planner, total, actions, laws(moves, domain.initial, time, time + 1)[0, 0], oracle_calls)

    def update(self, table: Floats, time: int, random_key: RandomKey) -> "PlannedLeader":
        """The leader after one more step; one whose expected loss is zero stays, and the oracle is not asked."""
        total = self.total.copy()
        total[time] += table
        states = np.arange(len(self.at))
        if self.at @ table[states, self.actions] > 0.0:
            return self.of(self.planner, total, time + 1, self.oracle_calls + 1)
        domain = self.planner.domain
        assert isinstance(domain.dynamics, SingleKernel)
        return replace(self, total=total, at=multiply(self.at, rows_of(domain.dynamics)[states, self.actions]))


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
        total = np.zeros(domain.shape)
        total[1, :-1] = -rng.exponential(1.0 / self.rate, size=total[1, :-1].shape)
        return PlannedLeader.of(bind(self.oracle, domain), total, 0)

    @staticmethod
    def noise(domain: StationaryPolicies, rounds: int) -> float:
        """`1 + ln A`: the mean over `d_1` of the largest of `A` numbers."""
        return 1.0 + log(domain.shape[2])

    @staticmethod
    def change_factor(domain: StationaryPolicies) -> float:
        """`S / alpha`, with the entrance not counted."""
        return (domain.shape[1] - 1) / start_mass(domain)


def ct_communicating(task: Task, *, rate: float | None = None) -> SwitchingLeader:
    """Full information, few policies: noise for each of them, after Chandrasekaran and Tewari."""
    return switching_leader(EveryPolicy, task, rate)


def ct_oracle(task: Task, *, rate: float | None = None) -> SwitchingLeader:
    """Full information, a start with mass everywhere: a planning oracle, after Chandrasekaran and Tewari."""
    return switching_leader(StartNoise, task, rate, oracle=task.planning_oracle)
