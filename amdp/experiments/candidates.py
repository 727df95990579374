"""What tuning may try for a learner: lists of values of its settings, and all their combinations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any, Self

from amdp import options
from amdp.algorithms.named import recipe, tunes_itself
from amdp.experiments import reading
from amdp.experiments.settings import LearnerSettings

MULTIPLIER = "multiplier"  # scales the rate that theory gives; all other settings are keywords of the recipe
MOST_CANDIDATES = 10_000  # of one grid


@dataclass(frozen=True)
class Candidate:
    """A value for each setting of a grid; the multiplier scales the learner's own, other values replace its own."""

    values: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return ", ".join(f"{name} = {shown(value)}" for name, value in self.values)

    def __getitem__(self, name: str) -> Any:
        return dict(self.values)[name]

    @property
    def multiplier(self) -> float:
        """The factor of the rate that theory gives; 1 if the grid has none."""
        return float(dict(self.values).get(MULTIPLIER, 1.0))

    @property
    def keywords(self) -> dict[str, Any]:
        """The values of all other settings."""
        return {name: value for name, value in self.values if name != MULTIPLIER}

    def applied(self, learner: LearnerSettings) -> LearnerSettings:
        """The settings of a learner with the values of this candidate."""
        settings = {**learner.settings, **self.keywords}
        return replace(learner, multiplier=learner.multiplier * self.multiplier, settings=settings)


@dataclass(frozen=True)
class Axis:
    """A setting, and the values of it to try."""

    name: str
    values: tuple[Any, ...]
    path: str = field(default="", compare=False, repr=False)  # of the list in the spec, for messages

    @classmethod
    def read(cls, path: str, name: str, value: Any) -> Self:
        """A list of a grid: positive numbers for the multiplier, else different numbers, texts or truth values."""
        if name == MULTIPLIER:
            return cls(name, reading.positive_numbers(path, value), path)
        if not isinstance(value, list) or not value:
            raise reading.wrong(path, value, "it must be a list of values to try")
        reading.require_different(path, value)
        for i, item in enumerate(value):
            if not isinstance(item, bool | str) and not options.fits(float, item):
                raise reading.wrong(f"{path}[{i}]", item, "it must be a finite number, a text or a truth value")
        return cls(name, tuple(value), path)

    def is_edge(self, value: Any) -> bool:
        """Whether a value is the least or greatest of several numbers; texts and truth values have no order."""
        ordered = all(isinstance(each, int | float) and not isinstance(each, bool) for each in self.values)
        return ordered and len(self.values) > 1 and value in (min(self.values), max(self.values))


@dataclass(frozen=True)
class Grid:
    """All combinations of the values of some settings."""

    axes: tuple[Axis, ...]

    @classmethod
    def read(cls, path: str, value: Any) -> Self:
        """A table with a list for each setting."""
        if not isinstance(value, dict) or not value:
            raise reading.wrong(path, value, "it must be a table with lists of values, such as { multiplier = [1, 4] }")
        made = cls(tuple(Axis.read(reading.below(path, name), name, item) for name, item in value.items()))
        if len(made) > MOST_CANDIDATES:
            raise reading.wrong(path, value, f"its lists make {len(made)} combinations; at most {MOST_CANDIDATES}")
        return made

    @classmethod
    def of_multipliers(cls, values: Iterable[float], path: str = "") -> Self:
        """The grid of the multiplier alone."""
        return cls((Axis(MULTIPLIER, tuple(values), path),))

    def __len__(self) -> int:
        return prod(len(axis.values) for axis in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that have values to try."""
        return tuple(axis.name for axis in self.axes)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All combinations, the last setting changing fastest."""
        combinations = product(*(axis.values for axis in self.axes))
        return tuple(Candidate(tuple(zip(self.names, values, strict=True))) for values in combinations)

    def within(self, names: Iterable[str]) -> Self:
        """The grid of those of its settings that are among the names."""
        known = set(names)
        return replace(self, axes=tuple(axis for axis in self.axes if axis.name in known))

    def require_fit(self, label: str, learner: LearnerSettings) -> None:
        """Refuse a setting that the learner does not have, and values that it cannot take."""
        known = settings_of(learner)
        for axis in self.axes:
            if axis.name not in (MULTIPLIER, *known):
                raise reading.unknown_setting(axis.path, axis.name, [MULTIPLIER, *known], f"{label!r} does not have it")
            for i, value in enumerate(axis.values):
                if axis.name == MULTIPLIER:
                    _require_product(f"{axis.path}[{i}]", value, label, learner)
                else:
                    reading.require_type(f"{axis.path}[{i}]", value, known[axis.name])


def settings_of(learner: LearnerSettings) -> Mapping[str, Any]:
    """The settings of a learner's recipe, each with its annotation; the multiplier is not among them."""
    return options.annotations(recipe(learner.name))


def scales(learner: LearnerSettings) -> bool:
    """Whether a multiplier can scale the rate of the learner, as it is set."""
    return not tunes_itself(learner.name, learner.settings)


def shown(value: Any) -> str:
    """A value as it stands in a grid."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _require_product(path: str, multiplier: float, label: str, learner: LearnerSettings) -> None:
    """Refuse a multiplier that together with the learner's own is no positive number."""
    if not 0.0 < multiplier * learner.multiplier < float("inf"):
        rule = f"times the multiplier {learner.multiplier:g} of {label!r} it must be above 0 and finite"
        raise reading.wrong(path, multiplier, rule)
