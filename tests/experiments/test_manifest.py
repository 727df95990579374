"""What a folder of runs remembers of its spec: names, files, titles, and whose runs are there."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from amdp.cli import app
from amdp.experiments import manifest
from amdp.experiments.execution import execute
from amdp.experiments.runner import run
from amdp.experiments.settings import RunSettings
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from experiments.specs import TUNE, small, threads, toml

UNTITLED = toml(seeds=1).replace('title = "two learners"\n', "")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a spec and the files that it names."""
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    costs = np.array([[[0.2, 0.8], [0.6, 0.1]]] * 2)
    np.savez(folder / "data" / "world.npz", p=np.full((2, 2, 2, 2), 0.5), initial=0, costs=costs)
    (folder / "mine.toml").write_text(UNTITLED.replace('"tiny"', '"data/world.npz"'))
    return folder


def played(spec: Spec, folder: Path) -> None:
    with Store(folder) as store, threads() as engine:
        assert not run(spec, store, engine).failed


def test_names_of_files_start_in_the_folder_of_the_spec(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project)
    here = Spec.parse((project / "mine.toml").read_text())
    monkeypatch.chdir(project / "elsewhere")
    there = Spec.load("../mine.toml")
    assert [one.id for one in there.first()] == [one.id for one in here.first()]
    assert execute(there.first()[0].settings).curve
    assert there.games["small"].instance.name == "data/world.npz"


def test_the_folder_of_a_file_is_not_part_of_a_run(project: Path) -> None:
    settings = Spec.load(project / "mine.toml").first()[0].settings
    told = settings.to_json()
    assert str(project) not in json.dumps(told)
    assert RunSettings.from_json(told) == settings


@pytest.mark.usefixtures("few_figures")
def test_reports_and_results_need_no_file_that_the_spec_names(project: Path, tmp_path: Path) -> None:
    played(Spec.load(project / "mine.toml"), tmp_path / "out")
    (project / "data" / "world.npz").unlink()
    for command in ("results", "report"):
        done = CliRunner().invoke(app, [command, str(tmp_path / "out")])
        assert done.exit_code == 0, done.output
        assert "2 of 2" in done.output


def test_a_stored_spec_finds_its_files_where_they_were(project: Path, tmp_path: Path) -> None:
    played(Spec.load(project / "mine.toml"), tmp_path / "out")
    stored = tmp_path / "out" / "spec.toml"
    assert manifest.origin(stored) == str(project)
    again = Spec.load(stored, manifest.origin(stored))
    assert [one.id for one in again.first()] == [one.id for one in Spec.load(project / "mine.toml").first()]
    assert manifest.origin(project / "mine.toml") is None


def test_a_plan_says_what_its_spec_says(tmp_path: Path) -> None:
    spec = small(
        more=f'{TUNE}\n[[learners]]\nname = "uob-reps"\n[[games]]\ninstance = "tiny"\nepisodes = 9\nunknown = true'
    )
    with Store(tmp_path) as store:
        store.prepare(spec.titled, manifest.dump(spec))
    assert spec.skipped
    assert manifest.load(tmp_path) == spec
    assert manifest.load(tmp_path).first() == spec.first()


@pytest.mark.parametrize("damage", ["", "[]", '{"format": 1}', None])
def test_a_plan_that_does_not_fit_is_not_used(tmp_path: Path, damage: str | None) -> None:
    with Store(tmp_path) as store:
        store.prepare(small(seeds=2).titled, manifest.dump(small(seeds=2)))
        if damage is None:
            store.prepare(toml(seeds=1))
        else:
            store.plan.write_text(damage)
    assert len(manifest.load(tmp_path).first()) == (2 if damage is None else 4)


def test_a_spec_without_a_title_keeps_the_name_of_its_file(project: Path, tmp_path: Path) -> None:
    spec = Spec.load(project / "mine.toml")
    played(spec, tmp_path / "out")
    stored = tmp_path / "out" / "spec.toml"
    assert (
        spec.title
        == manifest.load(tmp_path / "out").title
        == Spec.load(stored, manifest.origin(stored)).title
        == "mine"
    )
    before = stored.stat().st_mtime_ns
    played(spec, tmp_path / "out")
    assert stored.stat().st_mtime_ns == before


@pytest.mark.parametrize("title", ['a "b" \\ c', "été [b]"])
def test_any_title_can_be_kept(title: str) -> None:
    spec = Spec.parse(UNTITLED, f"{title}.toml")
    assert Spec.parse(spec.titled).title == title
    assert Spec.parse(spec.titled).titled == spec.titled
