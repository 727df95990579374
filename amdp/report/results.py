"""The runs that a spec asks for, sorted into what is compared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Floats
from amdp.experiments.record import Failure, Record
from amdp.experiments.settings import GameSettings, LearnerSettings
from amdp.experiments.spec import Planned, Role, Spec
from amdp.experiments.storage import Store
from amdp.game.rounds import Timing

OPEN = 1e-6  # a comparator that is off by less than this part of what was paid counts as exact


@dataclass(frozen=True, eq=False)
class Series:
    """The finished runs of a learner in a game, arrays `[i, c]`: run, checkpoint. All are sums from the start."""

    game: str
    learner: str
    role: Role
    settings: LearnerSettings
    seeds: NDArray[np.int64]  # [i]
    played: Floats  # [c], episodes or steps
    paid: Floats
    low: Floats  # the regret against the best policy that was found
    high: Floats  # the regret is not above this; infinite where nothing is proved
    bound: Floats  # what theory allows; NaN where it does not speak
    oracle_calls: Floats
    trials: Floats
    rebuilds: Floats
    spent: Floats  # [i, c, 4], seconds of the clock by `Timing`
    cpu: Floats  # [i, c, 4], seconds of the processor
    records: tuple[Record, ...]

    @classmethod
    def of(cls, runs: Iterable[tuple[Planned, Record]]) -> Self:
        """Of one learner and role in one game; checkpoints that not all runs have are left out."""
        ordered = sorted(runs, key=lambda run: run[1].settings.seed)
        first, records = ordered[0][0], [record for _, record in ordered]
        curves = [record.curve for record in records if record.curve]
        common = sorted(set.intersection(*(set(curve.rounds) for curve in curves)))
        kept = [np.searchsorted(curve.rounds, common) for curve in curves]
        epoch = records[0].used.get("epoch", 1)  # steps of a round of an unbroken stream; the last one may be cut

        def stack(name: str, absent: float = np.nan) -> Floats:
            return np.stack([_floats(getattr(curve, name), absent)[at] for curve, at in zip(curves, kept, strict=True)])

        paid = stack("paid")
        return cls(
            first.game,
            first.learner,
            first.role,
            first.settings.learner,
            np.array([record.settings.seed for record in records]),
            np.minimum(np.array(common, dtype=np.float64) * epoch, first.settings.game.length),
            paid,
            paid - stack("best"),
            paid - stack("best_bound", -inf),
            stack("bound"),
            stack("oracle_calls"),
            stack("trials"),
            stack("rebuilds"),
            np.stack([_parts(curve.spent)[at] for curve, at in zip(curves, kept, strict=True)]),
            np.stack([_parts(curve.cpu)[at] for curve, at in zip(curves, kept, strict=True)]),
            tuple(records),
        )

    @property
    def name(self) -> str:
        """For legends and rows."""
        return f"{self.learner} (tuned)" if self.role == Role.TUNED else self.learner

    @property
    def told(self) -> str | None:
        """What the learner hears of the losses, "bandit" or "full"; None if neither record nor game say."""
        one = self.records[0]
        return one.used.get("told") or one.settings.game.feedback

    @property
    def final(self) -> Floats:
        """The last regret of each run `[i]`."""
        return self.low[:, -1]

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the runs `[i]`."""
        return tuple(record.id for record in self.records)

    @property
    def open(self) -> bool:
        """The best policy in hindsight is only bounded in some run."""
        return bool((self.high - self.low > OPEN * np.maximum(np.abs(self.paid), 1.0)).any())

    @cached_property
    def seconds(self) -> Floats:
        """Of the learner, after the first checkpoint, before which code is compiled and loaded, `[i, c]`."""
        of_learner = self.spent[:, :, :3].sum(axis=2)
        since: Floats = of_learner - of_learner[:, :1]
        return since

    def each(self, sums: Floats) -> Floats:
        """Sums `[i, c, ...]` for one episode or step, `[i, ...]`; those up to the first checkpoint are left out."""
        alone = len(self.played) == 1
        since, begun = (0.0, 0.0) if alone else (sums[:, 0], self.played[0])
        mean: Floats = (sums[:, -1] - since) / (self.played[-1] - begun)
        return mean


