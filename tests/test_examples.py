"""The examples run, and the third-party oracle among them is found and passes its own tests."""

import json
import os
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


@pytest.fixture(scope="module")
def with_own_oracle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which examples/own_oracle is installed as a package of its own."""
    target = tmp_path_factory.mktemp("site")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check")
    run("-m", "pip", "install", *offline, "--target", str(target), str(EXAMPLES / "own_oracle"))
    return {**os.environ, "PYTHONPATH": str(target)}


def test_a_third_party_oracle_is_listed(with_own_oracle: dict[str, str]) -> None:
    listed = json.loads(run("-m", "amdp", "oracles", "--json", env=with_own_oracle))
    (found,) = [oracle for oracle in listed if oracle["name"] == "policy-iteration"]
    assert found["options"] == {"rounds": 1000}
    assert "MarkovPolicies over BernsteinBox" in found["solves"]


def test_a_third_party_oracle_passes_its_tests(with_own_oracle: dict[str, str]) -> None:
    tests = EXAMPLES / "own_oracle" / "tests"
    options = ("-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib")
    assert "passed" in run("-m", "pytest", *options, str(tests), env=with_own_oracle)
