"""A solver is told options in its own words, any solver that is here can be named, and its log is shown on request."""

import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pulp
import pytest
from worlds import plain_best, random_kernel

from amdp import InvalidInput, MarkovPolicies, StationaryPolicies, Status, Unsolved, bind, oracle, plan
from amdp.oracles import pulp_solvers
from amdp.oracles.stationary import planning
from amdp.oracles.stationary.formulations import Formulation
from amdp.oracles.stationary.milp import MixedProgram
from amdp.oracles.stationary.mixed_search import Answer
from amdp.oracles.stationary.search import SearchClock
from amdp.oracles.subprocesses import end_idle
from benchmarks.stationary_worlds import world

DOMAIN = MarkovPolicies(random_kernel("dense", (4, 3, 2), np.random.default_rng(1)))
COST = np.random.default_rng(2).normal(size=(4, 3, 2))
BEST = plain_best(DOMAIN, COST)


@pytest.fixture(scope="module")
def stationary() -> tuple[StationaryPolicies, np.ndarray]:
    return world("dense", "noise", (6, 3, 2), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("lp", {"options": {"presolve": "off"}}),
        ("pulp", {"options": {"presolve": "off"}}),
        ("pulp", {"solver": "CBC", "options": {"perturbation": "off"}}),
        ("cvxpy", {"options": {"presolve": "off"}}),
        ("cvxpy", {"solver": "CLARABEL", "options": {"max_iter": 150}}),
        ("cvxpy", {"solver": "SCS"}),
        ("cvxpy", {"solver": "SCIPY", "options": {"scipy_options": {"presolve": False}}}),
    ],
)
def test_solvers_with_options_find_the_same_policy(name: str, settings: dict[str, object]) -> None:
    found = plan(oracle(name, **settings), DOMAIN, COST)
    assert found.status is Status.OPTIMAL
    assert (found.actions == BEST).all()


@pytest.mark.parametrize("name", ["lp", "pulp", "cvxpy"])
def test_an_option_reaches_the_solver(name: str) -> None:
    stopped = oracle(name, options={"simplex_iteration_limit": 0, "presolve": "off", "solver": "simplex"})
    shortsighted = COST.argmin(axis=-1)
    assert (shortsighted != BEST).any(), "a solver that does nothing would be right"
    try:
        found = plan(stopped, DOMAIN, COST)
    except Unsolved:
        return
    assert found.status is Status.FEASIBLE


