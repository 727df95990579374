"""Machine code is that of the sources as they are: of all of them, wherever a kernel that is called may stand."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba import types

import amdp
from amdp import kernels
from amdp.kernels.compiling import FOLDERS_KEPT

PACKAGE = Path(amdp.__file__).parent

# One state, three actions that cost the same: a walk of one step takes the action in the middle if its number is 1/2.
# `walks.draw` finds it by `paths._pick`.
DRAW = """
import json, sys
import numpy as np
from amdp import kernels
draw = kernels.walks.draw
for dtype in sys.argv[1:]:
    found = draw(np.zeros((1, 3), dtype), np.zeros((1, 1, 3)), 1.0, 1, 0, np.array([0.5]))
hits, misses = (sum(counts.values()) for counts in (draw.stats.cache_hits, draw.stats.cache_misses))
print(json.dumps([int(found[1, 0]), hits, misses, draw.stats.cache_path]))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A copy of the sources in a folder of its own, without machine code."""
    root = tmp_path / "tree"
    shutil.copytree(PACKAGE, root / "amdp", ignore=shutil.ignore_patterns("__pycache__"))
    yield root
    shutil.rmtree(tmp_path)


def started(root: Path, *dtypes: str, **variables: str) -> "subprocess.Popen[str]":
    """A fresh interpreter that draws walks with the kernels of the tree, one for each type of integers."""
    here = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment = here | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"} | variables
    command = [sys.executable, "-c", DRAW, *(dtypes or ["int64"])]
    return subprocess.Popen(command, env=environment, cwd=root, text=True, stdout=subprocess.PIPE)


def drawn(process: "subprocess.Popen[str]") -> tuple[int, int, int, Path]:
    """The action, how often the kernel was found on disk and how often not, and where it is kept."""
    out, _ = process.communicate()
    assert process.returncode == 0
    action, hits, misses, path = json.loads(out)
    return action, hits, misses, Path(path)


def rewrite(path: Path, old: str, new: str) -> None:
    """Change a source so that neither its size nor its time says so."""
    before, text = path.stat(), path.read_text()
    assert text.count(old) == 1
    assert len(old) == len(new)
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_change_of_a_called_kernel_in_another_file_is_compiled_and_the_same_sources_are_not(tree: Path) -> None:
    assert drawn(started(tree))[:3] == (1, 0, 1)
    moved = tree.rename(tree.with_name("moved"))
    assert drawn(started(moved))[:3] == (1, 1, 0)
    called = moved / "amdp" / "kernels" / "paths.py"
    rewrite(called, "target = uniform * cumulative", "target = 0.99999 * cumulative")
    assert drawn(started(moved))[:3] == (2, 0, 1)


def test_processes_that_compile_at_the_same_time_leave_the_work_of_each_other(tree: Path) -> None:
    both = [started(tree, dtype) for dtype in ("int64", "int32")]
    assert [drawn(process)[0] for process in both] == [1, 1]
    assert drawn(started(tree, "int64", "int32"))[:3] == (1, 2, 0)


def test_the_folders_of_other_sources_do_not_pile_up(tree: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache"
    for age in range(2 * FOLDERS_KEPT):
        old = place / f"amdp-kernels-{age}"
        old.mkdir(parents=True)
        os.utime(old, (1e9 - age, 1e9 - age))
    (place / "amdp_of_someone_else").mkdir()
    path = drawn(started(tree, NUMBA_CACHE_DIR=str(place)))[3]
    assert path.parent == place
    latest = {f"amdp-kernels-{age}" for age in range(FOLDERS_KEPT - 1)}
    assert {found.name for found in place.iterdir()} == latest | {path.name, "amdp_of_someone_else"}


def test_where_the_tree_cannot_be_written_the_cache_of_the_user_serves(tree: Path, tmp_path: Path) -> None:
    (tree / "amdp" / "kernels" / "__pycache__").touch()  # no folder, and none can be made
    home = {"XDG_CACHE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home")}
    path = drawn(started(tree, **home))[3]
    assert path.is_relative_to(tmp_path / "home")
    assert list(path.glob("*draw*.nbc"))


def test_a_constant_in_a_call_is_a_number_of_its_type() -> None:
    """Numba by itself compiles a kernel for `f(x, 0)`, for `f(x, 1)` and for `f(x, n)`."""
    called, flags, numbers = (
        kernels.trials.shared_batch,
        types.Array(types.bool_, 1, "C"),
        types.Array(types.int64, 1, "C"),
    )
    for number in (types.literal(0), types.literal(1), types.int64):
        called.get_call_template((flags, numbers, number, numbers), {})
    assert called.signatures == [(flags, numbers, types.int64, numbers)]


def test_no_number_comes_into_machine_code_from_outside_the_package() -> None:
    """The digest covers `amdp.kernels`: what kernels import from elsewhere in amdp are types."""
    outside = {
        name.name
        for path in (PACKAGE / "kernels").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "amdp"
        if not str(node.module).startswith("amdp.kernels")
        for name in node.names
    }
    assert outside <= {"Actions", "Bools", "Floats"}
