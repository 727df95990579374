"""`amdp play` and the lists, as a person and as a program would use them."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from amdp import instances, losses
from amdp.algorithms.bounds import ftpl_bound
from amdp.algorithms.named import learner
from amdp.cli import app
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.seeding import Streams

runner = CliRunner()


def played(*arguments: str) -> dict[str, Any]:
    result = runner.invoke(app, ["play", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def refused(*arguments: str) -> str:
    """The message of a call that ends in a clear error of one line."""
    result = runner.invoke(app, ["play", "tiny", "--episodes", "3", *arguments])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_the_numbers_are_those_of_the_same_game_in_python() -> None:
    answer = played("tiny", "--episodes", "40", "--seed", "3")
    world = instances.build("tiny")
    game = ArenaGame(Episodic(world.kernel, world.initial), losses.named("bernoulli", world.shape, 40, 3, world.costs))
    expected = measure(game, play_rounds(game, learner("ftpl", world.domain, 40), world.domain, Streams.from_seed(3)))
    assert answer["regret"] == expected.low[-1]
    assert answer["trials"] == expected.trials[-1]
    assert answer["oracle_calls"] == answer["trials"] + 40
    assert answer["curve"]["rounds"][-1] == answer["rounds"] == 40
    assert answer["curve"]["regret"][-1] == answer["regret"]
    settings = answer["settings"]["used"]
    assert settings["rate"] == pytest.approx(1 / np.sqrt(3 * 3 * 2 * 40))
    assert settings["limit"] == np.ceil(np.sqrt(3 * 2 * 40 / 3))
    assert answer["bound"]["total"] == ftpl_bound(world.shape, 40, settings["rate"], settings["limit"]).total


def test_the_settings_repeat_the_run() -> None:
    first = played("tiny", "--episodes", "20", "--learner", "ftpl-shared", "--delay", "uniform:0:5", "--seed", "7")
    game, player = first["settings"]["game"], first["settings"]["learner"]
    again = played(
        game["instance"]["name"],
        *("--losses", game["losses"]["name"], "--episodes", str(game["episodes"]), "--delay", game["delay"]),
        *("--learner", player["name"], "--multiplier", str(player["multiplier"])),
        *("--seed", str(first["settings"]["seed"])),
    )
    assert {key: again[key] for key in ("regret", "trials", "curve", "settings")} == {
        key: first[key] for key in ("regret", "trials", "curve", "settings")
    }


def test_delays_enter_the_rate_and_the_bound_as_far_as_they_lie_in_the_game() -> None:
    answer = played("tiny", "--episodes", "10", "--delay", "fixed:4")
    assert answer["settings"]["used"]["total_delay"] == 6 * 4 + 3 + 2 + 1
    assert answer["settings"]["used"]["rate"] == pytest.approx(1 / np.sqrt(3 * 3 * 2 * (10 + 30)))
    assert answer["bound"]["stability"] == pytest.approx(answer["settings"]["used"]["rate"] * 9 * 6 * (3 * 10 + 30))


def test_a_world_from_a_file_plays_like_its_namesake(tmp_path: Path) -> None:
    path = tmp_path / "tiny.npz"
    instances.save(path, instances.build("tiny"))
    assert played(str(path), "--episodes", "10")["regret"] == played("tiny", "--episodes", "10")["regret"]


def test_losses_from_a_file_may_be_longer_than_the_game_but_not_shorter(tmp_path: Path) -> None:
    path = tmp_path / "losses.npz"
    np.savez(path, losses=np.random.default_rng(0).random((5, 3, 3, 2)))
    assert played("tiny", "--episodes", "3", "--losses", str(path))["rounds"] == 3
    assert "6 rounds; " in refused("--episodes", "6", "--losses", str(path))


def test_unknown_transitions_change_the_game_and_state_no_bound() -> None:
    known = played("tiny", "--episodes", "15")
    unknown = played("tiny", "--episodes", "15", "--unknown")
    assert unknown["bound"] is None
    assert unknown["regret"] != known["regret"]
    narrow = played("tiny", "--episodes", "60", "--unknown", "--radius-scale", "0.01")
    assert narrow["regret"] != played("tiny", "--episodes", "60", "--unknown")["regret"]


@pytest.mark.parametrize(("name", "has_bound"), [("ftpl-shared", True), ("ftpl-literal", False), ("fpl", False)])
def test_every_learner_plays_and_only_those_with_a_theorem_state_a_bound(name: str, has_bound: bool) -> None:
    answer = played("tiny", "--episodes", "10", "--learner", name, "--delay", "geometric:2")
    assert (answer["bound"] is not None) == has_bound
    assert (answer["trials"] == 0) == (name == "fpl")


@pytest.mark.parametrize("name", ["o-reps", "hedge", "pomd"])
def test_learners_without_a_planning_oracle_make_no_plans(name: str) -> None:
    small = ("tiny", "--world", "n_states=2", "--episodes", "10", "--learner", name)
    assert played(*small)["oracle_calls"] == 0
    assert "plans" not in runner.invoke(app, ["play", *small]).stdout


def test_people_get_one_screen() -> None:
    result = runner.invoke(app, ["play", "tiny", "--episodes", "30", "--delay", "fixed:2"])
    assert result.exit_code == 0
    for words in ("rate", "limit", "total_delay", "resampling", "stability", "plans", "best in hindsight"):
        assert words in result.stdout
    assert result.stdout.count("\n") <= 40
    assert not result.stderr


def rows(*arguments: str) -> dict[str, str]:
    """The rows of the first table that a command prints."""
    result = runner.invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    lines = [line.strip("│").split("│") for line in result.stdout.splitlines() if line.count("│") == 3]
    return {key.strip(): text.strip() for key, text in lines}


def test_a_run_names_its_learner_and_solvers_and_leaves_out_what_changes_nothing() -> None:
    plain = rows("play", "tiny", "--episodes", "30")
    assert (plain["learner"], plain["oracle"]) == ("ftpl", "dp")
    assert not {"delay", "total_delay", "multiplier", "rounds", "projection", "spent on switches"} & plain.keys()
    delayed = rows("play", "tiny", "--episodes", "30", "--delay", "fixed:2", "--learner", "o-reps", "--multiplier", "3")
    assert (delayed["learner"], delayed["projection"]) == ("o-reps", "newton")
    assert (delayed["delay"], delayed["total_delay"], delayed["multiplier"]) == ("fixed:2", "57", "3")
    assert not {"oracle", "plans"} & delayed.keys()


def test_loading_is_told_from_playing_and_solving() -> None:
    answer = played("tiny", "--episodes", "30")
    assert 0 < answer["playing_seconds"] <= answer["seconds"]
    assert 0 <= answer["learner_loading_seconds"] <= answer["learner_seconds"]
    assert answer["loading_seconds"] > 0
    solved = json.loads(runner.invoke(app, ["solve", "tiny", "--json"]).stdout)
    assert solved["solving_seconds"] > 0
    assert solved["loading_seconds"] > 0


def test_gaps_are_absolute_and_relative_under_the_same_words() -> None:
    solved = rows("solve", "river-swim", "--oracle", "lp", "--seconds", "0")
    assert (solved["oracle"], solved["absolute gap"], solved["relative gap"]) == ("lp", "11.6", "0.581")
    assert not {"nodes", "rebuilds", "seconds"} & solved.keys()
    assert rows("solve", "tiny")["absolute gap"] == "0"
    stream = ("play", "random-parked", "--world", "n_states=3", "--steps", "60", "--learner", "hedge-infinite")
    loose = rows(*stream, "--comparator", "local-search")
    assert re.fullmatch(r"\S+ absolute, \S+ relative", loose["comparator's gap"])
    assert "comparator's gap" not in rows(*stream)


def test_the_record_has_the_settings_and_a_line_for_each_round(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    answer = played("tiny", "--episodes", "12", "--record", str(path))
    first, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert first["settings"] == answer["settings"]
    assert [line["k"] for line in lines] == list(range(12))
    assert sum(line["trials"] for line in lines) == answer["trials"]
    world = instances.build("tiny")
    adversary = losses.named("bernoulli", world.shape, 12, 1, world.costs)
    for line in lines:
        met = adversary[line["k"]][np.arange(3), line["states"], line["actions"]]
        assert line["paid"] == met.sum()


@pytest.fixture
def endless(tmp_path: Path) -> Any:
    """A run that would last for hours, some rounds into it, and its record."""
    path = tmp_path / "rounds.jsonl"
    command = ["-m", "amdp", "play", "tiny", "--episodes", "3000000", "--json", "--record", str(path)]
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            give_up = time.monotonic() + 120
            while not path.exists() or path.read_bytes().count(b"\n") < 20:
                assert process.poll() is None
                assert time.monotonic() < give_up
                time.sleep(0.05)
            yield process, path
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent another way there")
def test_ctrl_c_ends_with_the_summary_so_far(endless: tuple[subprocess.Popen[str], Path]) -> None:
    process, path = endless
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert not stderr
    answer = json.loads(stdout)
    assert 19 <= answer["rounds"] == len(path.read_text().splitlines()) - 1
    assert answer["curve"]["rounds"][-1] == answer["rounds"]


@pytest.mark.skipif(sys.platform == "win32", reason="killed another way there")
def test_a_killed_run_leaves_whole_rounds(endless: tuple[subprocess.Popen[str], Path]) -> None:
    process, path = endless
    process.kill()
    process.wait(60)
    settings, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert settings["settings"]["game"]["episodes"] == 3_000_000
    assert [line["k"] for line in lines] == list(range(len(lines)))


def test_a_stream_is_played_in_epochs_and_its_switches_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    world = ("random-parked", "--world", "n_states=3", "--world", "n_actions=2")
    answer = played(
        *world, *("--steps", "120", "--learner", "hedge-infinite", "--set", "epochs=8", "--record", str(path))
    )
    assert answer["rounds"] == 8
    assert answer["settings"]["used"]["epoch"] == 15
    assert answer["settings"]["game"]["instance"]["settings"] == {"n_states": 3, "n_actions": 2}
    assert answer["settings"]["learner"]["settings"] == {"epochs": 8}
    assert answer["curve"]["rounds"][-1] == 8
    _, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    spent = sum(line.get("entering", 0) for line in lines)
    assert answer["steps_entering"] == spent > 0
    assert spent + sum(len(line["states"]) for line in lines) == 120
    assert answer["curve"]["paid"][-1] == pytest.approx(sum(line["paid"] for line in lines))
    assert 0 < answer["paid_entering"] <= spent


def test_a_stream_says_its_bound_or_why_it_has_none() -> None:
    stream = ("random-parked", "--world", "n_states=3", "--steps", "60", "--learner")
    kept, renewed = played(*stream, "hedge-infinite"), played(*stream, "hedge-infinite-renewed")
    assert kept["bound"] is None
    assert "hedge-infinite-renewed has one" in kept["no_bound"]
    assert renewed["bound"]["total"] > 0
    assert renewed["no_bound"] is None
    assert renewed["steps_entering"] >= kept["steps_entering"]
    shown = runner.invoke(app, ["play", *stream, "hedge-infinite"], env={"COLUMNS": "200"}).stdout
    assert "none is proved for a policy that stays" in shown


def test_a_comparator_that_proves_only_a_bound_makes_the_regret_an_interval() -> None:
    stream = ("play", "random-parked", "--world", "n_states=3", "--steps", "60", "--learner", "hedge-infinite")
    exact = runner.invoke(app, [*stream])
    assert exact.exit_code == 0, exact.output
    assert " .. " not in exact.stdout
    assert "spent on switches" in exact.stdout
    loose = runner.invoke(app, [*stream, "--comparator", "local-search"])
    assert loose.exit_code == 0, loose.output
    assert " .. " in loose.stdout
    answer = played(*stream[1:], "--comparator", "local-search")
    assert answer["regret_high"] is None or answer["regret_high"] > answer["regret"]
    assert answer["settings"]["game"]["comparator"]["name"] == "local-search"


def test_settings_of_learner_and_world_are_given_by_key_and_value() -> None:
    answer = played("lock", "--world", "code=[1, 0]", "--world", "jam=0.2", "--episodes", "9", "--set", "limit=7")
    assert answer["settings"]["used"]["shape"] == [20, 3, 2]
    assert answer["settings"]["used"]["limit"] == 7
    assert "'tiny' has no option 'size'" in refused("--world", "size=3")
    assert "'ftpl' has no option 'speed'; its options: rate, limit" in refused("--set", "speed=3")
    assert "--set rate: give key=value" in refused("--set", "rate")
    assert "--set rate is given twice" in refused("--set", "rate=1", "--set", "rate=2")
    assert "rate = inf" in refused("--set", "rate=inf")
    assert "give either episodes or steps" in refused("--steps", "5")
    assert "no 'simplex' in amdp.oracles" in refused("--comparator", "simplex")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--learner", "hedge2"), "no 'hedge2' in amdp.learners; did you mean 'hedge'? known names: "),
        (("--oracle", "simplex"), "no 'simplex' in amdp.oracles; known names"),
        (("--losses", "kind"), "no losses 'kind'; known names: nominal"),
        (("--losses", "nowhere.csv"), "nowhere.csv"),
        (("--delay", "fixed:-1"), "delay = -1"),
        (("--delay", "long"), "no delays 'long'; known forms: none"),
        (("--episodes", "0"), "episodes = 0; it must be a whole number, 1 .. "),
        (("--seed", "-1"), "seed = -1; it must be a whole number, 0 .. "),
        (("--episodes", "99999999999999999999"), "episodes = 99999999999999999999; it must be a whole number, 1 .. "),
        (("--multiplier", "0"), "multiplier = 0.0; it must be above 0"),
        (("--unknown", "--radius", "wide"), "radius = 'wide'; known names: own, paper, jin-2020"),
        (("--learner", "hedge", "--unknown"), "exact weights need a kernel"),
        (("--unknown", "--radius-scale", "-1"), "radius_scale = -1.0; it must be above 0"),
        (("--record", "no/such/folder/file"), "cannot be written"),
        (("--record", "/dev/full"), "cannot be written"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--learner", "mdp-e"), "mdp-e plays one stream of steps, not episodes: use Game(..., steps=N), or --steps N"),
        (("--learner", "ftpl-infinite"), "not episodes: use Game(..., steps=N), or --steps N"),
        (("--steps", "200", "--learner", "ftpl"), "use ftpl-infinite"),
        (("--steps", "200", "--learner", "hedge"), "use hedge-infinite"),
        (
            ("--steps", "200", "--learner", "o-reps"),
            "o-reps plays episodes, not one stream of steps",
        ),
        (("--steps", "200", "--learner", "pomd"), "or --episodes K"),
        (("--learner", "o-reps", "--oracle", "lp"), "o-reps does not use it; its options: projection, multiplier"),
        (("--learner", "o-reps", "--radius", "l1"), "radius = 'l1'; the transitions are known: use"),
    ],
)
def test_a_refusal_says_what_to_type(arguments: tuple[str, ...], message: str) -> None:
    result = runner.invoke(app, ["play", "random-ergodic", *arguments])
    assert result.exit_code == 1
    assert message in result.stderr


def test_an_unknown_world_lists_the_known_ones() -> None:
    result = runner.invoke(app, ["play", "atlantis"])
    assert result.exit_code == 1
    assert "no instance 'atlantis'; known names: tiny, river-swim" in result.stderr


def test_an_oracle_that_cannot_plan_there_says_so_before_the_game() -> None:
    result = runner.invoke(app, ["play", "river-swim", "--oracle", "enumeration", "--episodes", "2"])
    assert result.exit_code == 1
    assert "policies" in result.stderr


def test_instances_and_learners_are_listed() -> None:
    worlds = json.loads(runner.invoke(app, ["instances", "--json"]).stdout)
    tiny = {"seed": 20240, "n_steps": 3, "n_states": 3, "n_actions": 2, "concentration": 1.0, "copies": 1}
    assert {"name": "tiny", "steps": 3, "states": 3, "actions": 2, "settings": tiny} in worlds
    assert "server-farm" in {row["name"] for row in worlds}
    found = {row["name"]: row["what"] for row in json.loads(runner.invoke(app, ["learners", "--json"]).stdout)}
    assert {"ftpl", "ftpl-shared", "ftpl-literal", "fpl"} <= set(found)
    assert "regret is linear" in found["ftpl-literal"]
    assert "river-swim" in runner.invoke(app, ["instances"]).stdout
    assert "ftpl-shared" in runner.invoke(app, ["learners"]).stdout


def test_a_setting_of_the_wrong_kind_is_refused_in_one_line() -> None:
    done = CliRunner().invoke(app, ["play", "tiny", "--episodes", "3", "--set", "rate=abc"])
    assert done.exit_code == 1
    assert done.stderr == "error: 'ftpl': rate = 'abc'; it must be a number or 'adaptive' or 'theory'\n"
