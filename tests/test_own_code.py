"""Learners, oracles, adversaries and worlds of one's own by name, `module:attribute`, without a package."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import amdp
from amdp import own_code
from amdp.cli import app
from amdp.errors import AmdpError, InvalidInput, SpecError
from amdp.experiments.building import arrange
from amdp.experiments.execution import execute
from amdp.experiments.manifest import load
from amdp.experiments.record import Record
from amdp.experiments.settings import RunSettings
from amdp.experiments.spec import Role, Spec
from amdp.testing import learner_checks, oracle_checks

Game: Any = amdp.Game
DOCS = Path(__file__).parent.parent / "docs"
SOURCE = """
from dataclasses import dataclass
from typing import ClassVar

import amdp
import numpy as np
from amdp.algorithms.estimators.feedback import Bandit, Weights

NUMBER = 3


@dataclass(frozen=True, eq=False)
class Flat:
    domain: amdp.MarkovPolicies
    oracle_calls = 0

    def draw(self, rng):
        return np.full(self.domain.shape, 1 / self.domain.shape[2])


@dataclass(frozen=True)
class Uniform:
    unused: float = 0.0
    feedback: ClassVar[type] = Bandit

    def start(self, domain, rng):
        if not isinstance(domain, amdp.MarkovPolicies):
            raise amdp.errors.InvalidInput("episodes")
        return Flat(domain)

    def observe(self, distribution, segment):
        return distribution

    def weigh(self, distribution, segment, rng):
        return Weights(np.ones(len(segment.states)))

    def learn(self, distribution, feedback):
        return distribution


class Homeless(Uniform):
    def start(self, domain, rng):
        return object()


def uniform(task, *, unused: float = 0.0):
    return Uniform(unused)


def nothing(task):
    return None


def swim(n_states: int = 3):
    return amdp.instances.river_swim(n_states=n_states, n_steps=4)


def number():
    return 3


def constant(task, *, height: float = 0.5):
    return np.full((task.rounds, *task.shape), height)


def too_high(task):
    return constant(task, height=2.0)


@dataclass(frozen=True)
class Mine:
    depth: int = 1
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain):
        return amdp.oracle("dp").supports(domain)

    def bind(self, domain):
        return amdp.oracle("dp").bind(domain)
"""
SPEC = """
checkpoints = 5

[[games]]
instance = { name = "mine:swim", n_states = 4 }
losses = { name = "mine:constant", height = [0.25, 0.5] }
episodes = 12
comparator = "mine:Mine"

[[learners]]
name = "mine:Uniform"

[[learners]]
name = "mine:uniform"
settings = { unused = 0.5 }

