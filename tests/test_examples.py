"""The examples run, the notebook prints what is stored in it, and the third-party oracle is found and conforms."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import matplotlib
import pytest
from matplotlib import pyplot
from typer.testing import CliRunner

from amdp.cli import app

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def run(*command: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_example_runs(script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [str(script)])
    run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


def test_what_examples_reach_by_dots_is_there_after_import_amdp() -> None:
    """Above it would be there because another test had imported it."""
    codes = [*(script.read_text(encoding="utf-8") for script in SCRIPTS), notebook_code()]
    nodes = [node for code in codes for node in ast.walk(ast.parse(code))]
    written = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    names = [text.removeprefix("amdp.") for text in sorted(written) if re.fullmatch(r"amdp(\.\w+)+", text)]
    assert {"play", "instances.forest"} < set(names)
    run("-W", "error", "-c", "import amdp, operator, sys; operator.attrgetter(*sys.argv[1:])(amdp)", *names)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_example_runs_in_a_process_of_its_own(script: Path) -> None:
    """Nothing is there that it does not import itself."""
    assert run("-W", "error", str(script))


@pytest.mark.slow
def test_the_notebook_runs_in_a_process_of_its_own() -> None:
    assert run("-W", "error", "-c", f"import matplotlib; matplotlib.use('agg')\n{notebook_code()}")


def notebook_cells() -> list[Any]:
    cells: list[Any] = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    return cells


def notebook_code() -> str:
    return "\n".join("".join(cell["source"]) for cell in notebook_cells() if cell["cell_type"] == "code")


def test_the_notebook_prints_what_is_stored_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    cells, code = notebook_cells(), notebook_code()
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    stored = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    assert any("image/png" in output.get("data", {}) for output in outputs)
    with matplotlib.rc_context({"backend": "agg"}):
        exec(compile(code, "tour.ipynb", "exec"), {"__name__": "__main__"})
        pyplot.close("all")
    assert capsys.readouterr().out == stored


def test_notebook_links_lead_somewhere() -> None:
    text = (EXAMPLES / "tour.ipynb").read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (EXAMPLES / target).exists(), target


@pytest.fixture(scope="module")
def with_own_oracle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which examples/own_oracle is installed as a package of its own."""
    target = tmp_path_factory.mktemp("site")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check")
    run("-m", "pip", "install", *offline, "--target", str(target), str(EXAMPLES / "own_oracle"))
    return target


def test_a_third_party_oracle_is_listed(with_own_oracle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(with_own_oracle)
    listed = json.loads(CliRunner().invoke(app, ["oracles", "--json"]).stdout)
    (found,) = [oracle for oracle in listed if oracle["name"] == "step-policy-iteration"]
    assert found["options"] == {"rounds": 1000}
    assert "MarkovPolicies over BernsteinBox" in found["solves"]


def test_a_third_party_oracle_passes_its_tests(with_own_oracle: Path) -> None:
    tests = EXAMPLES / "own_oracle" / "tests"
    options = ("-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib")
    assert "passed" in run("-m", "pytest", *options, str(tests), env={**os.environ, "PYTHONPATH": str(with_own_oracle)})
