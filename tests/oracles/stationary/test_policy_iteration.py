"""Endless planning: against all policies, against linear programs, laws of scale and shift, and what is refused."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy
from numpy.testing import assert_allclose
from scipy.optimize import linprog

import amdp
from amdp import AverageCostPolicies, DiscountedPolicies, InvalidInput, Kernel, SparseKernel, Status, UnsupportedDomain
from amdp.arrays import Floats
from amdp.model.end_components import end_components

SEEDS = range(30)


def kernel_of(rows: Floats, sparse: bool = False) -> Kernel | SparseKernel:
    if sparse:
        return SparseKernel.homogeneous(scipy.sparse.csr_array(rows.reshape(-1, rows.shape[2])), 1)
    return Kernel.homogeneous(rows, 1)


def random_rows(rng: np.random.Generator, states: int = 4, actions: int = 2) -> Floats:
    return rng.dirichlet(np.full(states, 0.3), size=(states, actions))


def certain_rows(rng: np.random.Generator, states: int = 4, actions: int = 3) -> Floats:
    """Certain moves, the first action along a ring: all states communicate, and most policies have several cycles."""
    moves = rng.integers(states, size=(states, actions))
    moves[:, 0] = (np.arange(states) + 1) % states
    return np.eye(states)[moves]


def gain(chain: Floats, paid: Floats) -> Floats:
    """The average cost `[..., s]` from each state, by a high power of chains that stay where they are every other time.

    Those chains `[..., s, y]` have the same averages and no period.
    """
    power = 0.5 * (np.eye(chain.shape[-1]) + chain)
    for _ in range(60):
        power = power @ power
        power /= power.sum(axis=-1, keepdims=True)
    return np.asarray((power @ paid[..., None])[..., 0])


def least(rows: Floats, cost: Floats, discount: float | None) -> Floats:
    """The least total from each state, by trying out all policies."""
    states, actions = cost.shape
    policies = np.array(list(product(range(actions), repeat=states)))
    chains, paid = rows[np.arange(states), policies], cost[np.arange(states), policies]
    if discount is None:
        return np.asarray(gain(chains, paid).min(axis=0))
    totals = np.linalg.solve(np.eye(states) - discount * chains, paid[..., None])[..., 0]
    return np.asarray(totals.min(axis=0))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_discounted_answers_are_those_of_all_policies(discount: float, sparse: bool) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        rows, cost = random_rows(rng), rng.normal(size=(4, 2))
        best = least(rows, cost, discount)
        plan = amdp.plan("policy-iteration", DiscountedPolicies(kernel_of(rows, sparse), discount, 1), cost)
        assert plan.status is Status.OPTIMAL
        assert plan.bound <= plan.objective
        assert_allclose(plan.values, best, atol=1e-11)
        assert_allclose([plan.objective, plan.bound], best[1], atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("make", [random_rows, certain_rows])
def test_averages_are_those_of_all_policies_with_any_number_of_closed_classes(make: type, sparse: bool) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        rows = make(rng)
        cost = rng.integers(4, size=rows.shape[:2]) / 1.0  # ties, and policies of the same average
        plan = amdp.plan("policy-iteration", AverageCostPolicies(kernel_of(rows, sparse), 1), cost)
        assert plan.status is Status.OPTIMAL
        assert_allclose([plan.objective, plan.bound], least(rows, cost, None)[1], atol=1e-10)
        chain, paid = rows[np.arange(len(cost)), plan.actions], cost[np.arange(len(cost)), plan.actions]
        assert_allclose(gain(chain, paid), plan.objective, atol=1e-10)


def test_the_linear_program_of_average_cost_agrees() -> None:
    """`max g` with `g + V(s) <= c(s, a) + (P V)(s, a)`."""
    rng = np.random.default_rng(3)
    rows, cost = random_rows(rng, 30, 4), rng.random((30, 4))
    pairs = np.repeat(np.eye(30), 4, axis=0) - rows.reshape(-1, 30)
    program = linprog(
        np.eye(31)[0] * -1.0, np.hstack([np.ones((120, 1)), pairs]), cost.reshape(-1), bounds=[(None, None)] * 31
    )
    plan = amdp.plan("auto", AverageCostPolicies(kernel_of(rows)), cost)
    assert program.x is not None
    assert_allclose(plan.objective, program.x[0], atol=1e-8)
    assert plan.report.note.startswith("chose policy-iteration")


def test_a_discount_near_one_approaches_the_average() -> None:
    rng = np.random.default_rng(4)
    rows, cost = random_rows(rng, 6, 3), rng.random((6, 3))
    average = amdp.plan("auto", AverageCostPolicies(kernel_of(rows)), cost)
    apart = [
        amdp.plan("auto", DiscountedPolicies(kernel_of(rows), 1.0 - rest), cost).objective * rest - average.objective
        for rest in (1e-2, 1e-4, 1e-6)
    ]
    assert abs(apart[2]) < 1e-5
    assert abs(apart[0]) > abs(apart[1]) > abs(apart[2])


@pytest.mark.parametrize("discount", [None, 0.9])
def test_shift_scale_and_start(discount: float | None) -> None:
    rng = np.random.default_rng(5)
    rows, costs = random_rows(rng), rng.normal(size=(3, 4, 2))
    start = rng.dirichlet(np.ones(4))
    horizon = 1.0 if discount is None else 10.0

    def solved(given: Floats, initial: int | Floats) -> amdp.Plans:
        kernel = kernel_of(rows)
        average = AverageCostPolicies(kernel, initial)
        return amdp.bind(
            "auto", average if discount is None else DiscountedPolicies(kernel, discount, initial)
        ).minimize(given)

    plain = solved(costs, start)
    assert_allclose(solved(costs + 7.0, start).objective, plain.objective + 7.0 * horizon)
    assert_allclose(solved(costs * 1e9, start).objective, plain.objective * 1e9)
    assert (solved(costs * 1e9, start).actions == plain.actions).all()
    by_state = np.array([solved(costs, s).objective for s in range(4)])
    assert_allclose(start @ by_state, plain.objective)
    assert plain[0].policy.shape == (4, 2)


def test_a_period_does_no_harm() -> None:
    ring = np.eye(3)[[[1, 1], [2, 2], [0, 0]]]
    plan = amdp.plan("policy-iteration", AverageCostPolicies(kernel_of(ring)), [[3.0, 1.0], [5.0, 5.0], [0.0, 2.0]])
    assert plan.actions.tolist() == [1, 0, 0]
    assert_allclose([plan.objective, plan.bound], 2.0)
    assert_allclose(plan.values, [0.0, 1.0, -2.0], atol=1e-12)  # g + V(0) = 1 + V(1), g + V(1) = 5 + V(2)


@pytest.mark.parametrize("tiny", [1e-6, 1e-9, 1e-12, 1e-20, 1e-200])
def test_the_smallest_chance_to_leave_counts_in_the_end(tiny: float) -> None:
    """One may wait at cost 1, or pay more and leave for a free place with a tiny chance: for ever, that is better."""
    rows = np.array([[[1.0, 0.0], [1.0 - tiny, tiny]], [[0.0, 1.0], [1.0, 0.0]]])
    plan = amdp.plan("policy-iteration", AverageCostPolicies(kernel_of(rows)), [[1.0, 1.5], [0.0, 0.0]])
    assert plan.bound <= 0.0 <= plan.objective
    assert plan.status is Status.OPTIMAL
    assert plan.actions.tolist() == [1, 0]


def exact_gain(chain: list[list[Fraction]], paid: list[Fraction]) -> Fraction:
    """The average cost of a chain whose chances are all positive."""
    law = exact_law(chain)
    return sum((mass * cost for mass, cost in zip(law, paid, strict=True)), Fraction(0)) / sum(law)


def exact_law(chain: list[list[Fraction]]) -> list[Fraction]:
    """Its stationary law, up to a factor, by elimination of the last state."""
    if len(chain) == 1:
        return [Fraction(1)]
    *kept, (*into, _) = chain
    leaving = sum(into)
    shares = [row[-1] / leaving for row in kept]  # visits of the last state for one visit of each of the others
    moves = [
        [move + share * back for move, back in zip(row[:-1], into, strict=True)]
        for row, share in zip(kept, shares, strict=True)
    ]
    law = exact_law(moves)
    return [*law, sum((mass * share for mass, share in zip(law, shares, strict=True)), Fraction(0))]


@pytest.mark.parametrize("smallest", [3, 8, 14])
def test_on_chains_that_hardly_mix_the_bound_holds_exactly(smallest: int) -> None:
    """Chances down to 10^-14, against fractions: a bound that rounding lifts, or a value that equations lose, shows."""
    optimal = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        rows = 10.0 ** -rng.integers(0, smallest + 1, size=(3, 2, 3)).astype(float)
        cost = rng.integers(-4, 5, size=(3, 2)) / 4.0
        rows /= rows.sum(axis=-1, keepdims=True)
        plan = amdp.plan("policy-iteration", AverageCostPolicies(kernel_of(rows)), cost)
        best = min(exact_gain(*exact_policy(rows, cost, policy)) for policy in product(range(2), repeat=3))
        paid = exact_gain(*exact_policy(rows, cost, tuple(plan.actions.tolist())))
        assert plan.bound <= float(best) + 1e-9
        assert abs(plan.objective - float(paid)) <= 1e-9 or plan.status is not Status.OPTIMAL
        assert float(paid - best) <= 1e-9 or plan.status is not Status.OPTIMAL
        optimal += plan.status is Status.OPTIMAL
    assert optimal >= 25


def exact_policy(rows: Floats, cost: Floats, policy: tuple[int, ...]) -> tuple[list[list[Fraction]], list[Fraction]]:
    """The chain and the costs of a policy as fractions, its rows scaled to sum to 1 exactly."""
    chain = [[Fraction(chance) for chance in rows[s, a].tolist()] for s, a in enumerate(policy)]
    scaled = [[chance / sum(row) for chance in row] for row in chain]
    return scaled, [Fraction(cost[s, a]) for s, a in enumerate(policy)]


def test_bounds_hold_and_answers_are_optimal_on_spiky_rows() -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        rows = rng.dirichlet(np.full(4, 0.02), size=(4, 2)) + 1e-9
        rows /= rows.sum(axis=-1, keepdims=True)
        cost = rng.normal(size=(4, 2))
        for discount in (None, 0.999):
            kernel = kernel_of(rows)
            domain = AverageCostPolicies(kernel) if discount is None else DiscountedPolicies(kernel, discount)
            plan, best = amdp.plan("auto", domain, cost), least(rows, cost, discount)[0]
            assert plan.bound <= best + 1e-6
            assert_allclose(plan.objective, best, rtol=1e-6, atol=1e-6)


def test_rows_that_miss_the_sum_1_by_rounding_are_no_way_out() -> None:
    rng = np.random.default_rng(9)
    rows, cost = random_rows(rng), rng.random((4, 2))
    for sparse in (False, True):
        for kernel in (kernel_of(rows, sparse), kernel_of(rows * (1.0 + 5e-9), sparse)):
            for domain, best in (
                (AverageCostPolicies(kernel), least(rows, cost, None)[0]),
                (DiscountedPolicies(kernel, 0.999), least(rows, cost, 0.999)[0]),
            ):
                plan = amdp.plan("auto", domain, cost)
                assert plan.status is Status.OPTIMAL
                assert_allclose(plan.objective, best, rtol=1e-9)


def lasting_rows(rng: np.random.Generator, states: int = 5, actions: int = 2) -> Floats:
    """Rows with one or two successors, often only the own state: several places to stay in, and ways between them."""
    rows = np.zeros((states, actions, states))
    for s, a in product(range(states), range(actions)):
        successors = [s, s] if rng.random() < 0.25 else rng.integers(states, size=2)
        np.add.at(rows[s, a], successors, 0.5)
    return rows


@pytest.mark.parametrize("sparse", [False, True])
def test_averages_that_depend_on_where_one_ends(sparse: bool) -> None:
    several = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows, cost = lasting_rows(rng), rng.integers(-3, 4, size=(5, 2)) / 2.0
        several += len(end_components(rows.reshape(-1, 5))) > 1
        best, start = least(rows, cost, None), rng.dirichlet(np.ones(5))
        for initial in (0, 1, start):
            plan = amdp.plan("policy-iteration", AverageCostPolicies(kernel_of(rows, sparse), initial), cost)
            expected = start @ best if initial is start else best[initial]
            assert plan.status is Status.OPTIMAL, plan
            assert_allclose([plan.objective, plan.bound], expected, atol=1e-10)
            chain, paid = rows[np.arange(5), plan.actions], cost[np.arange(5), plan.actions]
            assert_allclose(gain(chain, paid), best, atol=1e-10)
    assert several >= 20


def test_end_components() -> None:
    rng = np.random.default_rng(6)
    rows = np.zeros((5, 2, 5))
    rows[:3, :, :3] = random_rows(rng, 3, 2) + 0.01
    rows[3, :, 4] = rows[4, :, 0] = 1.0  # 3 -> 4 -> the others: nobody stays
    assert [each.states.tolist() for each in end_components(rows.reshape(-1, 5))] == [[0, 1, 2]]
    rows[4, 1] = np.eye(5)[3]  # now a policy may go round 3 and 4
    first, second = end_components(rows.reshape(-1, 5))
    assert second.states.tolist() == [3, 4]
    assert second.allowed.tolist() == [[True, True], [False, True]]
    assert first.allowed.all()


@pytest.mark.parametrize("tiny", [1e-6, 1e-12, 1e-20, 1e-200])
def test_the_smallest_chance_to_end_better_counts_in_full(tiny: float) -> None:
    """From state 0 one may wait at cost 1, or leave with a tiny chance for a free place without a way back."""
    rows = np.array([[[1.0, 0.0], [1.0 - tiny, tiny]], [[0.0, 1.0], [0.0, 1.0]]])
    plan = amdp.plan("policy-iteration", AverageCostPolicies(kernel_of(rows)), [[1.0, 1.5], [0.0, 0.0]])
    assert plan.actions.tolist() == [1, 0]
    assert plan.objective == 0.0
    assert_allclose(plan.bound, 0.0, atol=1e-12)
    assert plan.status is Status.OPTIMAL


def test_states_that_cannot_be_left_end_where_they_are() -> None:
    plan = amdp.plan(
        "auto",
        AverageCostPolicies(kernel_of(np.eye(3)[:, None].repeat(2, axis=1)), [0.5, 0.5, 0.0]),
        [
            [3.0, 1.0],
            [2.0, 4.0],
            [0.0, 0.0],
        ],
    )
    assert_allclose([plan.objective, plan.bound], 1.5)
    assert plan.actions.tolist() == [1, 0, 0]


def test_a_limit_of_time_leaves_a_policy_and_a_bound_that_holds() -> None:
    rng = np.random.default_rng(7)
    rows, cost = random_rows(rng), rng.normal(size=(4, 2)) - 3.0 * np.eye(4)[:, :2]
    plan = amdp.plan(amdp.oracle("policy-iteration", seconds=0.0), DiscountedPolicies(kernel_of(rows), 0.9), cost)
    assert plan.bound <= least(rows, cost, 0.9)[0] + 1e-9
    assert plan.objective >= least(rows, cost, 0.9)[0] - 1e-9


def test_a_limit_of_time_with_several_ends() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, cost = lasting_rows(rng), rng.normal(size=(5, 2))
        hurried = amdp.oracle("policy-iteration", seconds=0.0)
        plan = amdp.plan(hurried, AverageCostPolicies(kernel_of(rows)), cost)
        best = least(rows, cost, None)[0]
        paid = gain(rows[np.arange(5), plan.actions], cost[np.arange(5), plan.actions])[0]
        assert plan.bound <= best + 1e-10
        assert_allclose(plan.objective, paid, atol=1e-10)


def test_what_is_refused() -> None:
    rng = np.random.default_rng(8)
    rows = random_rows(rng)
    for discount in (1.0, -0.1, np.nan):
        with pytest.raises(InvalidInput, match="discount = "):
            DiscountedPolicies(kernel_of(rows), discount)
    with pytest.raises(InvalidInput, match="AverageCostPolicies"):
        DiscountedPolicies(kernel_of(rows), 1.0)
    with pytest.raises(InvalidInput, match="initial = 4"):
        AverageCostPolicies(kernel_of(rows), 4)
    with pytest.raises(InvalidInput, match="initial has 3 entries"):
        AverageCostPolicies(kernel_of(rows), [0.5, 0.5, 0.0])
    with pytest.raises(InvalidInput, match="sums to"):
        AverageCostPolicies(kernel_of(rows), [0.5, 0.5, 0.5, 0.0])
    with pytest.raises(InvalidInput, match=r"Kernel.homogeneous\(rows, 1\)"):
        AverageCostPolicies(rows)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="homogeneous"):
        AverageCostPolicies(Kernel(np.stack([rows, random_rows(rng)])))
    holes = rows.copy()
    holes[2, 1] = 0.0
    with pytest.raises(InvalidInput, match=r"p\[s=2, a=1\] is all zero"):
        DiscountedPolicies(kernel_of(holes), 0.5)
    domain = DiscountedPolicies(kernel_of(rows), 0.5)
    with pytest.raises(InvalidInput, match=r"cost has shape \(3, 4, 2\); expected axes \[s, a\]"):
        amdp.plan("auto", domain, np.zeros((3, 4, 2)))
    with pytest.raises(InvalidInput, match=r"asks for \(n, 4, 2\)"):
        amdp.bind("auto", domain).minimize(np.zeros((1, 4, 3)))
    with pytest.raises(UnsupportedDomain, match="dp does not solve DiscountedPolicies over Kernel"):
        amdp.bind("dp", domain)
