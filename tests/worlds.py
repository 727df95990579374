"""Worlds that the tests share: random dynamics of every kind, costs of every size, and slow, plain formulas."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy
from hypothesis import strategies as st
from numpy.typing import NDArray

from amdp import (
    BernsteinBox,
    BudgetedPolicies,
    Budgets,
    Kernel,
    MarkovPolicies,
    PlanningOracle,
    SparseKernel,
    one_hot,
    oracle,
)
from amdp.arrays import Actions, Costs, Floats
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel

KINDS = ("dense", "homogeneous", "sparse", "sparse-homogeneous", "deterministic", "layered")

ORACLES: dict[str, PlanningOracle] = {
    "dp": oracle("dp"),
    "lp": oracle("lp"),
    "pulp-highs": oracle("pulp"),
    "pulp-cbc": oracle("pulp", solver="CBC"),
    "cvxpy-highs": oracle("cvxpy"),
    "cvxpy-clarabel": oracle("cvxpy", solver="CLARABEL"),
    "enumeration": oracle("enumeration"),
}
SOLVERS = [name for name in ORACLES if name not in ("dp", "enumeration")]


@dataclass(frozen=True, eq=False)
class World:
    """A domain and a batch of costs for it."""

    domain: MarkovPolicies
    costs: Costs

    @property
    def size(self) -> Floats:
        """Steps times the largest cost `[n]`: what errors are relative to."""
        return sizes(self.costs)


def sizes(costs: Costs) -> Floats:
    """Steps times the largest cost `[n]`, or 1 where all costs are zero."""
    largest = np.abs(costs).max(axis=(1, 2, 3))
    relative_to: Floats = costs.shape[1] * np.where(largest > 0, largest, 1.0)
    return relative_to


seeds = st.integers(0, 2**32 - 1)


@st.composite
def shapes(draw: st.DrawFn, steps: int = 4, states: int = 4, actions: int = 3) -> Shape:
    """Steps, states, actions, from 1 up to the given sizes."""
    return draw(st.integers(1, steps)), draw(st.integers(1, states)), draw(st.integers(1, actions))


@st.composite
def kernel_worlds(
    draw: st.DrawFn, steps: int = 4, states: int = 4, actions: int = 3, kinds: tuple[str, ...] = KINDS, n: int = 3
) -> World:
    """A kernel of some kind, a start from which it is closed, and costs."""
    shape = draw(shapes(steps, states, actions))
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(kinds))
    kernel = random_kernel(kind, shape, rng)
    initial = 0 if kind == "layered" else draw(st.integers(0, shape[1] - 1))
    return World(MarkovPolicies(kernel, initial), draw(costs_of(shape, n)))


@st.composite
def box_worlds(draw: st.DrawFn, steps: int = 3, states: int = 4, actions: int = 3, n: int = 3) -> World:
    """A box of some width around a kernel of some kind, and costs."""
    shape = draw(shapes(steps, states, actions))
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(("dense", "homogeneous", "deterministic")))
    width = draw(st.sampled_from((0.0, 0.05, 0.3, 1.0)))
    box = box_around(random_kernel(kind, shape, rng), width, rng)
    return World(MarkovPolicies(box, draw(st.integers(0, shape[1] - 1))), draw(costs_of(shape, n)))


@st.composite
def costs_of(draw: st.DrawFn, shape: Shape, n: int = 3) -> Costs:
    """Up to `n` costs of one kind each, both signs, of size 1e-8 to 1e8."""
    rng = np.random.default_rng(draw(seeds))
    kinds = draw(st.lists(st.sampled_from(("normal", "uniform", "whole", "mixed", "zero")), min_size=1, max_size=n))
    powers = [draw(st.sampled_from((-8, -3, 0, 0, 3, 8))) for _ in kinds]
    return np.stack([10.0**power * random_cost(kind, shape, rng) for kind, power in zip(kinds, powers, strict=True)])


def random_cost(kind: str, shape: Shape, rng: np.random.Generator) -> Floats:
    """One cost array: bell-shaped, uniform, whole numbers with many ties, of all sizes at once, or zero."""
    if kind == "normal":
        return rng.normal(size=shape)
    if kind == "uniform":
        return rng.random(shape)
    if kind == "whole":
        return rng.integers(-2, 3, size=shape).astype(np.float64)
    if kind == "mixed":
        return rng.normal(size=shape) * 10.0 ** rng.integers(-8, 1, size=shape)
    return np.zeros(shape)


def random_kernel(kind: str, shape: Shape, rng: np.random.Generator) -> SingleKernel:
    """A kernel of one of `KINDS`."""
    steps, states, actions = shape
    if kind == "dense":
        return Kernel(random_rows(shape, rng))
    if kind == "homogeneous":
        return Kernel.homogeneous(random_rows((1, states, actions), rng)[0], steps)
    if kind == "sparse":
        return SparseKernel([as_csr(step) for step in few_successors(shape, rng)])
    if kind == "sparse-homogeneous":
        return SparseKernel.homogeneous(as_csr(few_successors((1, states, actions), rng)[0]), steps)
    if kind == "deterministic":
        return Kernel(np.eye(states)[rng.integers(states, size=shape)])
    return layered(shape, rng)


def random_rows(shape: Shape, rng: np.random.Generator) -> Floats:
    """Rows `[h, s, a, y]`, uniform on the simplex."""
    return rng.dirichlet(np.ones(shape[1]), size=shape)


def few_successors(shape: Shape, rng: np.random.Generator) -> Floats:
    """Rows with one or two successors each."""
    here, there = rng.integers(shape[1], size=(2, *shape))
    share = rng.random((*shape, 1))
    rows: Floats = share * np.eye(shape[1])[here] + (1 - share) * np.eye(shape[1])[there]
    return rows


def layered(shape: Shape, rng: np.random.Generator) -> Kernel:
    """Half of the states can be reached in even steps, the other half in odd ones; all other rows are zero."""
    steps, states, _ = shape
    p = random_rows(shape, rng)
    side = np.arange(states) % 2
    if states == 1:
        return Kernel(p)
    for h in range(steps):
        p[h][:, :, side == h % 2] = 0.0
        p[h] /= p[h].sum(axis=-1, keepdims=True)
        p[h][side != h % 2] = 0.0
    return Kernel(p)


def as_csr(step: Floats) -> scipy.sparse.csr_array:
    """Rows `[s, a, y]` as a matrix `[s*a, y]`."""
    return scipy.sparse.csr_array(step.reshape(-1, step.shape[-1]))


def box_around(kernel: SingleKernel, width: float, rng: np.random.Generator) -> BernsteinBox:
    """A box that holds `kernel`, each side up to `width` away."""
    p = kernel.dense().p
    lower = np.maximum(0.0, p - width * rng.random(p.shape))
    upper = np.minimum(1.0, p + width * rng.random(p.shape))
    return BernsteinBox(lower, upper)


def kernel_inside(box: BernsteinBox, rng: np.random.Generator) -> Kernel:
    """A random kernel of the box: a mixture of two that fill each row up in random orders."""
    share = rng.random()
    return Kernel(share * _filled(box, rng) + (1 - share) * _filled(box, rng))


def _filled(box: BernsteinBox, rng: np.random.Generator) -> Floats:
    p = np.array(box.lower)
    for place in np.ndindex(*box.shape):
        for y in rng.permutation(box.shape[1]):
            p[place][y] += max(0.0, min(box.upper[place][y] - p[place][y], 1.0 - p[place].sum()))
    p[-1] = 1.0 / box.shape[1]
    return p


def random_policies(n: int, shape: Shape, rng: np.random.Generator, *, deterministic: bool = False) -> Floats:
    """Policies `[n, h, s, a]`."""
    if deterministic:
        return np.eye(shape[2])[rng.integers(shape[2], size=(n, *shape[:2]))]
    return rng.dirichlet(np.ones(shape[2]), size=(n, *shape[:2]))


def least_row_value(lower: Floats, upper: Floats, values: Floats) -> float:
    """The least of `<p, values>` over the vertices of `lower <= p <= upper`, `sum p = 1`: by listing them."""
    return min(float(vertex @ values) for vertex in row_vertices(lower, upper))


def row_vertices(lower: Floats, upper: Floats) -> list[Floats]:
    """All vertices of a row of a box: every entry but one sits on a bound, the last takes what is left."""
    states = len(lower)
    vertices = []
    for free, sides in product(range(states), product((0, 1), repeat=states - 1)):
        fixed = np.insert(np.array(sides, dtype=np.int64), free, 0)
        vertex = np.where(fixed == 1, upper, lower)
        vertex[free] = 1.0 - (vertex.sum() - vertex[free])
        if lower[free] - 1e-12 <= vertex[free] <= upper[free] + 1e-12:
            vertices.append(vertex)
    return vertices


def plain_values(domain: MarkovPolicies, cost: Floats, actions: NDArray[np.integer] | None = None) -> Floats:
    """Values `[h, s]` of `actions`, or of the best policy, by the textbook recursion in plain loops."""
    steps, states, n_actions = domain.shape
    values = np.zeros((steps + 1, states))
    for h, s in product(reversed(range(steps)), range(states)):
        choices = range(n_actions) if actions is None else [int(actions[h, s])]
        values[h, s] = min(cost[h, s, a] + _plain_expectation(domain, h, s, a, values[h + 1]) for a in choices)
    return values[:-1]


def plain_best(domain: MarkovPolicies, cost: Floats) -> Actions:
    """The actions `[h, s]` of the best policy by the same recursion, the first of those that cost the least."""
    steps, states, n_actions = domain.shape
    later = np.vstack([plain_values(domain, cost)[1:], np.zeros(states)])
    best = np.empty((steps, states), np.int32)
    for h, s in product(range(steps), range(states)):
        best[h, s] = np.argmin(
            [cost[h, s, a] + _plain_expectation(domain, h, s, a, later[h]) for a in range(n_actions)]
        )
    return best


def _plain_expectation(domain: MarkovPolicies, h: int, s: int, a: int, later: Floats) -> float:
    dynamics = domain.dynamics
    if h == domain.shape[0] - 1:
        return 0.0
    if isinstance(dynamics, BernsteinBox):
        return least_row_value(dynamics.lower[h, s, a], dynamics.upper[h, s, a], later)
    assert isinstance(dynamics, SingleKernel)
    return float(sum(dynamics.dense().p[h, s, a, y] * later[y] for y in range(len(later))))


def all_policies(shape: Shape) -> Actions:
    """Every deterministic Markov policy `[n, h, s]`."""
    steps, states, actions = shape
    every = np.array(list(product(range(actions), repeat=steps * states)), dtype=np.int32)
    return every.reshape(-1, steps, states)


def budgeted_policies(
    seed: int, count: int, shape: Shape = (3, 2, 2), room: float = 0.3, initial: int = 0
) -> BudgetedPolicies:
    """Random dynamics and usage; limits between what one policy uses, which keeps them all, and what another does."""
    rng = np.random.default_rng(seed)
    kernel = Kernel(rng.dirichlet(np.ones(shape[1]), size=shape))
    usage = rng.normal(size=(count, *shape)) * 10.0 ** rng.integers(-2, 3, size=(count, 1, 1, 1))
    sizes = np.abs(usage).reshape(count, -1).max(axis=1)
    easy = kernel.cheapest((usage / sizes[:, None, None, None]).sum(axis=0, keepdims=True)).actions
    even = np.full((1, *shape), 1.0 / shape[2])
    budgets = Budgets(usage, np.full(count, 1e9))
    low, high = (budgets.use(kernel.occupancy(each, initial))[0] for each in (one_hot(easy, shape[2]), even))
    return BudgetedPolicies(kernel, Budgets(usage, low + room * np.abs(high - low)), initial)
