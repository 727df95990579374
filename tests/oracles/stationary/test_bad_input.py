"""Wrong questions are refused with the reason; files are written as asked; reports say what was done."""

import pickle
from pathlib import Path

import highspy
import numpy as np
import pytest
import scipy

from amdp import (
    InvalidInput,
    Kernel,
    MarkovPolicies,
    SparseKernel,
    StationaryPolicies,
    Status,
    UnsupportedDomain,
    bind,
    oracle,
    plan,
)
from amdp.arrays import Actions, Bools
from benchmarks.stationary_worlds import world

NAMES = ["auto", "branch-and-bound", "enumeration", "local-search", "milp", "milp-pulp"]


@pytest.fixture
def domain() -> StationaryPolicies:
    return world("dense", "noise", (6, 3, 2), np.random.default_rng(0))[0]


def test_a_horizon_of_zero_steps_is_refused() -> None:
    with pytest.raises(InvalidInput, match="n_steps = 0; it must be a whole number, at least 1"):
        StationaryPolicies(Kernel.homogeneous(np.full((2, 1, 2), 0.5), 0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_costs_that_are_not_finite_are_refused_with_their_place(
    name: str, wrong: float, domain: StationaryPolicies
) -> None:
    costs = np.zeros((1, 6, 3, 2))
    costs[0, 4, 2, 1] = wrong
    with pytest.raises(InvalidInput, match=r"costs\[n=0, h=4, s=2, a=1\] = (nan|inf); it must be finite"):
        bind(name, domain).minimize(costs)


@pytest.mark.parametrize("name", NAMES)
def test_costs_whose_sum_overflows_are_refused(name: str, domain: StationaryPolicies) -> None:
    with pytest.raises(InvalidInput, match="overflow"):
        bind(name, domain).minimize(np.full((1, 6, 3, 2), 1e308))


def test_too_many_policies_are_refused_by_enumeration_alone() -> None:
    domain, cost = world("dense", "adversarial", (20, 12, 3), np.random.default_rng(1))
    with pytest.raises(UnsupportedDomain, match="more than 1000 policies, more than its limit of 1000"):
        bind(oracle("enumeration", limit=1000), domain)
    assert bind("auto", domain).minimize(cost[None]).status is Status.OPTIMAL


def test_cycles_refuses_moves_that_are_not_certain(domain: StationaryPolicies) -> None:
    with pytest.raises(UnsupportedDomain, match="certain moves"):
        bind("cycles", domain)


@pytest.mark.parametrize("name", ["branch-and-bound", "cycles", "local-search", "milp", "milp-pulp"])
def test_markov_policies_are_not_their_business(name: str, domain: StationaryPolicies) -> None:
    with pytest.raises(UnsupportedDomain, match="does not solve MarkovPolicies over Kernel"):
        bind(name, MarkovPolicies(domain.dynamics))


def test_a_kernel_that_changes_with_time_is_refused() -> None:
    changing = np.random.default_rng(2).dirichlet(np.ones(3), size=(4, 3, 2))
    with pytest.raises(InvalidInput, match="homogeneous kernel"):
        StationaryPolicies(Kernel(changing))


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("branch-and-bound", {"nodes": -1}, "nodes = -1; it must be at least 0"),
        ("branch-and-bound", {"starts": 0}, "starts = 0; it must be at least 1"),
        ("branch-and-bound", {"seconds": -1.0}, "seconds = -1.0; it must be at least 0"),
        ("cycles", {"nodes": -3}, "nodes = -3; it must be at least 0"),
        ("cycles", {"nodes": 2.5}, "nodes = 2.5; it must be a whole number"),
        ("local-search", {"starts": 0}, "starts = 0; it must be at least 1"),
        ("enumeration", {"table": -1}, "table = -1; it must be at least 0 bytes"),
        (
            "milp",
            {"formulation": "magic"},
            "formulation = 'magic'; it must be one of occupancy, aggregated, value, phases",
        ),
        ("milp-pulp", {"solver": "magic"}, "solver = 'magic'; PuLP does not know it; here are: HiGHS, CBC"),
        (
            "milp",
            {"options": {"presolv": "on"}},
            "options.presolv = 'on'; HiGHS has no such option; did you mean 'presol",
        ),
        ("milp", {"options": {"presolve": "x"}}, "options.presolve = 'x'; HiGHS refuses this value"),
        ("milp", {"options": {"threads": 2}}, "options.threads = 2; it is the setting 'threads' of the oracle"),
        ("milp-pulp", {"options": {"magic": 1}}, "options.magic = 1; HiGHS has no such option"),
        ("milp-pulp", {"solver": "CBC", "options": {"magic": 1}}, "options.magic = 1; CBC says: No match for magic"),
        ("milp", {"options": 3}, "options = 3; it must be a table of options"),
        ("auto", {"few": 0}, "limit = 0; it must be at least 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(name: str, options: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        oracle(name, **options)


@pytest.mark.parametrize(
    ("family", "shape", "choice"),
    [
        ("deterministic", (50, 6, 2), "chose cycles: every move is certain"),
        ("river", (50, 12, 2), "chose enumeration: 13 policies are distinct on reachable states"),
        (
            "dense",
            (50, 9, 3),
            "chose branch-and-bound: about 2e+04 policies are distinct on reachable states, more than 2000",
        ),
    ],
)
def test_auto_says_what_it_chose_and_why(family: str, shape: tuple[int, int, int], choice: str) -> None:
    domain, cost = world(family, "noise", shape, np.random.default_rng(3))
    assert plan("auto", domain, cost).report.note.startswith(choice)


def test_auto_is_backward_induction_over_markov_policies(domain: StationaryPolicies) -> None:
    markov = MarkovPolicies(domain.dynamics)
    costs = np.random.default_rng(4).normal(size=(2, 6, 3, 2))
    ours, dp = bind("auto", markov).minimize(costs), bind("dp", markov).minimize(costs)
    assert (ours.actions == dp.actions).all()
    assert ours.report.note == "chose dp: Markov policies"


@pytest.mark.parametrize("name", NAMES)
def test_planners_travel(name: str, domain: StationaryPolicies) -> None:
    costs = np.random.default_rng(5).normal(size=(1, 6, 3, 2))
    planner = bind(name, domain)
    arrived = pickle.loads(pickle.dumps(planner))
    assert (arrived.minimize(costs).actions == planner.minimize(costs).actions).all()


def test_plans_are_stationary_policies_with_their_values(domain: StationaryPolicies) -> None:
    cost = np.random.default_rng(6).normal(size=(6, 3, 2))
    found = plan("auto", domain, cost)
    assert found.actions.shape == (3,)
    assert found.policy.shape == (3, 2)
    assert found.values.shape == (6, 3)
    assert found.values[0, 0] == pytest.approx(found.objective, rel=1e-13)
    chosen = domain.dynamics.dense().p[0][np.arange(3), found.actions]
    ahead = cost[:-1, np.arange(3), found.actions] + found.values[1:] @ chosen.T
    np.testing.assert_allclose(found.values[:-1], ahead, atol=1e-12)


def test_states_that_the_policy_never_meets_have_action_zero() -> None:
    rows = np.zeros((4, 2, 4))
    rows[0, 0, 0] = rows[0, 1, 1] = rows[1, :, 0] = rows[2, :, 3] = rows[3, :, 2] = 1.0
    domain = StationaryPolicies(Kernel.homogeneous(rows, 30))
    cost = np.zeros((30, 4, 2))
    cost[:, 0, 0], cost[:, 1, 0], cost[:, 2:, 0] = 5.0, 1.0, 9.0
    for name in ("auto", "branch-and-bound", "enumeration", "cycles"):
        assert plan(name, domain, cost).actions.tolist() == [1, 1, 0, 0], name


@pytest.mark.parametrize(("saving", "action"), [(1e-6, 1), (1e-9, 1), (1e-15, 0), (0.0, 0)])
def test_only_a_difference_above_rounding_beats_the_first_action(saving: float, action: int) -> None:
    domain = StationaryPolicies(Kernel.homogeneous(np.ones((1, 2, 1)), 10))
    cost = np.ones((10, 1, 2))
    cost[:, :, 1] -= saving
    for name in ("auto", "branch-and-bound", "enumeration", "local-search"):
        assert plan(name, domain, cost).actions.tolist() == [action], name


def test_rows_that_miss_the_sum_one_loosen_the_bound_but_not_the_objective() -> None:
    rng = np.random.default_rng(7)
    rows = rng.dirichlet(np.ones(4), size=(4, 3)) * (1.0 + 5e-9)
    domain = StationaryPolicies(Kernel.homogeneous(rows, 40))
    found = plan("branch-and-bound", domain, rng.normal(size=(40, 4, 3)))
    assert found.bound < found.objective
    assert found.gap < 1e-3


@pytest.mark.parametrize("formulation", ["occupancy", "aggregated", "value", "phases", "pulp"])
@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_an_exported_model_has_names_and_the_same_optimum(
    formulation: str, suffix: str, domain: StationaryPolicies, tmp_path: Path
) -> None:
    cost = np.random.default_rng(8).normal(size=(6, 3, 2))
    file = tmp_path / f"model{suffix}"
    chosen = oracle("milp-pulp") if formulation == "pulp" else oracle("milp", formulation=formulation)
    chosen.export(domain, cost, file)  # type: ignore[attr-defined]
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(file)) == highspy.HighsStatus.kOk
    highs.run()
    best = plan("enumeration", domain, cost)
    assert highs.getInfo().objective_function_value == pytest.approx(best.objective, abs=1e-5)
    spelled = (lambda name: name.translate(str.maketrans("[]", "()"))) if suffix == ".lp" else str
    values = dict(zip(highs.getLp().col_names_, highs.getSolution().col_value, strict=True))
    for s in np.flatnonzero(visited(domain, best.actions)):
        assert values[spelled(f"choice[{s},{best.actions[s]}]")] == pytest.approx(1.0), "names stand at other columns"
    assert {spelled(name) for name in NAMED_ROWS[formulation]} <= set(highs.getLp().row_names_)


NAMED_ROWS = {
    "occupancy": {"balance[3,2]", "only_chosen[5,2,1]", "one_action[0]"},
    "aggregated": {"balance[3,2]", "only_chosen[2,1]", "one_action[0]"},
    "value": {"at_least[5,2,1]", "one_action[0]"},
    "phases": {"balance[3,2]", "begins[3,2]", "only_chosen[5,2,1]", "one_action[0]"},
    "pulp": {"balance[3,2]", "only_chosen[5,2,1]", "one_action[0]"},
}


def visited(domain: StationaryPolicies, actions: Actions) -> Bools:
    """Where a policy comes before the last step."""
    moves = domain.dynamics.dense().p[0][np.arange(len(actions)), actions]
    law = np.eye(len(actions))[domain.initial]
    visits = law.copy()
    for _ in range(domain.shape[0] - 2):
        law = law @ moves
        visits += law
    often: Bools = visits > 1e-6
    return often


@pytest.mark.parametrize("name", ["milp", "milp-pulp"])
def test_a_model_goes_to_no_other_kind_of_file(name: str, domain: StationaryPolicies) -> None:
    with pytest.raises(InvalidInput, match=r"suffix must be \.lp or \.mps"):
        oracle(name).export(domain, np.zeros((6, 3, 2)), "model.txt")  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["cycles", "auto", "enumeration", "branch-and-bound"])
def test_explicit_zeros_of_a_sparse_kernel_lead_nowhere(name: str) -> None:
    chances, successors = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0]), np.array([0, 1, 0, 1, 1, 1])
    stored = scipy.sparse.csr_array((chances, successors, np.array([0, 2, 4, 5, 6])), shape=(4, 2))
    rows = SparseKernel.homogeneous(stored, 20)
    assert rows.matrices[0].nnz == 6, "the zeros are not stored"
    cost = np.zeros((20, 2, 2))
    cost[:, 1] = 1.0
    found = plan(name, StationaryPolicies(rows), cost)
    assert found.actions.tolist() == [1, 0]
    assert found.status is Status.OPTIMAL
