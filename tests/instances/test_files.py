import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

from amdp.errors import AmdpError, InvalidInput, SpecError
from amdp.instances import Instance, build, from_gymnasium, load, random_dense, random_sparse, save, standard
from amdp.model.transitions import Kernel, SparseKernel

SUFFIXES = (".npz", ".json")


def assert_same(one: Instance, other: Instance) -> None:
    assert type(one.kernel) is type(other.kernel)
    assert (one.name, one.initial, one.scale) == (other.name, other.initial, other.scale)
    assert one.kernel.is_homogeneous == other.kernel.is_homogeneous
    np.testing.assert_array_equal(one.kernel.dense().p, other.kernel.dense().p)
    np.testing.assert_array_equal(one.costs, other.costs)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", standard())
def test_a_world_comes_back_as_it_was_saved(tmp_path: Path, name: str, suffix: str) -> None:
    original = build(name)
    save(tmp_path / f"world{suffix}", original)
    assert_same(load(tmp_path / f"world{suffix}"), original)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_scaled_world_with_another_start_comes_back(tmp_path: Path, suffix: str) -> None:
    original = from_gymnasium("CliffWalking-v1", 6)
    save(tmp_path / f"cliff{suffix}", original)
    assert_same(load(tmp_path / f"cliff{suffix}"), original)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_sparse_matrices_of_each_step_come_back(tmp_path: Path, suffix: str) -> None:
    dense = random_dense(3, 4, 2, np.random.default_rng(1))
    thinned = np.where(dense.kernel.dense().p > 0.3, dense.kernel.dense().p, 0.0) + 1e-3
    matrices = [scipy.sparse.csr_array((p / p.sum(axis=2, keepdims=True)).reshape(8, 4)) for p in thinned]
    original = Instance("thin", SparseKernel(matrices), dense.costs)
    save(tmp_path / f"thin{suffix}", original)
    assert_same(load(tmp_path / f"thin{suffix}"), original)


def test_homogeneous_kernels_are_written_once(tmp_path: Path) -> None:
    save(tmp_path / "river.npz", build("river-swim"))
    with np.load(tmp_path / "river.npz") as archive:
        assert archive["p"].shape == (6, 2, 6)


def test_ten_thousand_states_are_never_written_out(tmp_path: Path) -> None:
    file = tmp_path / "large.npz"
    original = random_sparse(3, 10_000, 4, np.random.default_rng(2))
    save(file, original)
    assert file.stat().st_size < 5_000_000
    again = load(file)
    assert isinstance(again.kernel, SparseKernel)
    assert (again.kernel.matrix(0) != original.kernel.matrix(0)).nnz == 0


def test_start_name_and_scale_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "tiny.json").write_text('{"p": [[[1]]], "costs": [[[0.5]], [[0.25]]]}')
    instance = load(tmp_path / "tiny.json")
    assert (instance.name, instance.initial, instance.shape) == ("tiny", 0, (2, 1, 1))
    assert isinstance(instance.kernel, Kernel)


SOUND: dict[str, Any] = {"p": [[[0.5, 0.5]], [[0.0, 1.0]]], "costs": [[[1.0], [0.0]], [[1.0], [0.0]]], "initial": 0}
ROWS: dict[str, Any] = {"data": [0.5, 0.5, 1.0], "indices": [0, 1, 1], "indptr": [0, 2, 3], "costs": SOUND["costs"]}


def without(fields: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}


def test_the_tables_to_be_broken_below_are_sound(tmp_path: Path) -> None:
    for i, fields in enumerate((SOUND, ROWS)):
        (tmp_path / f"{i}.json").write_text(json.dumps(fields))
        np.testing.assert_array_equal(load(tmp_path / f"{i}.json").kernel.dense().p[0], SOUND["p"])


