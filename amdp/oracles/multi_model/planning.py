"""From a search over decisions to plans: one place that scales costs, settles ties and evaluates.

A policy of a `MultiModel` is a row of decisions `[d]`, one for each step and state or one for each state. What all
searches ask is `Problem.values`: the weighted sum of what a policy pays in the models. A decision of -1 is left open:
then each model makes it for itself, as suits it best at every place, and the sum is a bound on all policies that agree
with the decisions that are made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from math import inf
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp.arrays import Costs, Floats
from amdp.model.dynamics import Sweep
from amdp.model.several_models import MultiModel
from amdp.oracles.base import Planner, PlanningDomain, PlanningOracle, Plans, Report, Status
from amdp.oracles.sizes import power_of_two_above
from amdp.oracles.solving import worst

TIE_TOLERANCE = 1e-13  # relative to the size of a problem: policies that differ by less differ by rounding
NUMBERS_AT_ONCE = 2**21  # costs of a batch of policies

Choices = NDArray[np.int64]  # [d], or [n, d]; -1: open


@dataclass(frozen=True, eq=False)
class Problem:
    """Costs `[m, h, s, a]` of size at most 1 over several models."""

    domain: MultiModel
    costs: Costs

    @cached_property
    def weights(self) -> Floats:
        """Of the models, `[m]`."""
        return np.asarray(self.domain.weights)

    @property
    def size(self) -> float:
        """The most that a policy can pay: gaps and tolerances are relative to it."""
        return float(self.weights.sum() * self.domain.shape[0])

    def values(self, choices: Choices) -> Floats:
        """What policies `[n, d]` pay, `[n]`; where decisions are open, a bound."""
        part = max(1, NUMBERS_AT_ONCE // self.costs[0].size)
        return np.concatenate([self._values(choices[i : i + part]) for i in range(0, len(choices), part)])

    def _values(self, choices: Choices) -> Floats:
        starts = [model.initial for model in self.domain.models]
        sweeps = zip(self.sweeps(choices), starts, strict=True)
        total: Floats = self.weights @ np.array([sweep.values[:, 0, initial] for sweep, initial in sweeps])
        return total

    def sweeps(self, choices: Choices) -> list[Sweep]:
        """The backward sweep of policies `[n, d]` in each of the models."""
        wanted, as_they_are = self.domain.by_place(choices), np.full(len(choices), -inf)
        many = (len(choices), *self.costs.shape[1:])
        models = zip(self.domain.kernels, self.costs, strict=True)
        return [kernel.follow(np.broadcast_to(cost, many), wanted, as_they_are) for kernel, cost in models]

    @cached_property
    def undecided(self) -> Choices:
        """All decisions open that matter; the others are 0."""
        choices = np.zeros(self.domain.n_decisions, dtype=np.int64)
        choices[self.domain.open_decisions] = -1
        return choices

    @cached_property
    def relaxed(self) -> float:
        """What the models would pay if each had a policy of its own: no policy pays less."""
        return float(self.values(self.undecided[None])[0])

    def alternatives(self, choices: Choices, decision: int) -> Choices:
        """The policies `[a, d]` that differ in one decision at most."""
        others = np.repeat(choices[None], self.domain.shape[2], axis=0)
        others[:, decision] = np.arange(len(others))
        return others


class Found(NamedTuple):
    """A policy, and a bound that no policy undercuts."""

    choices: Choices
    bound: float
    nodes: int = 0
    note: str = ""  # why it stopped early


Search = Callable[[Problem, float], Found]  # given the end of its time, as `perf_counter` counts


class MultiModelPlanner(Planner):
    """A planner that puts one problem after the other to a search, and evaluates what comes back."""

    domain: MultiModel  # type: ignore[assignment]

    def __init__(
        self,
        oracle: PlanningOracle,
        domain: PlanningDomain,
        search: Search,
        gap: float,
        seconds: float = inf,  # for each of the costs
        reason: str = "",  # why this search was chosen
        solver: str = "",
    ) -> None:
        super().__init__(oracle, domain)
        self._search, self._gap, self._seconds, self.reason, self._solver = search, gap, seconds, reason, solver

    def shaped(self, costs: ArrayLike) -> Costs:
        """Costs `[n, m, h, s, a]`; those without `m` are the same in all models."""
        shaped = super().shaped(costs)
        in_each_model = shaped if shaped.ndim == 5 else shaped[:, None]
        return np.broadcast_to(in_each_model, (len(shaped), *self.domain.cost_shape))

    def minimize(self, costs: Costs) -> Plans:
        """The cheapest policy for each of `costs` `[n, m, h, s, a]`, or `[n, h, s, a]`."""
        began = perf_counter()
        checked = self.checked(costs)
        scales = np.array([power_of_two_above(float(np.abs(cost).max())) for cost in checked])
        problems = [Problem(self.domain, cost / scale) for cost, scale in zip(checked, scales, strict=True)]
        found = [self._search(problem, perf_counter() + self._seconds) for problem in problems]
        # Of a search that was stopped, ties are left as they are: to settle them takes time as well.
        answers = zip(problems, found, strict=True)
        policies = [each.choices if each.note else settled(problem, each.choices) for problem, each in answers]
        objective = np.array([p.values(choices[None])[0] for p, choices in zip(problems, policies, strict=True)])
        bound = np.minimum(objective, [each.bound for each in found])
        largest = np.abs(checked).max(axis=(1, 2, 3, 4)) / scales
        allowed = self._gap * problems[0].size * largest
        statuses = [Status.OPTIMAL if met else Status.FEASIBLE for met in objective - bound <= allowed]
        in_each_model = [p.sweeps(choices[None]) for p, choices in zip(problems, policies, strict=True)]
        values = np.array([[sweep.values[0] for sweep in sweeps] for sweeps in in_each_model])
        return Plans(
            np.array(policies, dtype=np.int32).reshape(len(checked), *self._policy_shape),
            objective * scales,
            bound * scales,
            worst(statuses),
            values * scales[:, None, None, None],
            self._report(found, perf_counter() - began),
            checked.shape[4],
            tuple(statuses),
        )

    @property
    def _policy_shape(self) -> tuple[int, ...]:
        steps, states, _ = self.domain.shape
        return (states,) if self.domain.is_stationary else (steps, states)

    def _report(self, found: list[Found], seconds: float) -> Report:
        notes = [self.reason, *sorted({each.note for each in found})]
        nodes = sum(each.nodes for each in found)
        return Report(self.name, seconds, nodes=nodes, solver=self._solver, note="; ".join(filter(None, notes)))


def settled(problem: Problem, choices: Choices) -> Choices:
    """The policy, with the first action at each decision, one after the other, that makes it no dearer."""
    result, tie = choices.copy(), TIE_TOLERANCE * problem.size
    value = problem.values(choices[None])[0]
    for decision in np.flatnonzero(choices > 0).tolist():
        cheap = problem.values(problem.alternatives(result, decision)) <= value + tie
        result[decision] = min(np.flatnonzero(cheap).min(initial=result[decision]), result[decision])
    return result


def descended(problem: Problem, choices: Choices, end: float = inf) -> tuple[Choices, float]:
    """A policy of which no single decision can be improved, and what it pays; or what was reached until `end`."""
    value, decisions = float(problem.values(choices[None])[0]), problem.domain.open_decisions.tolist()
    since_better = 0
    for decision in cycle(decisions):
        if since_better == len(decisions) or perf_counter() >= end:
            break
        others = problem.alternatives(choices, decision)
        values = problem.values(others)
        best, since_better = int(values.argmin()), since_better + 1
        if values[best] < value - TIE_TOLERANCE * problem.size:
            choices, value, since_better = others[best], float(values[best]), 0
    return choices, value
