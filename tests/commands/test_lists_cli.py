"""`amdp learners`, `instances`, `oracles` and `table`: whole names in 80 columns, filters, and hints at wrong names."""

import json
from itertools import groupby
from typing import Any

import pytest
from typer.testing import CliRunner

from amdp import registry
from amdp.algorithms.paper_table import TABLE
from amdp.cli import app
from amdp.instances import budgeted, continuing, every, standard
from amdp.text import suggestion

WIDTH = 80
LISTS = {
    "learners": registry.names("amdp.learners"),
    "instances": list(every()),
    "oracles": registry.names("amdp.oracles"),
}


def shown(*arguments: str, width: int = WIDTH) -> str:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result.output
    return result.stdout


def listed(*arguments: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(shown(*arguments, "--json"))
    return rows


def names(*arguments: str) -> set[str]:
    return {row["name"] for row in listed(*arguments)}


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    return result.stderr


@pytest.mark.parametrize("command", LISTS)
def test_every_name_is_whole_in_80_columns(command: str) -> None:
    lines = shown(command).splitlines()
    assert max(map(len, lines)) <= WIDTH
    begins = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert sorted(begins) == sorted(LISTS[command])


@pytest.mark.parametrize("command", ["learners", "oracles"])
def test_an_entry_has_one_or_two_lines(command: str) -> None:
    further = [line.startswith("   ") for line in shown(command).splitlines()]
    most = max(sum(1 for _ in group) for continues, group in groupby(further) if continues)
    assert most == 1, "the first line of a docstring is too long to be read in a list"


@pytest.mark.parametrize("command", LISTS)
def test_no_word_is_broken_at_any_width(command: str) -> None:
    assert shown(command, width=50).split() == shown(command, width=400).split()


def test_the_table_breaks_no_word_and_names_every_learner() -> None:
    text = shown("table", "--all")
    assert max(map(len, text.splitlines())) <= WIDTH
    for row in TABLE:
        assert row.learner in text.split()
        assert " ".join(row.regret.split()) in " ".join(text.split())
    assert text.split() == shown("table", "--all", width=300).split()


def test_learners_are_filtered_by_the_games_that_they_play() -> None:
    full, unknown, stream = (
        names("learners", "--feedback", "full"),
        names("learners", "--unknown"),
        names("learners", "--plays", "stream"),
    )
    assert "o-reps-full" in full
    assert "o-reps" not in full | unknown
    assert "uob-reps" in unknown - stream
    assert "mdp-e" in stream - unknown
    assert names("learners", "--unknown", "--feedback", "full") == full & unknown
    assert names("learners", "--plays", "episodes") | stream == set(LISTS["learners"])
    assert "uniform" in names("learners", "--plays", "stream") & names("learners", "--delays")
    assert names("learners", "--plays", "stream", "--delays") == set(), "it plays either, but in no game both"


def test_what_the_text_shows_is_what_the_filter_keeps() -> None:
    text = shown("learners", "--plays", "stream", "--feedback", "full")
    assert "mdp-e" in text
    assert "mdp-exp3" not in text
    assert "Episodes;" not in text


def test_nothing_that_fits_is_said() -> None:
    result = CliRunner().invoke(app, ["learners", "--plays", "stream", "--unknown"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing fits" in result.stderr


def test_worlds_and_oracles_are_filtered_by_kind() -> None:
    assert names("instances", "--stream") == set(continuing())
    assert names("instances", "--episodes") == set(standard() | budgeted())
    assert names("instances", "--episodes", "--stream") == set(LISTS["instances"])
    assert names("oracles", "--domain", "stationary") >= {"auto", "milp"}
    assert names("oracles", "--domain", "markov").isdisjoint({"milp", "cycles"})


def test_by_name_there_is_more_to_see() -> None:
    assert "options: seconds, gap=1e-09, threads=1" in shown("oracles", "lp")
    assert "small enough to check" in shown("instances", "tiny")
    assert names("oracles", "dp", "lp") == {"dp", "lp"}


def test_options_of_the_other_form_are_refused() -> None:
    assert "--plays narrows the list" in refused("learners", "ftpl", "--plays", "stream")
    assert "--episodes goes with NAME" in refused("learners", "--episodes", "20")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("learners", "ftlp"), "ftpl"),
        (("instances", "river_swim"), "river-swim"),
        (("oracles", "LP"), "lp"),
        (("play", "tiny", "--learner", "UOB"), "uob-reps"),
        (("play", "tiny", "--oracle", "DP"), "dp"),
        (("play", "dense"), "random-dense"),
        (("play", "tiny", "--losses", "bernouli"), "bernoulli"),
        (("play", "tiny", "--delay", "fixd:3"), "fixed"),
        (("play", "tiny", "--unknown", "--radius", "jin"), "jin-2020"),
        (("solve", "tiny", "--oracle", "pulb"), "pulp"),
        (("solve", "rivr-swim"), "river-swim"),
        (("reach", "Tiny"), "tiny"),
    ],
)
def test_a_wrong_name_is_answered_with_the_one_that_was_meant(arguments: tuple[str, ...], meant: str) -> None:
    assert f"did you mean {meant!r}?" in refused(*arguments)


def test_far_words_are_not_guessed() -> None:
    assert suggestion("simplex", LISTS["oracles"]) == ""
    assert suggestion("", LISTS["oracles"]) == ""
    assert suggestion("ex", LISTS["oracles"]) == ""
