"""`amdp solve`: settings of the world, and what an oracle cannot do is refused with the name of one that can."""

import json
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from amdp import instances
from amdp.cli import app
from amdp.commands.solve import progress_line
from amdp.oracles.stationary.search import Progress


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["solve", *arguments])
    assert result.exit_code == 1
    return " ".join(result.stderr.split())


@pytest.mark.parametrize("option", ["--seconds", "--threads"])
def test_an_option_that_an_oracle_lacks_is_refused_with_those_that_have_it(option: str) -> None:
    message = refused("river-swim", "--domain", "stationary", "--oracle", "enumeration", option, "2")
    assert f"'enumeration' has no option '{option[2:]}'; it is an option of: --oracle" in message
    named = message.rpartition("--oracle ")[2].split(", ")
    assert set(named) >= {"auto", "milp", "milp-pulp"}
    assert ("local-search" in named) == (option == "--seconds")
    assert "lp" not in named, "it does not solve stationary policies"


def test_over_markov_policies_the_limit_of_seconds_belongs_to_solvers() -> None:
    message = refused("river-swim", "--seconds", "2")
    assert "'dp' has no option 'seconds'" in message
    assert "lp" in message.rpartition("--oracle ")[2].split(", ")


def test_an_oracle_for_other_policies_names_the_one_to_use() -> None:
    assert refused("river-swim", "--domain", "stationary", "--oracle", "dp").endswith(
        "dp does not solve StationaryPolicies over Kernel; --oracle auto does"
    )
    assert refused("river-swim", "--oracle", "cycles").endswith("--oracle dp does")


def test_a_world_is_built_with_the_settings_that_are_given() -> None:
    words = ["solve", "random-parked", "--domain", "stationary", "--world", "n_states=3", "--world", "n_steps=20"]
    solved = CliRunner().invoke(app, [*words, "--json"])
    assert solved.exit_code == 0, solved.output
    assert len(json.loads(solved.stdout)["actions"]) == 3
    assert "'tiny' has no option 'size'" in refused("tiny", "--world", "size=3")


def test_a_world_from_a_file_takes_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "tiny.npz"
    instances.save(path, instances.build("tiny"))
    assert "has no settings" in refused(str(path), "--world", "n_states=3")


def test_the_policy_of_a_large_world_fits_80_columns_and_says_what_is_left_out() -> None:
    shown = CliRunner().invoke(app, ["solve", "grid"], env={"COLUMNS": "80"}).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "(first 12 of 20 steps and first 12 of 25 states; --json gives all)" in shown
    assert "..." not in shown
    assert "…" not in shown


SMALL = ("random-parked", "--domain", "stationary", "--world", "n_states=3", "--world", "n_steps=10")