BROKEN: list[tuple[dict[str, Any], type[AmdpError], str]] = [
    (without(SOUND, "costs"), SpecError, "costs: is missing"),
    (without(SOUND, "p"), SpecError, "p: is missing; a world needs costs, and p or data, indices, indptr"),
    (without(ROWS, "indptr"), SpecError, "indptr: is missing"),
    (SOUND | {"gamma": 0.9}, SpecError, "gamma: unknown key; known are costs, p, data, indices, indptr, initial"),
    (SOUND | ROWS, SpecError, "p: given together with data, indices, indptr; the kernel must be given once"),
    (SOUND | {"p": [[[0.5, 0.6]], [[0.0, 1.0]]]}, InvalidInput, r"p\[h=0, s=0, a=0\] sums to 1.1"),
    (SOUND | {"p": [[[0.5, np.nan]], [[0.0, 1.0]]]}, InvalidInput, r"p\[h=0, s=0, a=0, y=1\] = nan"),
    (SOUND | {"p": [[0.5, 0.5]]}, InvalidInput, r"p has shape \(1, 2\); expected axes \[h, s, a, y\] or \[s, a, y\]"),
    (SOUND | {"p": [[[0.0, 0.0]], [[0.0, 1.0]]]}, InvalidInput, r"p\[h=0, s=0, a=0\] is all zero, but state 0"),
    (SOUND | {"p": [[["0.5", "0.5"]], [["0", "1"]]]}, InvalidInput, "p is not an array of numbers, but of <U3"),
    (SOUND | {"costs": [[[1.0], [np.nan]]]}, InvalidInput, r"costs\[h=0, s=1, a=0\] = nan; it must be finite"),
    (SOUND | {"costs": [[[np.inf], [0.0]]]}, InvalidInput, r"costs\[h=0, s=0, a=0\] = inf; it must be finite"),
    (SOUND | {"costs": [[1.0], [0.0]]}, InvalidInput, r"costs has shape \(2, 1\); expected axes \[h, s, a\]"),
    (SOUND | {"costs": [[[1.0]]]}, InvalidInput, r"costs has shape \(1, 1, 1\); the kernel asks for \(1, 2, 1\)"),
    (SOUND | {"initial": 2}, InvalidInput, "initial = 2; it must be between 0 and 1"),
    (SOUND | {"initial": 0.5}, InvalidInput, "initial = 0.5; it must be a whole number"),
    (SOUND | {"name": 3}, InvalidInput, "name = 3; it must be a text"),
    (SOUND | {"scale": [1.0]}, InvalidInput, r"scale has 1 entries; expected \[offset, unit\]"),
    (SOUND | {"scale": [np.nan, 1.0]}, InvalidInput, r"scale\[i=0\] = nan"),
    (ROWS | {"indices": [0, 1, 2]}, InvalidInput, "indices runs from 0 to 2; states are 0 to 1"),
    (ROWS | {"indices": [0, 1]}, InvalidInput, r"indices has shape \(2,\); data has \(3,\)"),
    (ROWS | {"indices": [0.0, 1.0, 1.0]}, InvalidInput, "indices must hold whole numbers"),
    (ROWS | {"indptr": [0, 2]}, InvalidInput, r"indptr has shape \(2,\); expected \(3,\) or \(2, 3\)"),
    (ROWS | {"indptr": [0, 3, 2]}, InvalidInput, "indptr must not decrease"),
    (
        ROWS | {"indptr": [0, 2, 9]},
        InvalidInput,
        "indptr must not decrease along a step, and must stay between 0 and 3",
    ),
    (ROWS | {"data": [0.5, 0.4, 1.0]}, InvalidInput, r"matrices\[0\]\[s=0, a=0\] sums to 0.9"),
    (ROWS | {"data": [0.5, np.nan, 1.0]}, InvalidInput, r"matrices\[0\]\[s=0, a=0, y=1\] = nan"),
]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("fields", "error", "message"), BROKEN)
def test_broken_fields_are_refused_with_file_and_key(
    tmp_path: Path, fields: dict[str, Any], error: type[AmdpError], message: str, suffix: str
) -> None:
    file = tmp_path / f"world{suffix}"
    if suffix == ".npz":
        np.savez(file, **fields)
    else:
        file.write_text(json.dumps(fields))
    with pytest.raises(error, match=f"world{suffix}: {message}"):
        load(file)


