"""`amdp solve`: settings of the world, and what an oracle cannot do is refused with the name of one that can."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from amdp import instances
from amdp.cli import app


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["solve", *arguments])
    assert result.exit_code == 1
    return " ".join(result.stderr.split())


@pytest.mark.parametrize("option", ["--seconds", "--threads"])
def test_an_option_that_an_oracle_lacks_is_refused_with_those_that_have_it(option: str) -> None:
    message = refused("river-swim", "--domain", "stationary", "--oracle", "enumeration", option, "2")
    assert f"'enumeration' has no option '{option[2:]}'; it is an option of: --oracle" in message
    named = message.rpartition("--oracle ")[2].split(", ")
    assert set(named) >= {"milp", "milp-pulp"}
    assert ("auto" in named) == (option == "--seconds")
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
    assert "two objectives" in refused("river-swim", "--average", "--discount", "0.5")
    assert "discount = 1.0; it must be at least 0 and below 1" in refused("river-swim", "--discount", "1")
    assert "--oracle policy-iteration does" in refused("river-swim", "--average", "--oracle", "lp")
