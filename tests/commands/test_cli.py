"""The command line, as a person and as a program would use it."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import amdp
from amdp import instances, registry
from amdp.cli import app

runner = CliRunner()


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "swim.npz"
    instances.save(path, instances.river_swim())
    return path


def refused(*arguments: str) -> str:
    """The message of a call that ends in a clear error."""
    result = runner.invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    return result.stderr


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_solve_prints_the_certified_plan_as_json(tmp_path: Path, suffix: str) -> None:
    instance = instances.river_swim()
    path = tmp_path / f"swim{suffix}"
    instances.save(path, instance)
    result = runner.invoke(app, ["solve", str(path), "--oracle", "lp", "--json"])
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    expected = amdp.plan("dp", instance.domain, instance.costs)
    assert answer["status"] == "optimal"
    assert answer["objective"] == pytest.approx(expected.objective, rel=1e-12)
    assert answer["bound"] <= answer["objective"]
    assert np.array_equal(answer["actions"], expected.actions)
    assert answer["solver"].startswith("HiGHS")


def test_solve_prints_tables_for_people(world: Path) -> None:
    result = runner.invoke(app, ["solve", str(world)])
    assert result.exit_code == 0
    assert "16.60273604" in result.stdout
    assert "first 12 of 20 steps and 6 states" in result.stdout


def test_solve_passes_neutral_options(world: Path) -> None:
    result = runner.invoke(app, ["solve", str(world), "--oracle", "lp", "--seconds", "0", "--json"])
    answer = json.loads(result.stdout)
    assert answer["status"] == "feasible"
    assert "limit" in answer["note"]
    assert answer["bound"] < answer["objective"]


def test_an_unknown_option_of_the_oracle_is_an_error(world: Path) -> None:
    assert "'dp' has no option 'seconds'" in refused("solve", str(world), "--seconds", "1")


def test_an_unknown_oracle_lists_the_known_ones(world: Path) -> None:
    assert "known names: auto, branch-and-bound, cvxpy, cycles, dp, enumeration" in refused(
        "solve", str(world), "--oracle", "simplex"
    )


def test_an_oracle_that_cannot_solve_it_says_so(world: Path) -> None:
    assert "2^105 policies" in refused("solve", str(world), "--oracle", "enumeration")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "nowhere.npz" in refused("solve", str(tmp_path / "nowhere.npz"))


def test_a_pickle_inside_an_archive_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    np.savez(path, p=np.array([object()]), costs=np.zeros((1, 1, 1)), allow_pickle=True)
    assert "pickle" in refused("solve", str(path))


def test_a_wrong_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({"p": [[[0.5, 0.5]]], "costs": [[[0.0]]]}))
    assert "p has shape" in refused("solve", str(path))
    path.write_text(json.dumps({"p": [[[0.5, 0.4]], [[0.0, 1.0]]], "costs": [[[0.0], [0.0]]]}))
    assert "p[h=0, s=0, a=0] sums to 0.9" in refused("solve", str(path))


def test_oracles_lists_what_each_solves() -> None:
    listed = json.loads(runner.invoke(app, ["oracles", "--json"]).stdout)
    solved = {oracle["name"]: oracle["solves"] for oracle in listed}
    assert set(solved) >= {"dp", "lp", "pulp", "cvxpy", "enumeration"}
    assert "MarkovPolicies over BernsteinBox" in solved["lp"]
    assert "StationaryPolicies over Kernel" not in solved["dp"]
    assert "SparseKernel" in runner.invoke(app, ["oracles"]).stdout


def test_oracles_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda package: None if package == "cvxpy" else object())
    listed = json.loads(runner.invoke(app, ["oracles", "--json"]).stdout)
    assert {oracle["name"]: oracle["missing"] for oracle in listed}["cvxpy"] == 'pip install "cvxpy>=1.6"'


def test_stationary_policies_are_solved_by_name_and_by_default(tmp_path: Path) -> None:
    world = instances.river_swim(4, 30)
    file = tmp_path / "river.npz"
    instances.save(file, world)
    answers = []
    for more in ([], ["--oracle", "enumeration"], ["--oracle", "branch-and-bound"]):
        result = runner.invoke(app, ["solve", str(file), "--domain", "stationary", "--json", *more])
        assert result.exit_code == 0, result.stderr
        answers.append(json.loads(result.stdout))
    assert [answer["status"] for answer in answers] == ["optimal"] * 3
    assert np.ptp([answer["objective"] for answer in answers]) < 1e-9
    assert len(answers[0]["actions"]) == 4
    table = runner.invoke(app, ["solve", str(file), "--domain", "stationary"])
    assert "action at each state" in table.stdout


def test_what_has_no_stationary_policies_is_refused() -> None:
    assert "homogeneous" in refused("solve", "random-dense", "--domain", "stationary")
    assert "does not solve" in refused("solve", "river-swim", "--domain", "stationary", "--oracle", "dp")


def test_learners_say_what_they_play() -> None:
    listed = {row["name"]: row for row in json.loads(runner.invoke(app, ["learners", "--json"]).stdout)}
    keys = ("episodes", "stream", "unknown_transitions", "feedback", "delays")
    assert [listed["ftpl"][key] for key in keys] == [True, False, True, "bandit", True]
    assert [listed["o-reps-full"][key] for key in keys] == [True, False, False, "full", True]
    assert [listed["mdp-e"][key] for key in keys] == [False, True, False, "full", False]
    assert [listed["uniform"][key] for key in keys] == [True, True, True, "bandit", True]
    assert all(row["episodes"] or row["stream"] for row in listed.values())
