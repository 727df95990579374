"""The spec of a folder of results as it was understood: to report on the runs needs no file that the spec names."""

import json
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from amdp import options
from amdp.algorithms.named import tunes_itself
from amdp.errors import InvalidInput
from amdp.experiments.pairing import Skipped
from amdp.experiments.settings import GameSettings, LearnerSettings, canonical, plain
from amdp.experiments.spec import LARGEST_SPEC, Spec
from amdp.experiments.tuning import Tune
from amdp.regular_files import read_bytes, read_text

FORMAT = 1
FILE = "plan.json"


def dump(spec: Spec) -> bytes:
    """The content of FOLDER/plan.json."""
    return canonical(
        {
            "format": FORMAT,
            "spec": _checksum(spec.titled),
            "folder": spec.folder,
            "title": spec.title,
            "seeds": spec.seeds,
            "checkpoints": spec.checkpoints,
            # Pairs keep an order that the keys of JSON would lose.
            "games": [(label, plain(game)) for label, game in spec.games.items()],
            "learners": [(label, plain(learner)) for label, learner in spec.learners.items()],
            "pairs": spec.pairs,
            "tune": spec.tune and spec.tune.to_json(),
            "skipped": spec.skipped,
            "self_tuned": spec.self_tuned,
            "baselines": spec.baselines,
        }
    )


def load(folder: str | PathLike[str]) -> Spec:
    """The spec of a folder of results; without a manifest that fits its spec.toml, that is read anew."""
    file = Path(folder) / "spec.toml"
    if not file.exists():
        raise InvalidInput(f"{folder} has no spec.toml; give a folder that `amdp compare` wrote")
    text = _text(file)
    content = _content(file, text)
    return (_spec_of(content, text) if content else None) or Spec.load(file)


def origin(file: str | PathLike[str]) -> str | None:
    """The folder in which the names of files in a stored spec start; None for a spec that is not a stored one."""
    folder = (_content(Path(file), _text(Path(file))) or {}).get("folder")
    return folder if isinstance(folder, str) and folder else None


def _content(file: Path, text: str) -> dict[str, Any] | None:
    """The manifest beside a spec, if it was made of the same text."""
    try:
        content = json.loads(read_bytes(file.with_name(FILE)))
    except (OSError, ValueError, RecursionError):
        return None
    fits = isinstance(content, dict) and content.get("format") == FORMAT and content.get("spec") == _checksum(text)
    return content if fits else None


def _spec_of(content: dict[str, Any], text: str) -> Spec | None:
    """The spec of a manifest; None if somebody else wrote it, with values of wrong types."""
    try:
        spec = _build(content, text)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    known = all(game in spec.games and learner in spec.learners for game, learner in spec.pairs)
    known = known and all(game in spec.games for game in spec.baselines)
    return spec if options.fits(Spec, spec) and known else None


def _build(content: dict[str, Any], text: str) -> Spec:
    tune, learners = content["tune"], {label: LearnerSettings.from_json(each) for label, each in content["learners"]}
    itself = content.get("self_tuned")
    if itself is None:  # written before the manifest said so
        itself = [label for label, learner in learners.items() if tunes_itself(learner.name, learner.settings)]
    return Spec(
        content["title"],
        text,
        tuple(content["seeds"]),
        content["checkpoints"],
        {label: GameSettings.from_json(game) for label, game in content["games"]},
        learners,
        tuple((game, learner) for game, learner in content["pairs"]),
        tune and Tune.from_json(tune, learners),
        tuple(Skipped(*pair) for pair in content["skipped"]),
        content["folder"],
        tuple(itself),
        tuple(content.get("baselines", ())),  # a plan of before there were any has none
    )


def _text(file: Path) -> str:
    """The text of a file; empty if it cannot be read: who loads it says why."""
    try:
        return read_text(file, LARGEST_SPEC)
    except (OSError, UnicodeDecodeError):
        return ""


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()
