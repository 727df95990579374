"""The examples run, the notebook prints what is stored in it, and the third-party oracle is found and conforms."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(*command: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda script: script.name)
def test_the_example_runs(script: Path) -> None:
    assert run("-W", "error", str(script))


def test_the_notebook_prints_what_is_stored_in_it() -> None:
    cells = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    stored = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert run("-W", "error", "-c", code, env={**os.environ, "MPLBACKEND": "Agg"}) == stored


def test_notebook_links_lead_somewhere() -> None:
    text = (EXAMPLES / "tour.ipynb").read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (EXAMPLES / target).exists(), target


@pytest.fixture(scope="module")
def with_own_oracle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which examples/own_oracle is installed as a package of its own."""
    target = tmp_path_factory.mktemp("site")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check")
    run("-m", "pip", "install", *offline, "--target", str(target), str(EXAMPLES / "own_oracle"))
    return {**os.environ, "PYTHONPATH": str(target)}


def test_a_third_party_oracle_is_listed(with_own_oracle: dict[str, str]) -> None:
    listed = json.loads(run("-m", "amdp", "oracles", "--json", env=with_own_oracle))
    (found,) = [oracle for oracle in listed if oracle["name"] == "step-policy-iteration"]
    assert found["options"] == {"rounds": 1000}
    assert "MarkovPolicies over BernsteinBox" in found["solves"]


def test_a_third_party_oracle_passes_its_tests(with_own_oracle: dict[str, str]) -> None:
    tests = EXAMPLES / "own_oracle" / "tests"
    options = ("-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib")
    assert "passed" in run("-m", "pytest", *options, str(tests), env=with_own_oracle)
