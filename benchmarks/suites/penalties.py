"""Markov oracles on costs with huge penalties and on boxes of hardly any width: answers against exact arithmetic.

An answer is right if it is called optimal, and its objective is within 1e-9 of the exact one, relative to what the best
policy pays. A note says how often a solver had to be asked again, and how often its policy was not the best.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import scipy

from amdp import BernsteinBox, Kernel, MarkovPolicies, SparseKernel, Status, bind, oracle
from amdp.arrays import Actions, Floats
from amdp.model.dynamics import Dynamics
from amdp.oracles.base import PlanningOracle
from benchmarks.results import Fuzz
from benchmarks.timing import Effort

ORACLES: dict[str, PlanningOracle] = {
    "dp": oracle("dp"),
    "lp": oracle("lp"),
    "pulp with HiGHS": oracle("pulp"),
    "pulp with CBC": oracle("pulp", solver="CBC"),
    "cvxpy with HIGHS": oracle("cvxpy"),
    "cvxpy with CLARABEL": oracle("cvxpy", solver="CLARABEL"),
    "enumeration": oracle("enumeration"),
}
KINDS = ("dense", "sparse", "box")
POWERS = range(3, 16)  # penalties of 1e3 to 1e15
WIDTHS = (1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14)
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Case:
    """Dynamics and one cost array."""

    dynamics: Dynamics
    cost: Floats  # [h, s, a]


def with_penalties(kind: str, power: int, seed: int) -> Case:
    """Costs of size 0.1 to 1000, some below zero, and penalties of about `10**power`, by `seed % 4`:

    one at a single pair; at some actions, one of each state aside; the same at some whole states, too, which can be
    avoided where rows are sparse; at some actions with costs of both signs.
    """
    rng = np.random.default_rng([KINDS.index(kind), power, seed])
    dynamics = _dynamics(kind, 0.2 * rng.random(), rng)
    size = 10.0 ** rng.uniform(-1.0, 3.0)
    cost = size * (rng.random(dynamics.shape) - (0.3 if seed % 4 == 3 else 0.0))
    penalty = 10.0**power * rng.uniform(0.5, 2.0, cost.shape)
    struck = np.zeros(cost.shape, dtype=bool)
    if seed % 4 == 0:
        struck[tuple(rng.integers(cost.shape))] = True
    else:
        struck |= rng.random(cost.shape) < 0.4
        np.put_along_axis(struck, rng.integers(cost.shape[2], size=(*cost.shape[:2], 1)), values=False, axis=-1)
    if seed % 4 == 2:
        struck |= (rng.random(cost.shape[:2]) < 0.2)[..., None]
    return Case(dynamics, np.where(struck, cost + penalty, cost))


def narrow(width: float, seed: int) -> Case:
    """A box of this width, or in every third case with some entries wide, around a random kernel."""
    rng = np.random.default_rng([round(-np.log10(width)), seed])
    shape = rng.integers(2, 6), rng.integers(2, 7), rng.integers(2, 4)
    p = np.asarray(rng.dirichlet(np.full(shape[1], (1.0, 0.3)[seed % 2]), size=shape))
    wide = (seed % 3 == 0) & (rng.random(p.shape) < 0.3)
    below, above = np.where(wide, 0.2, width) * rng.random((2, *p.shape))
    return Case(BernsteinBox(np.maximum(0.0, p - below), np.minimum(1.0, p + above)), rng.normal(size=shape))


def exact_value(case: Case) -> float:
    """The least cost from state 0, by backward induction in rational numbers."""
    steps, states, actions = case.dynamics.shape
    values = [Fraction(0)] * states
    for h in reversed(range(steps)):
        values = [
            min(
                Fraction(case.cost[h, s, a]) + (_least(case.dynamics, (h, s, a), values) if h < steps - 1 else 0)
                for a in range(actions)
            )
            for s in range(states)
        ]
    return float(values[0])


def _least(dynamics: Dynamics, place: tuple[int, int, int], values: list[Fraction]) -> Fraction:
    if not isinstance(dynamics, BernsteinBox):
        assert isinstance(dynamics, Kernel | SparseKernel)
        row = dynamics.dense().p[place]
        return sum((Fraction(p) * value for p, value in zip(row, values, strict=True)), Fraction(0))
    lower = [Fraction(p) for p in dynamics.lower[place]]
    upper = [Fraction(p) for p in dynamics.upper[place]]
    left, total = 1 - sum(lower), Fraction(0)
    for y in sorted(range(len(values)), key=values.__getitem__):
        spent = max(Fraction(0), min(upper[y] - lower[y], left))
        total, left = total + (lower[y] + spent) * values[y], left - spent
    return total


def judge(named: PlanningOracle, cases: Iterator[Case]) -> tuple[int, int, Counter[str]]:
    """How many answers were wrong, out of how many, and what happened on the way."""
    wrong, total, events = 0, 0, Counter[str]()
    for case in cases:
        domain = MarkovPolicies(case.dynamics)
        found = bind(named, domain).minimize(case.cost[None])
        best = bind("dp", domain).minimize(case.cost[None])
        paid = _paid(domain, best.actions[0], case.cost)
        close = abs(found.objective[0] - exact_value(case)) <= TOLERANCE * paid
        wrong += not (close and found.status is Status.OPTIMAL)
        total += 1
        events.update(improved=found.report.improved, rebuilt=found.report.rebuilds)
        events.update([found.report.note] if found.report.note else [])
    return wrong, total, events


def _paid(domain: MarkovPolicies, actions: Actions, cost: Floats) -> float:
    """The absolute costs of a policy, over a box under the kernel that is cheapest for it."""
    values = domain.dynamics.follow(cost[None], actions[None], np.full(1, -np.inf)).values[0]
    dynamics = domain.dynamics
    kernel = dynamics.optimistic_kernel(values) if isinstance(dynamics, BernsteinBox) else dynamics
    swept = kernel.follow(np.abs(cost)[None], actions[None], np.full(1, -np.inf))
    return float(swept.values[0, 0, domain.initial])


def _dynamics(kind: str, width: float, rng: np.random.Generator) -> Dynamics:
    p = _rows(rng)
    if kind == "dense":
        return Kernel(p)
    if kind == "sparse":
        few = np.where(p >= np.sort(p, axis=-1)[..., -2:-1], p, 0.0)
        few /= few.sum(axis=-1, keepdims=True)
        return SparseKernel([scipy.sparse.csr_array(step.reshape(-1, step.shape[-1])) for step in few])
    return BernsteinBox(np.maximum(0.0, p - width), np.minimum(1.0, p + width))


def _rows(rng: np.random.Generator) -> Floats:
    steps, states, actions = (int(rng.integers(2, most)) for most in (5, 5, 4))
    if steps * states * np.log2(actions) > 14:  # as many policies as enumeration still tries
        steps, states, actions = 3, 3, 2
    return np.asarray(rng.dirichlet(np.full(states, 0.5), size=(steps, states, actions)))


def _penalized(kind: str, seeds: int) -> Iterator[Case]:
    return (with_penalties(kind, power, seed) for power, seed in product(POWERS, range(seeds)))


def _narrow(seeds: int) -> Iterator[Case]:
    return (narrow(width, seed) for width, seed in product(WIDTHS, range(seeds)))


def _row(what: str, name: str, cases: Iterator[Case]) -> Fuzz:
    wrong, total, events = judge(ORACLES[name], cases)
    return Fuzz.counted(what, name, wrong, total, ", ".join(f"{count} {event}" for event, count in events.items()))


def _penalties(name: str, effort: Effort) -> Iterator[Fuzz]:
    for kind in KINDS:
        yield _row(f"penalties, {kind}", name, _penalized(kind, 12 if effort.seconds else 1))


def _widths(name: str, effort: Effort) -> Iterator[Fuzz]:
    yield _row("narrow boxes", name, _narrow(40 if effort.seconds else 2))


CASES = {name: partial(_penalties, name) for name in ORACLES} | {
    f"{name} on narrow boxes": partial(_widths, name) for name in ORACLES if name != "enumeration"
}
