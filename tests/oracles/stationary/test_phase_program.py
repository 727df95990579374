"""The program over phases: every policy fits into it at no more than its cost, and single steps leave nothing free."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amdp import InvalidInput, Kernel, Plan, StationaryPolicies, Status, bind, oracle
from amdp.arrays import Floats
from amdp.oracles.stationary import phases as program
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary.formulations import Formulation, Rounded
from amdp.oracles.stationary.milp import MixedProgram, solve_mixed
from amdp.oracles.stationary.phases import Cut, greatest_times, laws, phases
from benchmarks.brute_force import every_policy, plain_costs, plain_optimum
from benchmarks.stationary_worlds import world
from benchmarks.studies.spiky import spiky
from oracles.stationary.test_phases import ACTIONS, CHAINS, STATES, awkward

worlds = {
    "chains": st.sampled_from(CHAINS),
    "initial": st.integers(0, STATES - 1),
    "steps": st.sampled_from([1, 7, 60]),
    "pieces": st.sampled_from([1, 2, 5, 60]),
    "last_steps": st.sampled_from([0, 1, 4]),
    "seed": st.integers(0, 2**32 - 1),
}


def violation(built: Formulation, at: Floats) -> float:
    """By how much a point misses the rows and bounds of a formulation at most."""
    rows = built.matrix @ at
    misses = (built.row_lower - rows, rows - built.row_upper, built.lower - at, at - built.upper)
    return float(max(miss.max() for miss in misses))


def points(model: Rounded, domain: StationaryPolicies, last_steps: int = 0) -> Floats:
    """All policies as points of the program `[policy, column]`."""
    cut = Cut.of(model.runs, last_steps)
    return np.array([laws(model, policy, cut) for policy in every_policy(domain)])


def bound(built: Formulation) -> float:
    """What HiGHS proves about a formulation."""
    return solve_mixed(built, MixedProgram(), False, np.inf, lambda *_: None).bound


@settings(max_examples=40, deadline=None)
@given(**worlds)
def test_every_policy_fits_into_the_program_at_its_cost(
    chains: str, initial: int, steps: int, pieces: int, last_steps: int, seed: int
) -> None:
    domain, cost = awkward(chains, initial, steps, min(pieces, steps), seed)
    model = Rounded.of(Chains.of(domain), cost)
    built, ways = phases(model, np.zeros(STATES, dtype=np.int64), last_steps), points(model, domain, last_steps)
    true = plain_costs(domain, cost, every_policy(domain))
    assert max(violation(built, way) for way in ways) <= 1e-9
    assert (ways @ built.cost <= true + 1e-9).all()
    if chains != "spiky":  # nothing is removed from the others
        np.testing.assert_allclose(ways @ built.cost, true, atol=1e-8)


def test_no_policy_is_lost_where_chances_are_removed() -> None:
    rng = np.random.default_rng(4)
    removed = 0
    for _ in range(25):
        domain, noise = spiky(rng)
        cost = noise[np.arange(len(noise)) * 2 // len(noise)]
        model = Rounded.of(Chains.of(domain), cost)
        removed += domain.dynamics.dense().p[0].size - model.moves.nnz > 0
        built, ways = phases(model, np.zeros(domain.shape[1], dtype=np.int64)), points(model, domain)
        assert max(violation(built, way) for way in ways) <= 1e-12
        assert (ways @ built.cost <= plain_costs(domain, cost, every_policy(domain)) + 1e-12).all()
    assert removed > 10


def test_rows_that_miss_the_sum_one_lose_no_policy() -> None:
    rng = np.random.default_rng(5)
    for factor in (1 - 5e-9, 1 + 5e-9):
        rows = factor * rng.dirichlet(np.ones(3), size=(3, 2))
        domain = StationaryPolicies(Kernel.homogeneous(rows, 500), 1)
        model = Rounded.of(Chains.of(domain), rng.normal(size=(2, 3, 2))[np.arange(500) // 250])
        built = phases(model, np.zeros(3, dtype=np.int64), 2)
        assert max(violation(built, way) for way in points(model, domain, 2)) <= 1e-11


def plain_times(domain: StationaryPolicies, begin: int, end: int, s: int, a: int) -> float:
    """The greatest expected number of steps at `s`, where `a` is always taken, by loops over steps and pairs."""
    p = domain.dynamics.dense().p[0]
    states, actions = p.shape[:2]
    later = np.zeros(states)
    for t in reversed(range(end)):
        reward = float(t >= begin)
        later = np.array(
            [
                max(reward * (x == s) + p[x, b] @ later for b in ([a] if x == s else range(actions)))
                for x in range(states)
            ]
        )
    return float(later[domain.initial])


@pytest.mark.parametrize("chains", CHAINS)
def test_caps_are_the_greatest_times_and_hardly_more(chains: str) -> None:
    domain, cost = awkward(chains, 2, 300, 3, seed=6)
    model = Rounded.of(Chains.of(domain), cost)
    cut = Cut.of(model.runs, 1)
    assert cut.lengths.tolist() == [99, 1, 99, 1, 99, 1]
    caps = greatest_times(model, cut).reshape(-1, STATES, ACTIONS)
    for i, s, a in ((0, 0, 0), (2, 1, 1), (3, 2, 0), (4, 4, 1), (5, 0, 1)):
        begin, n = int(cut.starts[i]), int(cut.lengths[i])
        true = plain_times(domain, begin, begin + n, s, a)
        assert true - 1e-9 <= caps[i, s, a] <= true + 3 * program.CAP_PRECISION * n


def test_a_cap_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, cost = awkward("slow", 1, 200, 4, seed=7)
    model = Rounded.of(Chains.of(domain), cost)
    times = program.greatest_times
    monkeypatch.setattr(program, "greatest_times", lambda *given: 0.9 * times(*given))
    built = phases(model, np.zeros(STATES, dtype=np.int64))
    assert max(violation(built, way) for way in points(model, domain)) > 0.1


def test_phases_of_one_step_leave_nothing_free() -> None:
    rng = np.random.default_rng(8)
    for family in ("dense", "grid", "deterministic"):
        domain, cost = world(family, "noise", (6, 3, 3), rng)
        built = phases(Rounded.of(Chains.of(domain), cost), np.zeros(3, dtype=np.int64))
        assert bound(built) == pytest.approx(plain_optimum(domain, cost), abs=1e-6)


def test_the_optimum_is_below_all_policies_and_last_steps_lift_it() -> None:
    gained = 0
    for seed, chains in enumerate(("slow", "periodic", "multichain") * 2):
        domain, cost = awkward(chains, seed % STATES, 30, 3, seed)
        model, start = Rounded.of(Chains.of(domain), cost), np.zeros(STATES, dtype=np.int64)
        free, kept, exact = (bound(phases(model, start, last)) for last in (0, 2, 30))
        best = plain_optimum(domain, cost)
        assert max(free, kept) <= best + 1e-6
        assert exact == pytest.approx(best, abs=1e-6), "all steps stand one by one"
        gained += kept > free + 1e-3
    assert gained >= 4


def solved(domain: StationaryPolicies, cost: Floats, last_steps: int = 0) -> Plan:
    return bind(oracle("milp", formulation="phases", last_steps=last_steps), domain).minimize(cost[None])[0]


def test_an_answer_is_a_policy_with_a_bound_and_optimal_only_if_they_meet() -> None:
    rng = np.random.default_rng(10)
    for family in ("dense", "sparse", "river"):
        domain, cost = world(family, "adversarial", (300, 4, 2), rng)
        plan, best = solved(domain, cost, 3), plain_optimum(domain, cost)
        assert plan.objective == pytest.approx(best, abs=1e-8)
        assert domain.dynamics.cheapest(cost[None]).values[0, 0, domain.initial] <= plan.bound <= best
        assert plan.bound >= best - 0.02 * abs(best)
        assert (plan.status is Status.OPTIMAL) == (plan.gap <= 1e-9 * 300 * np.abs(cost).max())
        if plan.status is Status.FEASIBLE:
            assert "over phases" in plan.report.note
    exact = solved(*world("dense", "noise", (6, 3, 2), rng))
    assert exact.status is Status.OPTIMAL


def test_last_steps_are_for_phases_alone() -> None:
    with pytest.raises(InvalidInput, match="last_steps = 3; the formulation 'value' keeps every step"):
        oracle("milp", formulation="value", last_steps=3)
    with pytest.raises(InvalidInput, match="last_steps = -1; it must be at least 0"):
        oracle("milp", formulation="phases", last_steps=-1)
