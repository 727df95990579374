"""A spec as it was understood, kept beside the runs: to report on them needs no file that the spec names."""

import json
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from amdp import options
from amdp.experiments.pairing import Skipped
from amdp.experiments.settings import GameSettings, LearnerSettings, canonical, plain
from amdp.experiments.spec import LARGEST_SPEC, Spec
from amdp.experiments.tuning import Tune
from amdp.regular_files import read_bytes, read_text

FORMAT = 1
FILE = "plan.json"


def written(spec: Spec) -> bytes:
    """The content of FOLDER/plan.json."""
    return canonical(
        {
            "format": FORMAT,
            "spec": _sum(spec.titled),
            "folder": spec.folder,
            "title": spec.title,
            "seeds": spec.seeds,
            "checkpoints": spec.checkpoints,
            # Pairs keep an order that the keys of JSON would lose.
            "games": [(label, plain(game)) for label, game in spec.games.items()],
            "learners": [(label, plain(learner)) for label, learner in spec.learners.items()],
            "pairs": spec.pairs,
            "tune": spec.tune and vars(spec.tune),
            "skipped": spec.skipped,
        }
    )


def recalled(folder: str | PathLike[str]) -> Spec:
    """The spec of a folder with runs; without a plan that fits its spec.toml, that is read anew."""
    file = Path(folder) / "spec.toml"
    text = _text(file)
    given = _plan_of(file, text)
    return (_read(given, text) if given else None) or Spec.load(file)


def origin(file: str | PathLike[str]) -> str | None:
    """The folder in which the names of files in a stored spec start; None for a spec that is not a stored one."""
    found = (_plan_of(Path(file), _text(Path(file))) or {}).get("folder")
    return found if isinstance(found, str) and found else None


def _plan_of(file: Path, text: str) -> dict[str, Any] | None:
    """What is written beside a spec, if it was made of the same text."""
    try:
        found = json.loads(read_bytes(file.with_name(FILE)))
    except (OSError, ValueError, RecursionError):
        return None
    fits = isinstance(found, dict) and found.get("format") == FORMAT and found.get("spec") == _sum(text)
    return found if fits else None


def _read(given: dict[str, Any], text: str) -> Spec | None:
    """The spec of a plan; None if somebody else wrote it, with values of wrong kinds."""
    try:
        made = _spec(given, text)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    known = all(game in made.games and learner in made.learners for game, learner in made.pairs)
    return made if options.fits(Spec, made) and known else None


def _spec(given: dict[str, Any], text: str) -> Spec:
    tune = given["tune"]
    return Spec(
        given["title"],
        text,
        tuple(given["seeds"]),
        given["checkpoints"],
        {label: GameSettings.from_json(game) for label, game in given["games"]},
        {label: LearnerSettings.from_json(learner) for label, learner in given["learners"]},
        tuple((game, learner) for game, learner in given["pairs"]),
        tune and Tune(tuple(tune["multipliers"]), tuple(tune["seeds"]), tune["rounds"]),
        tuple(Skipped(*one) for one in given["skipped"]),
        given["folder"],
    )


def _text(file: Path) -> str:
    """Empty, if it cannot be read: who loads it says why."""
    try:
        return read_text(file, LARGEST_SPEC)
    except (OSError, UnicodeDecodeError):
        return ""


def _sum(text: str) -> str:
    return sha256(text.encode()).hexdigest()
