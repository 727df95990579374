"""All that decides the result of a run, and nothing else: two runs with the same settings are the same run."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, Self

from amdp import own_code
from amdp.arrays import require_positive, require_whole
from amdp.errors import InvalidInput
from amdp.game.games import MOST_ROUNDS, OWN, require_feedback
from amdp.text import quoted

FORMAT = 2  # of what is hashed: a change makes all runs new ones; 1 had multipliers that scaled more than the rate
CHECKPOINTS = 50  # about so many, evenly spaced in the logarithm


@dataclass(frozen=True)
class Named:
    """A short name of the registry, `module:attribute` or the name of a file, with settings by keyword."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    folder: str = field(default="", compare=False, repr=False)  # where the name of a file starts; it decides nothing
    source: str | None = None  # of one's own code, `module:attribute`: the digest of its file

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", _plain(self.name, self.settings))

    @property
    def file(self) -> str:
        """Where the file of that name is."""
        return str(Path(self.folder, self.name))

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}({options})" if options else self.name

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The settings in what `plain` made of them."""
        return cls(content["name"], dict(content["settings"]), source=content.get("source"))

    @classmethod
    def by_name(cls, name: str, settings: Mapping[str, Any] | None = None) -> Self:
        """A name with settings; of one's own code, the digest of the source that is there now."""
        return cls(name, settings or {}, source=own_code.digest(name))


@dataclass(frozen=True)
class GameSettings:
    """An arena, an adversary, and when and how the losses are told: either `episodes` or `steps` are played."""

    instance: Named
    losses: Named = field(default_factory=lambda: Named("bernoulli"))
    episodes: int | None = None  # rounds that start anew
    steps: int | None = None  # of one stream of steps
    delay: str = "none"
    feedback: str | None = None  # "bandit", "full" or "aggregate"; None: what each learner understands
    unknown: bool = False  # the learner is not told the transitions
    radius: str = OWN  # of the confidence sets of unknown transitions
    radius_scale: float = 1.0
    comparator: Named | None = None  # the oracle that finds the best policy in hindsight; None: an exact one

    def __post_init__(self) -> None:
        if (self.episodes is None) == (self.steps is None):
            raise InvalidInput("give either episodes or steps: rounds that start anew, or one stream of steps")
        name, value = ("steps", self.steps) if self.episodes is None else ("episodes", self.episodes)
        require_whole(name, value, 1, MOST_ROUNDS)
        require_feedback(self.feedback)
        require_positive("radius_scale", self.radius_scale)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The settings in what `plain` made of them."""
        return cls(**_read_named(content, ("instance", "losses", "comparator")))

    @property
    def length(self) -> int:
        """The number of rounds that losses are given for: episodes, or steps of a stream."""
        return self.episodes or self.steps or 0


@dataclass(frozen=True)
class LearnerSettings:
    """A recipe, the oracle or projection that it works with, and what is set by hand."""

    name: str
    oracle: Named | None = None  # None: `dp` in episodes, `auto` in a stream of steps
    projection: Named | None = None  # None: `newton`
    multiplier: float = 1.0  # scales the rate that theory gives
    settings: Mapping[str, Any] = field(default_factory=dict)  # keywords of the recipe
    source: str | None = None  # of one's own code, `module:attribute`: the digest of its file

    def __post_init__(self) -> None:
        require_positive("multiplier", self.multiplier)
        object.__setattr__(self, "settings", _plain(self.name, self.settings))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The settings in what `plain` made of them."""
        return cls(**_read_named(content, ("oracle", "projection")))


@dataclass(frozen=True)
class RunSettings:
    """One learner in one game with one seed."""

    game: GameSettings
    learner: LearnerSettings
    seed: int
    checkpoints: int = CHECKPOINTS
    folder: str = field(default="", compare=False, repr=False)  # where one's own code is; it decides nothing

    def __post_init__(self) -> None:
        require_whole("seed", self.seed, 0, MOST_ROUNDS)
        require_whole("checkpoints", self.checkpoints, 2, MOST_ROUNDS)

    @cached_property
    def id(self) -> str:
        """A hash of everything that decides the result; 1 and 1.0 are the same number."""
        return sha256(canonical(_whole_numbers({"format": FORMAT, **self.to_json()}))).hexdigest()[:32]

    @property
    def repeatable(self) -> bool:
        """Whether nothing in it is cut off by the clock."""
        parts = (self.game.comparator, self.learner.oracle, self.learner.projection)
        return not any(part and "seconds" in part.settings for part in parts)

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists, numbers and texts."""
        return plain(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The settings in what `to_json` made of them."""
        game, learner = GameSettings.from_json(content["game"]), LearnerSettings.from_json(content["learner"])
        return cls(game, learner, content["seed"], content["checkpoints"])


def plain(settings: GameSettings | LearnerSettings | RunSettings) -> dict[str, Any]:
    """Plain dictionaries, lists, numbers and texts of all that decides a result."""
    return asdict(settings, dict_factory=_deciding)


def _deciding(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """What decides a result: no folder; a source only where there is one, so that other runs keep their ids."""
    return {key: value for key, value in items if key != "folder" and (key, value) != ("source", None)}


def identity(settings: GameSettings | LearnerSettings) -> bytes:
    """What is the same for equal settings, 1 and 1.0 being the same number."""
    return canonical(_whole_numbers(plain(settings)))


def _read_named(content: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {**content, **{key: content[key] and Named.from_json(content[key]) for key in keys}}


def canonical(content: Any) -> bytes:
    """JSON that is the same for equal contents."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _whole_numbers(content: Any) -> Any:
    """The same with whole numbers where they are written as fractions."""
    if isinstance(content, dict):
        return {key: _whole_numbers(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_whole_numbers(value) for value in content]
    return int(content) if isinstance(content, float) and content.is_integer() else content


def _plain(name: str, content: Any) -> Any:
    """The same in dictionaries, lists, texts, truth values and finite numbers; anything else is refused."""
    if isinstance(content, Mapping):
        return {str(key): _plain(f"{name}: {key}", value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(name, value) for value in content]
    if not isinstance(content, str | bool) and not _is_finite(content):
        rule = "it must be a text, a truth value, a finite number, or a list of them"
        raise InvalidInput(f"{quoted(content)}; {rule}", name)
    return content


def _is_finite(content: Any) -> bool:
    """Whether it is a number that has a float: 1 and 1.0 are the same setting."""
    try:
        return isinstance(content, int | float) and isfinite(content)
    except OverflowError:
        return False
