"""The shell completes the names that the commands know."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from amdp import registry
from amdp.cli import app
from amdp.commands import completion
from amdp.instances import build


def test_names_begin_with_what_was_typed() -> None:
    assert completion.learners("ftpl") == [name for name in registry.names("amdp.learners") if name.startswith("ftpl")]
    assert completion.learners("") == registry.names("amdp.learners")
    assert completion.oracles("milp") == ["milp", "milp-pulp"]
    assert completion.projections("n") == ["newton"]
    assert completion.losses("bern") == ["bernoulli"]
    assert completion.delays("f") == ["fixed:"]
    assert completion.delays("all") == ["all-at-end"]
    assert completion.instances("no such world") == []


def test_every_world_that_is_offered_can_be_built() -> None:
    offered = completion.instances("")
    assert {"tiny", "river-swim", "server-farm"} <= set(offered)
    assert len(set(offered)) == len(offered)
    assert build(offered[0]).name


def test_the_callbacks_work_in_a_shell() -> None:
    small = typer.Typer()

    @small.command()
    def play(learner: Annotated[str, typer.Option(autocompletion=completion.learners)] = "ftpl") -> None: ...

    words = {"_MAIN_COMPLETE": "complete_bash", "COMP_WORDS": "main --learner o-re", "COMP_CWORD": "2"}
    offered = CliRunner().invoke(small, env=words, prog_name="main").stdout.split()
    assert offered == [name for name in registry.names("amdp.learners") if name.startswith("o-re")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_for_a_shell(shell: str, tmp_path: Path) -> None:
    at_home = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-c", "from amdp.cli import app; app(prog_name='amdp')", "--install-completion", shell]
    subprocess.run(command, check=True, capture_output=True, env=at_home)
    written = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file())
    assert "_AMDP_COMPLETE" in written


def test_commands_that_are_imported_when_called_are_completed_too() -> None:
    def offered(words: str) -> list[str]:
        count = str(len(words.split()) - 1)
        asked = {"_AMDP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
        return CliRunner().invoke(app, env=asked, prog_name="amdp").stdout.split()

    assert offered("amdp re") == ["report", "results", "reach"]
    names = [name for name in registry.names("amdp.learners") if name.startswith("o-re")]
    assert offered("amdp play --learner o-re") == names