[[learners]]
name = "ftpl"
oracle = { name = "mine:Mine", depth = 2 }
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a module in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A spec with its module beside it, elsewhere than the current folder."""
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "spec.toml").write_text(SPEC, encoding="utf-8")
    return tmp_path / "spec.toml"


def test_from_python_names_are_found_in_the_current_folder(here: Path) -> None:
    game = amdp.Game("mine:swim", losses={"name": "mine:constant", "height": 0.25}, rounds=8)
    assert game.losses[0].max() == game.losses[0].min() == 0.25
    theirs = amdp.play(game, "mine:Uniform", unused=1.0)
    np.testing.assert_array_equal(theirs.loss, amdp.play(game, "uniform").loss)
    assert type(amdp.oracle("mine:Mine", depth=3)).__name__ == "Mine"


def test_what_is_found_by_name_can_be_pickled(here: Path) -> None:
    for check in learner_checks():
        check(own_code.find("mine:uniform"))
    for planning in oracle_checks():
        planning(own_code.find("mine:Mine")())


def test_on_the_command_line(here: Path) -> None:
    command = ["play", "mine:swim", "mine:Uniform", "--losses", "mine:constant", "--episodes", "5", "--json"]
    settings = json.loads(CliRunner().invoke(app, command).stdout)["settings"]
    digest = own_code.digest("mine:Uniform")
    assert [settings["game"][part]["source"] for part in ("instance", "losses")] == [digest] * 2
    assert settings["learner"]["source"] == digest
    assert CliRunner().invoke(app, ["solve", "mine:swim", "--oracle", "mine:Mine"]).exit_code == 0
    twice = CliRunner().invoke(app, ["play", "tiny", "uniform", "--learner", "ftpl"])
    assert "give one" in twice.stderr


def test_a_spec_finds_its_neighbours(beside: Path) -> None:
    spec = Spec.load(beside)
    assert list(spec.learners) == ["mine:Uniform", "mine:uniform", "ftpl"]
    assert set(spec.baselines) == set(spec.games)  # uniform play in a world of one's own
    records = [execute(planned.settings) for planned in spec.first()]
    assert [record.failure for record in records] == [None] * 8
    assert Record.from_bytes(records[0].to_bytes()).settings == records[0].settings


def test_another_source_is_another_run_and_the_old_one_cannot_be_played(beside: Path) -> None:
    before = Spec.load(beside).first()[0].settings
    source = beside.with_name("mine.py")
    source.write_text(SOURCE.replace("height: float = 0.5", "height: float = 0.4"), encoding="utf-8")
    after = Spec.load(beside).first()[0].settings
    assert before.id != after.id
    with pytest.raises(InvalidInput, match="has changed"):
        arrange(before)
    assert execute(after).failure is None
    source.write_text(SOURCE, encoding="utf-8")
    assert Spec.load(beside).first()[0].settings.id == before.id


def test_the_folder_is_not_part_of_an_id(beside: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in ("mine.py", "spec.toml"):
        (elsewhere / file).write_bytes(beside.with_name(file).read_bytes())
    here, there = Spec.load(beside).first(), Spec.load(elsewhere / "spec.toml").first()
    assert [run.id for run in here] == [run.id for run in there]


def test_runs_without_own_code_have_the_ids_that_they_had() -> None:
    built_in = Spec.parse('[[games]]\ninstance = "tiny"\nepisodes = 5\n[[learners]]\nname = "ftpl"\n')
    assert "source" not in json.dumps(built_in.first()[0].settings.to_json())


@pytest.mark.usefixtures("few_figures")
def test_workers_find_it_and_reports_do_not_run_it(beside: Path, tmp_path: Path) -> None:
    results = amdp.compare(beside, tmp_path / "out", workers=1)
    assert results.outcome.failed == []
    beside.with_name("mine.py").write_text("raise RuntimeError('run')", encoding="utf-8")
    stored = load(tmp_path / "out")
    assert [planned.id for planned in stored.first()] == [planned.id for planned in results.spec.first()]
    assert amdp.Results.open(tmp_path / "out").report().page.exists()


def test_a_class_has_no_rate_to_tune_and_a_recipe_may(beside: Path) -> None:
    beside.write_text(f"{SPEC}\n[tune]\nmultipliers = [1, 2]\nseeds = 1\n", encoding="utf-8")
    spec = Spec.load(beside)
    assert spec.self_tuned == ("mine:Uniform",)
    assert "mine:Uniform" not in {run.learner for run in spec.first() if run.role is Role.TUNING}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent:Uniform", r"no file .*absent\.py"),
        ("mine:Unifrom", "did you mean 'Uniform'"),
        ("mine:NUMBER", "must be a function or a class"),
        ("mine:Flat", "is no learner: Flat has no feedback, start"),
        ("mine:nothing", "is no learner: a NoneType has no"),
        ("mine:Homeless", "without 'domain'"),
        ("not-a-name:Uniform", "module:attribute"),
        ("broken:Uniform", "ZeroDivisionError"),
        ("needy:Uniform", "no file beside it"),
    ],
)
def test_what_is_wrong_with_a_learner_is_said(name: str, reason: str, here: Path) -> None:
    (here / "broken.py").write_text("1 / 0", encoding="utf-8")
    (here / "needy.py").write_text("import no_such_helper", encoding="utf-8")
    with pytest.raises(InvalidInput, match=reason):
        amdp.play(amdp.Game("tiny", rounds=3), name)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"world": "mine:number"}, "must return an amdp.instances.Instance"),
        ({"world": "mine:constant"}, "needs task"),
        ({"losses": "mine:swim"}, "one argument without a default"),
        ({"losses": "mine:too_high"}, "between 0 and 1"),
        ({"losses": "mine:nothing"}, "returned NoneType"),
        ({"comparator": "mine:Uniform"}, "is no oracle: it lacks requires, supports, bind"),
        ({"comparator": "mine:Flat"}, "needs domain"),
    ],
)
def test_what_is_wrong_with_another_part_is_said(parts: dict[str, str], reason: str, here: Path) -> None:
    with pytest.raises(AmdpError, match=reason):
        Game(**({"world": "tiny"} | parts), rounds=3)


def test_a_spec_says_where(beside: Path) -> None:
    beside.write_text(SPEC.replace("mine:Uniform", "mine:Unifrom"), encoding="utf-8")
    with pytest.raises(SpecError, match=r"learners\[0\].name: .*did you mean 'Uniform'"):
        Spec.load(beside)
    beside.write_text(SPEC.replace("unused = 0.5", "unsued = 0.5"), encoding="utf-8")
    with pytest.raises(SpecError, match=r"learners\[1\].settings.unsued"):
        Spec.load(beside)


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("write-a-learner", ["play", "tiny", "my_module:shortsighted", "--set", "rate=0.3", "--episodes", "20"]),
        ("write-a-learner", ["play", "tiny", "my_module:Shortsighted", "--episodes", "20"]),
        ("write-an-oracle", ["solve", "river-swim", "--oracle", "my_module:Backward"]),
        ("own-code", ["play", "my_module:corridor", "--losses", "my_module:storms", "--episodes", "20"]),
    ],
)
def test_the_pages_lead_to_something_that_plays(
    page: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    (tmp_path / "my_module.py").write_text(first, encoding="utf-8")
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output


def test_settings_made_by_hand_need_no_digest(here: Path) -> None:
    by_hand = RunSettings.from_json(
        {
            "game": {
                "instance": {"name": "mine:swim", "settings": {}},
                "losses": {"name": "nominal", "settings": {}},
                "episodes": 3,
                "comparator": None,
            },
            "learner": {"name": "mine:Uniform", "oracle": None, "projection": None},
            "seed": 1,
            "checkpoints": 2,
        }
    )
    assert arrange(by_hand).rounds == 3