JSON_TROUBLE = [
    ("{", "is not JSON: "),
    ("[1, 2]", "holds a list; expected an object with the keys costs, p"),
    ('{"p": 1, "p": 2}', "is not JSON: the key 'p' appears twice"),
    ("[" * 100_000, "is not JSON: "),
]


@pytest.mark.parametrize(("text", "message"), JSON_TROUBLE)
def test_what_is_not_a_json_world_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "world.json").write_text(text)
    with pytest.raises(SpecError, match=f"world.json: {message}"):
        load(tmp_path / "world.json")


def test_uneven_lists_are_refused(tmp_path: Path) -> None:
    (tmp_path / "world.json").write_text(json.dumps(SOUND | {"p": [[[0.5, 0.5]], [[1.0]]]}))
    with pytest.raises(InvalidInput, match=r"world.json: p is not an array: its lists differ in length"):
        load(tmp_path / "world.json")


class Trap:
    """Unpickled, it would leave a file behind."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.file,)


def test_a_pickle_inside_an_archive_is_refused_and_not_run(tmp_path: Path) -> None:
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    np.savez(tmp_path / "world.npz", p=trap, costs=SOUND["costs"])
    with pytest.raises(SpecError, match=r"world.npz: p: holds Python objects \(a pickle\), which are never loaded"):
        load(tmp_path / "world.npz")
    assert not (tmp_path / "sprung").exists()


def test_a_bare_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "world.npz").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(SpecError, match=r"world.npz: cannot be read: File is not a zip file"):
        load(tmp_path / "world.npz")
    assert not (tmp_path / "sprung").exists()


def test_a_damaged_archive_raises_nothing_but_our_errors(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    file = tmp_path / "world.npz"
    np.savez_compressed(file, **SOUND)
    sound = file.read_bytes()
    refused = 0
    for _ in range(300):
        damaged = bytearray(sound)
        damaged[rng.integers(len(damaged))] ^= rng.integers(1, 256)
        file.write_bytes(damaged)
        try:
            load(file)
        except AmdpError:
            refused += 1
    assert refused > 200


def _single_array(file: Path) -> None:
    with file.open("wb") as stream:
        np.save(stream, np.ones(3))


def _cut_short(file: Path) -> None:
    np.savez(file, **SOUND)
    file.write_bytes(file.read_bytes()[:200])


def _one_byte_changed(file: Path) -> None:
    np.savez(file, **SOUND)
    content = bytearray(file.read_bytes())
    content[content.index(np.float64(0.5).tobytes()) + 3] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda file: None, "cannot be read: .*No such file"),
        (lambda file: file.write_bytes(b""), "cannot be read"),
        (lambda file: file.mkdir(), "cannot be read"),
        (_cut_short, "cannot be read"),
        (_one_byte_changed, "p: cannot be read: Bad CRC-32"),
        (_single_array, "holds a single array; save named arrays with numpy.savez"),
    ],
)
def test_unreadable_archives_are_refused(tmp_path: Path, write: Callable[[Path], None], message: str) -> None:
    write(tmp_path / "world.npz")
    with pytest.raises(SpecError, match=f"world.npz: {message}"):
        load(tmp_path / "world.npz")


def test_missing_json_and_unknown_suffix_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"world.json: cannot be read: .*No such file"):
        load(tmp_path / "world.json")
    with pytest.raises(SpecError, match=r"world.csv: unknown suffix '.csv'; known are .npz, .json"):
        load(tmp_path / "world.csv")
    with pytest.raises(SpecError, match=r"world: unknown suffix ''; known are .npz, .json"):
        save(tmp_path / "world", build("forest"))
