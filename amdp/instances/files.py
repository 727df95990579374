"""Worlds in files: `.npz` (numpy) or `.json`, with the same keys.

    costs    [h, s, a]                       required; its length is the number of steps
    p        [h, s, a, y] or [s, a, y]       the kernel, of each step or of all of them
    data, indices, indptr                    or the kernel by its non-zero entries, row `s * A + a` being
                                             `data[indptr[row]:indptr[row + 1]]`, with next states in `indices`;
                                             `indptr` is `[s*a + 1]` for all steps, or `[h, s*a + 1]`, into one `data`
    initial  a state                         0 if absent
    start    [s]                             or the chance of each state to be the first: see `with_start`
    usage    [i, h, s, a] or [i, s, a]       what each budget is used for, if there are budgets: see `Budgets`
    limits   [i]                             how much of each may be used in expectation
    budgets  [i] texts                       their names; "budget 0", ... if absent
    name     a text                          the file's name if absent
    scale    [offset, unit]                  see `Scale`; [0, 1] if absent

Pickles are never loaded.
"""

import json
from collections import Counter
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp import archives
from amdp.arrays import Floats, floats, require_finite, require_index
from amdp.errors import InvalidInput, SpecError
from amdp.instances.base import Instance, Scale
from amdp.instances.entrance import EnteredInstance, with_start
from amdp.model.budgets import Budgets
from amdp.model.transitions import Kernel, SingleKernel, SparseKernel
from amdp.regular_files import read_text
from amdp.text import as_name, quoted

SPARSE = ("data", "indices", "indptr")
BUDGETS = ("usage", "limits", "budgets")
KEYS = ("costs", "p", *SPARSE, "initial", "start", "name", "scale", *BUDGETS)
_NEEDED = "a world needs costs, and p or data, indices, indptr"
Fields = dict[str, Any]


def load(path: str | PathLike[str]) -> Instance:
    """The world in a `.npz` or `.json` file."""
    file = Path(path)
    read, _ = _format(file)
    fields = read(file)
    try:
        return _instance(file, fields)
    except InvalidInput as problem:
        raise InvalidInput(f"{file}: {problem}") from problem


def save(path: str | PathLike[str], instance: Instance) -> None:
    """Write a world to a `.npz` or `.json` file; sparse kernels stay sparse, homogeneous ones are written once."""
    file = Path(path)
    _, write = _format(file)
    begin: Fields = {"initial": int(instance.initial)}
    if isinstance(instance, EnteredInstance):
        begin, instance = {"start": instance.start}, instance.inside
    scale = [instance.scale.offset, instance.scale.unit]
    fields = {"name": instance.name, "scale": scale, "costs": instance.costs}
    write(file, fields | begin | _kernel_fields(instance.kernel) | _budget_fields(instance.budgets))


def _format(file: Path) -> tuple[Callable[[Path], Fields], Callable[[Path, Fields], None]]:
    formats = {".npz": (_read_npz, lambda file, fields: np.savez(file, **fields)), ".json": (_read_json, _write_json)}
    if file.suffix not in formats:
        raise SpecError(f"unknown suffix {file.suffix!r}; known are {', '.join(formats)}", str(file))
    return formats[file.suffix]


def _read_npz(file: Path) -> Fields:
    def known(names: list[str]) -> list[str]:
        _require_known(file, names)
        return names

    return archives.read(file, known)


def _read_json(file: Path) -> Fields:
    try:
        fields = json.loads(read_text(file), object_pairs_hook=_without_repetition)
    except OSError as problem:
        raise SpecError(f"cannot be read: {problem}", str(file)) from problem
    except (ValueError, RecursionError) as problem:
        raise SpecError(f"is not JSON: {problem}", str(file)) from problem
    if not isinstance(fields, dict):
        raise SpecError(
            f"holds a {type(fields).__name__}; expected an object with the keys {', '.join(KEYS)}", str(file)
        )
    _require_known(file, list(fields))
    return fields


def _write_json(file: Path, fields: Fields) -> None:
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in fields.items()}
    file.write_text(json.dumps(plain, allow_nan=False) + "\n", encoding="utf-8")


def _without_repetition(pairs: list[tuple[str, Any]]) -> Fields:
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise ValueError(f"the key {key!r} appears twice")
    return dict(pairs)


def _kernel_fields(kernel: SingleKernel) -> Fields:
    if isinstance(kernel, SparseKernel):
        starts, successors, chances = kernel.rows
        return {"data": chances, "indices": successors, "indptr": starts[0] if kernel.is_homogeneous else starts}
    p = kernel.dense().p
    return {"p": p[0] if kernel.is_homogeneous else p}


def _budget_fields(budgets: Budgets | None) -> Fields:
    if budgets is None:
        return {}
    return {"usage": budgets.usage, "limits": budgets.limits, "budgets": list(budgets.names)}


