"""`amdp solve`: what an oracle cannot do is refused with the name of one that can."""

import pytest
from typer.testing import CliRunner

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
        "BackwardInduction does not solve StationaryPolicies over Kernel; --oracle auto does"
    )
    assert refused("river-swim", "--oracle", "cycles").endswith("--oracle dp does")
