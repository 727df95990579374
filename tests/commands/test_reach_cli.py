"""`amdp reach`: the reach of a world at 80 columns and as JSON, and wrong input in one line."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from amdp import InvalidInput, instances
from amdp.cli import app
from amdp.model.reach import reach, reach_of
from amdp.model.segments import Segment


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["reach", *arguments], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["reach", *arguments])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return " ".join(result.stderr.split())


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_json_gives_the_reach_of_every_state_and_its_sums(tmp_path: Path, suffix: str) -> None:
    world = instances.river_swim(4, 9)
    path = tmp_path / f"swim{suffix}"
    instances.save(path, world)
    answer = json.loads(shown(str(path), "--json"))
    exact = reach(world.kernel, world.initial)
    assert_allclose(answer["reach"], exact)
    assert_allclose(answer["sums"], exact.sum(axis=1))
    domain, steps = world.domain, world.shape[0]
    places = [Segment(np.full(steps, s), np.zeros(steps, np.int64)) for s in range(world.shape[1])]
    in_use = np.sum([reach_of(domain).bounds(place) for place in places], axis=0)
    assert_allclose(answer["trials"], world.shape[2] * in_use)
    assert (in_use >= exact.sum(axis=1) - 1e-12).all()
    assert answer["plain_trials"][0] == world.shape[2]
    assert answer["plain_trials"][-1] == world.shape[1] * world.shape[2]
    assert (answer["steps"], answer["states"], answer["actions"]) == world.shape


def test_a_long_world_fits_80_columns_and_says_what_is_left_out() -> None:
    text = shown("river-swim")
    assert max(map(len, text.splitlines())) <= 80
    assert "(12 of 20 steps; --json gives all)" in text
    assert "state 5: 0.385" in text  # the least reachable one in the last step
    assert "-0" not in text
    words = " ".join(text.split())
    assert "On average FTPL needs up to 9.52 resampling trials a step, and a batch, if they are scaled" in words
    assert words.endswith("and up to 10.5 if they are not (ftpl): in this world scaling saves little.")


def test_settings_of_the_world_are_those_that_are_given() -> None:
    answer = json.loads(shown("random-dense", "--world", "n_states=40", "--world", "n_steps=3", "--json"))
    assert np.shape(answer["reach"]) == (3, 40)
    assert max(answer["sums"]) < 3.0
    assert "of 3 steps" not in shown("random-dense", "--world", "n_steps=3")


def test_the_title_is_the_name_that_was_typed() -> None:
    for name in ("tiny", "random-dense"):
        assert shown(name).split(":")[0].strip() == name


def test_where_moves_are_deterministic_little_is_saved() -> None:
    assert " ".join(shown("grid", "--world", "slip=0.0").split()).endswith("in this world scaling saves little.")


def test_wrong_input_is_refused_in_one_line(tmp_path: Path) -> None:
    assert "did you mean 'river-swim'" in refused("river-swin")
    assert "nowhere.npz" in refused(str(tmp_path / "nowhere.npz"))
    assert "'tiny' has no option 'size'" in refused("tiny", "--world", "size=3")
    assert "give key=value" in refused("tiny", "--world", "n_states")
    assert "is given twice" in refused("random-dense", "--world", "n_states=3", "--world", "n_states=4")
    refused("random-dense", "--world", "n_states=0")
    refused("random-dense", "--world", "n_states=many")
    path = tmp_path / "tiny.npz"
    instances.save(path, instances.build("tiny"))
    assert "has no settings" in refused(str(path), "--world", "n_states=3")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    refused(str(tmp_path / "broken.json"))
    assert CliRunner().invoke(app, ["reach"]).exit_code == 2
    assert CliRunner().invoke(app, ["reach", "tiny", "--initial", "1"]).exit_code == 2


@pytest.mark.parametrize("initial", [-1, 6, 1.0])
def test_from_python_a_start_that_is_no_state_is_refused(initial: int) -> None:
    with pytest.raises(InvalidInput, match="initial"):
        reach(instances.river_swim().kernel, initial)