def _budgets(file: Path, fields: Fields) -> Budgets | None:
    given = [key for key in BUDGETS if key in fields]
    if not given:
        return None
    usage, limits = (_numbers(key, _required(file, fields, key)) for key in BUDGETS[:2])
    names = fields.get("budgets", [])
    return Budgets(usage, limits, tuple(names.tolist() if isinstance(names, np.ndarray) else names))


def _instance(file: Path, fields: Fields) -> Instance:
    costs = floats("costs", _numbers("costs", _required(file, fields, "costs")), "hsa")
    kernel = _kernel(file, fields, costs.shape)
    name = fields.get("name", as_name(file.stem))
    initial = fields.get("initial", 0)
    if type(initial) is not int:
        raise InvalidInput(f"initial = {quoted(initial)}; it must be a whole number")
    require_index("initial", initial, costs.shape[1])
    scale = _scale(fields.get("scale", [0.0, 1.0]))
    instance = Instance(name, kernel, costs, initial, scale, _budgets(file, fields))
    if "start" in fields:
        if "initial" in fields:
            raise SpecError("given together with initial; a world begins in one of both ways", f"{file}: start")
        instance = with_start(instance, _numbers("start", fields["start"]))
    instance.kernel.require_closed(instance.initial)
    return instance


def _kernel(file: Path, fields: Fields, shape: tuple[int, ...]) -> SingleKernel:
    sparse = [key for key in SPARSE if key in fields]
    if not sparse:
        p = _numbers("p", _required(file, fields, "p"))
        if p.ndim not in (3, 4):
            raise InvalidInput(f"p has shape {p.shape}; expected axes [h, s, a, y] or [s, a, y]")
        return Kernel.homogeneous(p, shape[0]) if p.ndim == 3 else Kernel(floats("p", p, "hsay"))
    if "p" in fields:
        raise SpecError(f"given together with {', '.join(sparse)}; the kernel must be given once", f"{file}: p")
    data = floats("data", _numbers("data", _required(file, fields, "data")), "k")
    indices, indptr = (_integers(key, _required(file, fields, key)) for key in SPARSE[1:])
    return _sparse_kernel(data, indices, indptr, shape)


def _sparse_kernel(
    data: Floats, indices: NDArray[np.int64], indptr: NDArray[np.int64], shape: tuple[int, ...]
) -> SparseKernel:
    steps, states, actions = shape
    if indices.shape != data.shape:
        raise InvalidInput(f"indices has shape {indices.shape}; data has {data.shape}, and they must agree")
    if indices.min() < 0 or indices.max() >= states:
        raise InvalidInput(f"indices runs from {indices.min()} to {indices.max()}; states are 0 to {states - 1}")
    rows = states * actions + 1
    if indptr.shape not in ((rows,), (steps, rows)):
        raise InvalidInput(f"indptr has shape {indptr.shape}; expected ({rows},) or ({steps}, {rows})")
    by_step = indptr.reshape(-1, rows)
    if by_step.min() < 0 or by_step.max() > len(data) or (np.diff(by_step) < 0).any():
        raise InvalidInput(f"indptr must not decrease along a step, and must stay between 0 and {len(data)}")
    parts = [slice(starts[0], starts[-1]) for starts in by_step]
    matrices = [
        scipy.sparse.csr_array((data[part], indices[part], starts - part.start), shape=(rows - 1, states))
        for part, starts in zip(parts, by_step, strict=True)
    ]
    return SparseKernel(matrices, steps)


def _scale(value: Any) -> Scale:
    numbers = floats("scale", _numbers("scale", value), "i")
    require_finite("scale", numbers, "i")
    if len(numbers) != 2:
        raise InvalidInput(f"scale has {len(numbers)} entries; expected [offset, unit]")
    return Scale(float(numbers[0]), float(numbers[1]))


def _numbers(key: str, value: Any) -> NDArray[Any]:
    # Checked before the conversion to float64, which would read the text "0.5" as a number.
    try:
        array = np.asarray(value)
    except ValueError as problem:
        raise InvalidInput(f"{key} is not an array: its lists differ in length") from problem
    if array.dtype.kind not in "fiu":
        raise InvalidInput(f"{key} is not an array of numbers, but of {array.dtype}")
    return array


def _integers(key: str, value: Any) -> NDArray[np.int64]:
    array = _numbers(key, value)
    if array.dtype.kind not in "iu" or not array.size:
        raise InvalidInput(f"{key} must hold whole numbers, at least one; found {array.size} of {array.dtype}")
    return array.astype(np.int64)


def _required(file: Path, fields: Fields, key: str) -> Any:
    if key not in fields:
        needed = "budgets need usage and limits" if key in BUDGETS else _NEEDED
        raise SpecError(f"is missing; {needed}", f"{file}: {key}")
    return fields[key]


def _require_known(file: Path, keys: list[str]) -> None:
    for key in keys:
        if key not in KEYS:
            raise SpecError(f"unknown key; known are {', '.join(KEYS)}", f"{file}: {key}")
