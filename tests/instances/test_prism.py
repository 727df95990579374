from pathlib import Path

import numpy as np
import pytest

from amdp.errors import InvalidInput
from amdp.instances import random_sparse, read_prism
from amdp.model.transitions import SparseKernel
from amdp.oracles.base import plan
from amdp.oracles.markov.dynamic_programming import BackwardInduction

ERRAND = """\
# an errand in the rain
3 4 6

0 0 1 0.25 walk
0 0 0 3/4 walk
0 1 1 0.5 ride  # dearer
0 1 2 0.5 ride
1 0 2 1
2 0 2 1 stay
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "errand.tra"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_numbers_of_the_file_are_the_numbers_of_the_kernel(tmp_path: Path) -> None:
    instance = read_prism(written(tmp_path, ERRAND), 5)
    assert isinstance(instance.kernel, SparseKernel)
    assert instance.name == "errand"
    expected = [
        [[0.75, 0.25, 0], [0, 0.5, 0.5]],
        [[0, 0, 1], [0, 0, 1]],  # one choice only: repeated
        [[0, 0, 1], [0, 0, 1]],
    ]
    np.testing.assert_array_equal(instance.kernel.dense().p[0], expected)


def test_without_costs_the_time_to_absorption_is_counted(tmp_path: Path) -> None:
    instance = read_prism(written(tmp_path, ERRAND), 5)
    np.testing.assert_array_equal(instance.costs[0], [[1, 1], [1, 1], [0, 0]])
    assert plan(BackwardInduction(), instance.domain, instance.costs).objective == 1.5


def test_own_costs_may_be_given_for_a_step_or_for_all(tmp_path: Path) -> None:
    file, costs = written(tmp_path, ERRAND), np.arange(6).reshape(3, 2) / 6
    repeated = read_prism(file, 4, initial=1, costs=costs)
    assert repeated.initial == 1
    np.testing.assert_array_equal(repeated.costs, read_prism(file, 4, costs=np.stack([costs] * 4)).costs)


def test_a_random_world_survives_the_round_trip(tmp_path: Path) -> None:
    original = random_sparse(3, 30, 3, np.random.default_rng(5))
    matrix = original.kernel.matrix(0).tocoo()
    lines = [f"{row // 3} {row % 3} {y} {float(p)!r}" for row, y, p in zip(*matrix.coords, matrix.data, strict=True)]
    text = "\n".join([f"30 90 {len(lines)}", *reversed(lines)])
    read = read_prism(written(tmp_path, text), 3)
    np.testing.assert_array_equal(read.kernel.dense().p, original.kernel.dense().p)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: expected a header of three counts: `states choices transitions`; found ''"),
        ("# only a comment\n", "expected a header of three counts"),
        ("2 3\n0 1 0.5\n", r"line 1: expected a header of three counts.*; found '2 3'"),
        ("mdp\n2 2 2\n", r"line 1: expected a header .*; found 'mdp'"),
        ("1 1 x\n", "expected a header"),
        ("6 3 5\n", "line 1: expected at least one choice a state .* a deadlock needs a loop; found '6 3 5'"),
        ("# c\n1 1 1\n0 0 0\n", r"line 3: expected `state choice next-state chance \[action\]`; found '0 0 0'"),
        ("1 1 1\n0 0 0 1 a b\n", "line 2: expected `state choice"),
        ("1 1 1\n0 -1 0 1\n", "line 2: expected `state choice"),
        ("1 1 1\n0 0 1 1\n", "line 2: expected states between 0 and 0, as the header says; found '0 0 1 1'"),
        ("1 1 1\n0 0 0 half\n", "line 2: expected a chance between 0 and 1, not 'half'"),
        ("1 1 1\n0 0 0 nan\n", "line 2: expected a chance between 0 and 1, not 'nan'"),
        ("1 1 1\n0 0 0 1/0\n", "line 2: expected a chance between 0 and 1, not '1/0'"),
        ("1 1 1\n0 0 0 1.5\n", "line 2: expected a chance between 0 and 1, not '1.5'"),
        ("1 1 1\n0 0 0 [0.2,0.4]\n", r"line 2: expected a chance between 0 and 1, not '\[0.2,0.4\]'"),
        ("1 1 2\n0 0 0 1\n", "the header announces 2 transitions, the file has 1"),
        ("1 2 2\n0 0 0 0.5\n0 0 0 0.5\n", "the header announces 2 choices, the file has 1"),
        ("1 1 1\n0 1 0 1\n", r"state 0 has choices \[1\]; they must count from 0"),
        ("2 2 2\n0 0 1 1\n0 1 1 1\n", "state 1 has no choice; a deadlock needs a loop: `1 0 1 1`"),
        ("2 3 3\n0 0 1 1\n0 1 1 0.9\n1 0 1 1\n", "choice 1 of state 0 sums to 0.9; it must sum to 1"),
    ],
)
def test_malformed_files_are_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"errand.tra.*{message}"):
        read_prism(written(tmp_path, text), 3)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere.tra cannot be read"):
        read_prism(tmp_path / "nowhere.tra", 3)
    binary = tmp_path / "binary.tra"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match=r"binary.tra cannot be read"):
        read_prism(binary, 3)


def test_bad_arguments_are_refused_with_the_rule(tmp_path: Path) -> None:
    file = written(tmp_path, ERRAND)
    with pytest.raises(InvalidInput, match="n_steps = 0"):
        read_prism(file, 0)
    with pytest.raises(InvalidInput, match="initial = 3; it must be between 0 and 2"):
        read_prism(file, 2, initial=3)
    with pytest.raises(InvalidInput, match=r"costs has shape \(2, 3, 3\); the kernel asks for \(2, 3, 2\)"):
        read_prism(file, 2, costs=np.zeros((3, 3)))