@dataclass(frozen=True, eq=False)
class Contest:
    """A game, and the learners that finished runs of it."""

    label: str
    settings: GameSettings
    series: list[Series]

    @property
    def unit(self) -> str:
        """What a round is counted in."""
        return "episode" if self.settings.episodes else "step"

    def tuned_as_theory(self, one: Series) -> bool:
        """Tuning chose theory's multiplier: the runs are the same."""
        others = [other for other in self.series if (other.learner, other.role) == (one.learner, Role.THEORY)]
        return one.role == Role.TUNED and any(set(one.ids) <= set(other.ids) for other in others)


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that a report shows; nothing that the spec asks for is left out."""

    spec: Spec
    contests: list[Contest]
    tuning: list[Series]  # the tries of the tune block
    finished: list[tuple[Planned, Record]]
    failed: list[tuple[Planned, Failure]]
    missing: list[Planned]
    waiting: bool  # the runs with tuned multipliers are not known yet
    strangers: int  # stored runs that the spec does not ask for
    broken: list[str]  # files

    @classmethod
    def gather(cls, spec: Spec, store: Store) -> Self:
        """Every file is read once, and all records are held."""
        records = {record.id: record for record in store.records()}
        planned = list(spec.first())
        second = spec.second(lambda id: records[id].final_paid if id in records else None)
        planned += second or []
        there = [(one, records[one.id]) for one in planned if one.id in records]
        finished = [(one, record) for one, record in there if record.curve]
        return cls(
            spec,
            _contests(planned, [run for run in finished if run[0].role != Role.TUNING]),
            _series(run for run in finished if run[0].role == Role.TUNING),
            finished,
            [(one, record.failure) for one, record in there if record.failure],
            [one for one in planned if one.id not in records],
            second is None,
            len(records.keys() - {one.id for one in planned}),
            sorted(file.relative_to(store.folder).as_posix() for file in store.broken),
        )

    @property
    def asked(self) -> int:
        """Runs, as far as they are known."""
        return count(self._planned)

    @property
    def chosen(self) -> set[tuple[str, str, float]]:
        """Game, learner and multiplier, as far as they are known."""
        tuned = [one for one in self._planned if one.role == Role.TUNED]
        return {(one.game, one.learner, one.settings.learner.multiplier) for one in tuned}

    @property
    def _planned(self) -> list[Planned]:
        return [one for one, _ in self.finished] + [one for one, _ in self.failed] + self.missing


def count(planned: Iterable[Planned]) -> int:
    """Runs; one that has two roles, as where tuning chose theory's multiplier, is one run."""
    return len({one.id for one in planned})


def _contests(planned: Iterable[Planned], finished: list[tuple[Planned, Record]]) -> list[Contest]:
    games = {one.game: one.settings.game for one in planned if one.role != Role.TUNING}  # tries may be shorter
    return [
        Contest(label, settings, _series(run for run in finished if run[0].game == label))
        for label, settings in games.items()
    ]


def _series(runs: Iterable[tuple[Planned, Record]]) -> list[Series]:
    """In the order of the spec, theory before tuned; tries of several multipliers apart."""
    groups: dict[tuple[str, str, Role, float], list[tuple[Planned, Record]]] = {}
    for one, record in runs:
        key = (one.game, one.learner, one.role, one.settings.learner.multiplier)
        groups.setdefault(key, []).append((one, record))
    places = {key[:2]: place for place, key in reversed(list(enumerate(groups)))}
    return [Series.of(groups[key]) for key in sorted(groups, key=lambda key: (places[key[:2]], key[2:]))]


def _floats(values: Iterable[float | None], absent: float) -> Floats:
    return np.array([absent if value is None else value for value in values], dtype=np.float64)


def _parts(times: Mapping[str, Any]) -> Floats:
    return np.column_stack([times[part] for part in Timing._fields])