@pytest.mark.parametrize(
    ("words", "suffix"),
    [
        (("tiny", "--oracle", "lp"), ".lp"),
        (("tiny", "--oracle", "pulp"), ".mps"),
        (("tiny", "--oracle", "cvxpy"), ".lp"),
        ((*SMALL, "--oracle", "milp", "--set", "formulation=value"), ".mps"),
        ((*SMALL, "--oracle", "milp-pulp"), ".lp"),
    ],
)
def test_the_model_that_is_exported_has_the_optimum_that_is_printed(
    words: tuple[str, ...], suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"model{suffix}"
    result = CliRunner().invoke(app, ["solve", *words, "--export", str(path), "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["model"] == str(path)
    assert f"wrote {path}" in result.stderr
    other = highspy.Highs()
    other.setOptionValue("output_flag", False)
    assert other.readModel(str(path)) == highspy.HighsStatus.kOk
    other.run()
    assert other.getInfo().objective_function_value == pytest.approx(answer["objective"], abs=1e-5)


def test_what_has_no_model_or_no_such_file_is_refused_before_the_search(tmp_path: Path) -> None:
    assert refused("tiny", "--export", str(tmp_path / "a.lp")).endswith("--oracle cvxpy, lp, pulp")
    assert refused(*SMALL, "--export", str(tmp_path / "a.lp")).endswith("--oracle milp, milp-pulp")
    assert "the suffix must be .lp or .mps, not '.txt'" in refused("tiny", "--export", str(tmp_path / "a.txt"))
    assert not list(tmp_path.iterdir())


def test_settings_of_the_oracle_and_options_of_its_solver_are_passed_on() -> None:
    assert "HiGHS has no such option" in refused("tiny", "--oracle", "lp", "--option", "magic=1")
    assert "PuLP does not know it" in refused("tiny", "--oracle", "pulp", "--set", "solver=magic")
    assert "are both given" in refused("tiny", "--oracle", "lp", "--seconds", "1", "--set", "seconds=2")
    assert "'dp' has no option 'log'" in refused("tiny", "--log")
    words = ["solve", "tiny", "--oracle", "pulp", "--set", "solver=CBC", "--option", "perturbation=off", "--json"]
    assert json.loads(CliRunner().invoke(app, words).stdout)["solver"].endswith("with CBC")


def test_the_log_of_a_solver_leaves_the_output_to_programs(capfd: pytest.CaptureFixture[str]) -> None:
    result = CliRunner().invoke(app, ["solve", "tiny", "--oracle", "lp", "--log", "--json"])
    assert json.loads(result.stdout)["status"] == "optimal"
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "Objective value" in shown.err


def test_auto_says_what_it_will_do_and_gaps_have_one_name_everywhere() -> None:
    words = ["solve", "random-parked", "--domain", "stationary", "--world", "n_states=12", "--world", "n_steps=50"]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert "auto chose branch-and-bound: about " in shown.stderr
    assert "policies are distinct on reachable states" in shown.stderr
    assert "absolute gap" in shown.stdout
    assert "relative gap" in shown.stdout
    answer = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert answer["absolute_gap"] == answer["gap"] == answer["objective"] - answer["bound"]
    assert answer["relative_gap"] == pytest.approx(answer["gap"] / abs(answer["objective"]), rel=1e-12, abs=1e-30)


numbers = st.floats(-1e300, 1e300)


@given(numbers, numbers, st.integers(0, 10**15), st.floats(0, 1e7), numbers, st.none() | numbers)
def test_progress_is_one_line_of_less_than_80_columns(
    incumbent: float, bound: float, nodes: int, seconds: float, first: float, claim: float | None
) -> None:
    line = progress_line(Progress(incumbent, bound, nodes, seconds, first, claim))
    assert len(line) < 78
    assert f"objective {incumbent:.5g}, bound {bound:.5g}" in line


def test_progress_labels_its_gaps_and_the_claims_of_solvers() -> None:
    proved = "2 s, objective -4, bound -5, absolute gap 1, relative gap 0.25, 7 nodes"
    assert progress_line(Progress(-4.0, -5.0, 7, 2.2, -6.0)) == proved
    claimed = "2 s, objective -4, bound -6, solver claims -5, absolute gap 2, 7 nodes"
    assert progress_line(Progress(-4.0, -6.0, 7, 2.2, -6.0, -5.0)) == claimed


def answer(*arguments: str) -> dict[str, Any]:
    solved = CliRunner().invoke(app, ["solve", *arguments, "--json"])
    assert solved.exit_code == 0, solved.output
    found: dict[str, Any] = json.loads(solved.stdout)
    return found


def test_for_ever_by_a_discount_or_on_average() -> None:
    average = answer("river-swim", "--average")
    discounted = answer("river-swim", "--discount", "0.999999")
    assert average["oracle"] == discounted["oracle"] == "policy-iteration"
    assert average["status"] == discounted["status"] == "optimal"
    assert discounted["objective"] * 1e-6 == pytest.approx(average["objective"], abs=1e-4)
    assert len(average["actions"]) == len(average["values"]) == 6


def test_for_ever_an_entrance_is_the_law_of_the_start(tmp_path: Path) -> None:
    world, start = instances.river_swim(n_states=4), np.array([0.25, 0.25, 0.5, 0.0])
    path = tmp_path / "entered.npz"
    instances.save(path, instances.with_start(world, start))
    found = answer(str(path), "--discount", "0.9")
    assert len(found["actions"]) == 4
    assert found["objective"] == pytest.approx(float(start @ found["values"]))


def test_what_has_no_answer_for_ever_is_refused() -> None:
    assert "the costs of tiny change from step to step" in refused("tiny", "--average")
    assert "has budgets" in refused("maintenance", "--discount", "0.9")
    assert "leave it out" in refused("river-swim", "--average", "--domain", "stationary")
    assert "two objectives" in refused("river-swim", "--average", "--discount", "0.5")
    assert "discount = 1.0; it must be at least 0 and below 1" in refused("river-swim", "--discount", "1")
    assert "--oracle policy-iteration does" in refused("river-swim", "--average", "--oracle", "lp")
