"""Names such as `my_module:Uniform`: what a file of one's own defines, without a package around it.

`my_module.py` is looked for in the folder of the spec that names it; on the command line and in Python, in the current
folder. Code is told from other code by a digest of the file, so the file has to stand alone: it may import installed
packages, and no other file beside it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from amdp.errors import InvalidInput
from amdp.regular_files import read_bytes
from amdp.text import suggestion

GYM = "gym"  # `gym:FrozenLake-v1` is an environment of gymnasium: see `amdp.instances.gymnasium_tables`
LARGEST = 2**24  # bytes; more is no source code
DIGITS = 16  # of a digest

_folder: ContextVar[str] = ContextVar("folder", default="")


def is_own(name: str) -> bool:
    """Whether a name has the form `module:attribute`; paths of files and `gym:` names are not meant."""
    module, colon, _ = name.partition(":")
    return bool(colon) and module != GYM and not set(name) & set("/\\")


@contextmanager
def looking_in(folder: str) -> Iterator[None]:
    """Names are looked for in this folder; in the current one if it is empty."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def find(name: str) -> Any:
    """The function or class that a name such as `my_module:Uniform` stands for."""
    attribute = name.partition(":")[2]
    module = _loaded(name)
    if attribute not in vars(module):
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        near = suggestion(attribute, own)
        raise InvalidInput(f"{name!r}: no {attribute!r} in {module.__file__}; {near}it defines: {', '.join(own)}")
    found = vars(module)[attribute]
    if not callable(found):
        raise InvalidInput(f"{name!r} is of type {type(found).__name__}; it must be a function or a class")
    return found


def digest(name: str) -> str | None:
    """What tells the source of a name from any other; None for names that are not one's own."""
    return _digest(_source(name)[1]) if is_own(name) else None


def require_unchanged(name: str, expected: str | None) -> None:
    """Refuse a name whose source is not the one that was expected, if one was; it is not run."""
    if expected is not None and digest(name) != expected:
        raise InvalidInput(f"the source of {name!r} has changed since this run was planned")


def _loaded(name: str) -> ModuleType:
    """The module of a name, run once for each file and content, and kept under a name that no other module has."""
    file, source = _source(name)
    unique = f"{file.stem}_{_digest(str(file).encode() + source)}"
    if unique in sys.modules:
        return sys.modules[unique]
    spec = spec_from_file_location(unique, file)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[unique] = module  # dataclasses and pickles look there
    try:
        exec(compile(source, str(file), "exec"), vars(module))
    except Exception as problem:
        del sys.modules[unique]
        alone = "; it may import installed packages, and no file beside it" if isinstance(problem, ImportError) else ""
        reason = f"{type(problem).__name__}: {problem}{alone}"
        raise InvalidInput(f"{name!r}: {file} cannot be imported: {reason}") from problem
    return module


def _source(name: str) -> tuple[Path, bytes]:
    module, _, attribute = name.partition(":")
    if not module.isidentifier() or not attribute.isidentifier():
        raise InvalidInput(f"{name!r}; code of your own is named module:attribute, such as my_module:Uniform")
    file = Path(_folder.get(), f"{module}.py").resolve()
    try:
        return file, read_bytes(file, LARGEST)
    except FileNotFoundError as problem:
        raise InvalidInput(
            f"{name!r}: no file {file}; it is looked for beside the spec, or in this folder"
        ) from problem
    except OSError as problem:
        raise InvalidInput(f"{name!r}: {file} cannot be read: {problem}") from problem


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:DIGITS]
