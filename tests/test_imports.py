"""`import amdp` is light, and its public names are all there."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import amdp

HEAVY = ["cvxpy", "pulp", "matplotlib", "pandas", "numba", "highspy", "gymnasium", "quantecon"]


def loaded_after(statements: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after some statements."""
    code = f"{statements}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_amdp_loads_no_solver_and_no_compiler() -> None:
    assert loaded_after("import amdp").isdisjoint(HEAVY)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_version_and_the_help_of_all_commands_load_no_solver(option: str) -> None:
    loaded = loaded_after(f"from amdp.cli import app; app([{option!r}], standalone_mode=False)")
    assert loaded.isdisjoint([*HEAVY, "numpy", "scipy"])


def test_models_and_boxes_need_no_compiler() -> None:
    statements = """
import numpy as np, amdp
amdp.MarkovPolicies(amdp.Kernel.homogeneous(np.eye(2)[:, None], 3))
amdp.BernsteinBox.vacuous((3, 2, 1), amdp.Radius.paper((3, 2, 1), 10))
"""
    assert loaded_after(statements).isdisjoint(HEAVY)


@pytest.mark.parametrize(("name", "brings"), [("dp", set()), ("lp", {"highspy"}), ("enumeration", set())])
def test_naming_an_oracle_loads_only_what_it_needs(name: str, brings: set[str]) -> None:
    assert loaded_after(f"import amdp; amdp.oracle({name!r})") & set(HEAVY) == brings


def test_naming_the_cvxpy_oracle_does_not_load_cvxpy_yet() -> None:
    assert "cvxpy" not in loaded_after("import amdp; amdp.oracle('cvxpy')")


def test_every_public_name_is_there_once_and_in_order() -> None:
    assert amdp.__all__ == sorted(amdp.__all__)
    assert len(set(amdp.__all__)) == len(amdp.__all__)
    for name in amdp.__all__:
        assert hasattr(amdp, name), name


def test_what_type_checkers_see_is_what_is_imported_lazily() -> None:
    tree = ast.parse(Path(amdp.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert sorted(name.name for node in imports for name in node.names) == amdp.__all__
    for node in imports:
        home = import_module(str(node.module))
        assert all(name.asname == name.name for name in node.names)
        assert all(getattr(amdp, name.name) is getattr(home, name.name) for name in node.names)


def test_importing_amdp_is_quick() -> None:
    """Nothing but the standard library is loaded before a name is used."""
    assert "numpy" not in loaded_after("import amdp")


def test_every_error_of_the_tree_is_public() -> None:
    tree = {name for name, value in vars(amdp.errors).items() if isinstance(value, type)}
    assert tree <= set(amdp.__all__)
    assert all(issubclass(getattr(amdp, name), amdp.AmdpError) for name in tree)
