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
from numba.core import config

import amdp
from amdp import kernels
from amdp.kernels import compiling
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
print(json.dumps([int(found[1, 0]), hits, misses]))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A copy of the sources in a folder of its own, without machine code."""
    root = tmp_path / "tree"
    shutil.copytree(PACKAGE, root / "amdp", ignore=shutil.ignore_patterns("__pycache__"))
    yield root
    shutil.rmtree(tmp_path)


def started(root: Path, *dtypes: str) -> "subprocess.Popen[str]":
    """A fresh interpreter that draws walks with the kernels of the tree, one for each type of integers."""
    here = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment = here | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", DRAW, *(dtypes or ["int64"])]
    return subprocess.Popen(command, env=environment, cwd=root, text=True, stdout=subprocess.PIPE)


def drawn(process: "subprocess.Popen[str]") -> list[int]:
    """The action, how often the kernel was found on disk and how often not."""
    out, _ = process.communicate()
    assert process.returncode == 0
    numbers: list[int] = json.loads(out)
    return numbers


def rewrite(path: Path, old: str, new: str) -> None:
    """Change a source so that neither its size nor its time says so."""
    before, text = path.stat(), path.read_text()
    assert text.count(old) == 1
    assert len(old) == len(new)
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_change_of_a_called_kernel_in_another_file_is_compiled_and_the_same_sources_are_not(tree: Path) -> None:
    """Nor does one of two processes that compile at the same time undo the work of the other."""
    both = [started(tree, dtype) for dtype in ("int64", "int32")]
    assert [drawn(process) for process in both] == [[1, 0, 1]] * 2
    moved = tree.rename(tree.with_name("moved"))
    assert drawn(started(moved, "int64", "int32")) == [1, 2, 0]
    called = moved / "amdp" / "kernels" / "paths.py"
    rewrite(called, "target = uniform * cumulative", "target = 0.99999 * cumulative")
    assert drawn(started(moved)) == [2, 0, 1]


def doubled(number: int) -> int:
    return 2 * number


def kept_at(environment: str) -> Path:
    """The folder of a kernel that is compiled now, with `NUMBA_CACHE_DIR` as given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "CACHE_DIR", environment)
        patch.setattr(compiling, "folder", compiling.folder.__wrapped__)
        kernel = compiling.entry()(doubled)
        assert kernel(2) == 4
        path = Path(kernel.stats.cache_path)
    assert list(path.glob("*doubled*.nbc"))
    return path


def test_the_folders_of_other_sources_do_not_pile_up(tmp_path: Path) -> None:
    place = tmp_path / "cache"
    for age in range(2 * FOLDERS_KEPT):
        old = place / f"amdp-kernels-{age}"
        old.mkdir(parents=True)
        os.utime(old, (1e9 - age, 1e9 - age))
    (place / "amdp_of_someone_else").mkdir()
    path = kept_at(str(place))
    assert path.parent == place
    latest = {f"amdp-kernels-{age}" for age in range(FOLDERS_KEPT - 1)}
    assert {found.name for found in place.iterdir()} == latest | {path.name, "amdp_of_someone_else"}


def test_where_the_tree_cannot_be_written_the_cache_of_the_user_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__pycache__").touch()  # no folder, and none can be made
    monkeypatch.setattr(compiling, "_HERE", tmp_path)
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    assert kept_at("").is_relative_to(tmp_path / "home")


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
