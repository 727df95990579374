"""`amdp learners NAME`: the settings of one learner, explained, with their values in a game."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

import amdp
from amdp import registry
from amdp.algorithms.named import GROUP
from amdp.cli import app
from amdp.experiments.building import arrange
from amdp.experiments.spec import Spec

runner = CliRunner()


def shown(*words: str) -> dict[str, Any]:
    result = runner.invoke(app, ["learners", *words, "--json"])
    assert result.exit_code == 0, result.stderr
    content: dict[str, Any] = json.loads(result.stdout)
    return content


@pytest.mark.parametrize("name", registry.names(GROUP))
def test_every_learner_has_a_usual_game_and_fits_80_columns(name: str) -> None:
    result = runner.invoke(app, ["learners", name, "--episodes", "50"], env={"COLUMNS": "80"})
    if result.exit_code:  # it plays no episodes
        result = runner.invoke(app, ["learners", name, "--steps", "300"], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "…" not in result.stdout
    assert name in result.stdout


def test_values_are_those_of_the_game_that_is_named() -> None:
    found = shown("uob-reps", "river-swim", "--episodes", "300", "--unknown", "--multiplier", "3", "--set", "delta=0.1")
    game = amdp.Game("river-swim", rounds=300, unknown=True)
    assert {row["name"]: row["value"] for row in found["settings"]} == pytest.approx(
        amdp.settings(game, "uob-reps", multiplier=3.0, delta=0.1)
    )
    assert [row["default"] for row in found["settings"]] == [None] * 3
    assert all(row["what"] for row in found["settings"])
    small = shown("mdp-e", "random-ergodic", "--world", "n_states=3", "--steps", "200")
    assert small["game"]["instance"] == {"name": "random-ergodic", "settings": {"n_states": 3}}


def test_without_a_world_the_first_that_it_plays_is_taken() -> None:
    assert shown("o-reps")["game"]["instance"]["name"] == "tiny"
    assert shown("uc-o-reps")["game"]["unknown"]
    assert shown("mdp-exp3")["game"]["steps"] == 10_000


def test_a_rate_that_does_not_know_of_the_delay_is_told() -> None:
    told = "it does not know of the delay"
    assert told in runner.invoke(app, ["learners", "o-reps", "--delay", "fixed:3"], env={"COLUMNS": "100"}).stdout
    assert told not in runner.invoke(app, ["learners", "ftpl", "--delay", "fixed:3"]).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ubo-reps"], "did you mean 'uob-reps'?"),
        (["uob-reps", "--set", "gamma=-1"], "gamma = -1; it must be finite and not negative"),
        (["mdp-exp3", "--set", "exploration=2"], "exploration = 2; it must be between 0 and 1"),
        (["mdp-e", "river-swim"], "mdp-e plays one stream of steps"),
        (["o-reps", "--world", "n_states=3"], "its settings are for a WORLD"),
        (["soft-leader", "--multiplier", "2"], "soft-leader tunes its rate itself"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(words: list[str], message: str) -> None:
    result = runner.invoke(app, ["learners", *words])
    assert result.exit_code == 1
    assert message in result.stderr


def test_settings_are_given_at_the_command_line_and_in_specs() -> None:
    words = ["play", "tiny", "--learner", "uob-reps", "--episodes", "20", "--unknown", "--json", "--multiplier", "2"]
    played = runner.invoke(app, [*words, "--set", "gamma=0.25", "--set", "rate=0.5"])
    used = json.loads(played.stdout)["settings"]["used"]
    assert (used["rate"], used["gamma"]) == (1.0, 0.25)
    learner = {"name": "o-ssp", "multiplier": 5, "settings": {"exploration": 0.125, "rate": 0.1}}
    spec = Spec.from_dict({"games": [{"instance": "tiny", "episodes": 20}], "learners": [learner], "seeds": 1})
    used = arrange(spec.first()[0].settings).used
    assert (used["rate"], used["exploration"]) == (0.5, 0.125)