def test_an_option_reaches_the_mixed_program(stationary: tuple[StationaryPolicies, np.ndarray]) -> None:
    found = plan(oracle("milp", options={"mip_max_nodes": 0, "mip_heuristic_effort": 0.0}), *stationary)
    assert "Solution limit reached" in found.report.note
    assert found.bound <= plan("enumeration", *stationary).objective + 1e-9


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("lp", {"options": {"magic": 1}}, "options.magic = 1; HiGHS has no such option"),
        ("lp", {"options": {"time_limit": 1.0}}, "options.time_limit = 1.0; it is the setting 'seconds' of the oracle"),
        (
            "pulp",
            {"solver": "CBC", "options": {"ratioGap": "x"}},
            "options.ratioGap = 'x'; CBC says: String of x is illegal",
        ),
        ("cvxpy", {"options": {"magic": 1}}, "options.magic = 1; HiGHS has no such option"),
        ("cvxpy", {"solver": "CLARABEL", "options": {"magic": 1}}, "CLARABEL refuses it: .*magic"),
        ("cvxpy", {"solver": "SCS", "options": {"magic": 1}}, "SCS refuses it: .*magic"),
        ("cvxpy", {"solver": "SCIPY", "options": {"scipy_options": {"magic": 1}}}, "SCIPY refuses it: .*magic"),
        ("cvxpy", {"solver": "SCIPY", "seconds": 1}, "seconds = 1; give SCIPY an option of its own"),
        ("cvxpy", {"solver": "magic"}, "solver = 'magic'; cvxpy does not know it; here are: .*HIGHS"),
        ("pulp", {"solver": "highs", "options": {"magic": 1}}, "options.magic = 1; HiGHS has no such option"),
        ("pulp", {"solver": "cbcs"}, "solver = 'cbcs'; PuLP does not know it; did you mean 'CBC'"),
    ],
)
def test_what_a_solver_does_not_know_is_refused_by_name(name: str, settings: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        oracle(name, **settings)


@pytest.mark.parametrize("solver", ["Gurobi", "CPLEX", "SCIP"])
def test_a_solver_that_is_not_here_is_refused_with_those_that_are(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulp_solvers, "_is_available", lambda name: False)
    with pytest.raises(InvalidInput, match=f"solver = '{solver}'; PuLP knows it but does not find it .* HiGHS, CBC"):
        oracle("milp-pulp", solver=solver)


@pytest.fixture
def cbc_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A solver that PuLP finds on this machine by itself: the program of CBC, as somebody would install it."""
    if os.name == "nt":
        pytest.skip("symbolic links need rights there")
    (tmp_path / "cbc").symlink_to(Path(pulp.PULP_CBC_CMD(_skip_v4_deprecation=True).path).resolve())
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(pulp_solvers, "_is_available", pulp_solvers._is_available.__wrapped__)
    end_idle()  # the process of solvers, which has the path of before
    yield
    end_idle()


@pytest.mark.usefixtures("cbc_on_the_path")
def test_any_solver_that_pulp_finds_can_be_named(stationary: tuple[StationaryPolicies, np.ndarray]) -> None:
    found = plan(oracle("pulp", solver="COIN_CMD", options={"presolve": False}), DOMAIN, COST)
    assert found.status is Status.OPTIMAL
    assert (found.actions == BEST).all()
    mixed = plan(oracle("milp-pulp", solver="coin"), *stationary)
    assert mixed.objective == pytest.approx(plan("enumeration", *stationary).objective, abs=1e-9)
    with pytest.raises(InvalidInput, match=r"options\.magic = 1; COIN_CMD of PuLP does not take it; .*it takes: mip"):
        oracle("pulp", solver="COIN_CMD", options={"magic": 1})
    with pytest.raises(InvalidInput, match=r"options = \{'path': 'nowhere'\}; COIN_CMD refuses it: .*nowhere"):
        oracle("pulp", solver="COIN_CMD", options={"path": "nowhere"})


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("lp", {}, "Objective value"),
        ("pulp", {}, "Running HiGHS"),
        ("pulp", {"solver": "CBC"}, "Welcome to the CBC MILP Solver"),
        ("cvxpy", {}, "Objective value"),
        ("cvxpy", {"solver": "CLARABEL"}, "Clarabel"),
    ],
)
def test_the_log_of_a_solver_goes_to_standard_error(
    name: str, settings: dict[str, object], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for log in (False, True):
        bind(oracle(name, log=log, **settings), DOMAIN).minimize(COST[None])
        shown = capfd.readouterr()
        assert shown.out == ""
        assert (words in shown.err) == log


def test_what_is_solved_before_the_clock_runs_writes_no_log(
    stationary: tuple[StationaryPolicies, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = list[tuple[int, bool]]()

    def heard(
        clock: SearchClock, work: object, program: Formulation, settings: MixedProgram, *_: object, **__: object
    ) -> Answer:
        logs.append((program.n_choices, settings.log))
        return Answer(None, -np.inf)

    monkeypatch.setattr(planning, "_COMPILED", set())
    monkeypatch.setattr(SearchClock, "run_in_subprocess", heard)
    domain, cost = stationary
    bind(oracle("milp", seconds=60, log=True), domain).minimize(cost[None])
    own = domain.shape[1] * domain.shape[2]
    assert {log for choices, log in logs if choices != own} == {False}
    assert [log for choices, log in logs if choices == own] == [True]


def test_the_letters_of_a_solver_may_be_small() -> None:
    assert oracle("milp-pulp", solver="cbc") == oracle("milp-pulp", solver="CBC")


def test_oracles_with_options_can_be_hashed_compared_and_sent() -> None:
    first, second = (oracle("lp", options={"presolve": word}) for word in ("on", "off"))
    assert first != second
    assert first == oracle("lp", options={"presolve": "on"}) == pickle.loads(pickle.dumps(first))
    assert len({first, second, oracle("lp", options={"presolve": "on"})}) == 2
    assert repr(first).endswith("options={'presolve': 'on'}, log=False)")
