"""The runs that a spec asks for, grouped by game, learner and tuning."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Floats
from amdp.experiments.entries import short_names
from amdp.experiments.record import Failure, Record
from amdp.experiments.settings import GameSettings, LearnerSettings, identity
from amdp.experiments.spec import Pair, Planned, Role, Spec
from amdp.experiments.storage import Store
from amdp.experiments.tuning import Tuning
from amdp.game.rounds import Timing

ALIKE = 1e-9  # losses whose relative difference is less are sums of the same numbers in another order
COMPARATOR_TOLERANCE = 1e-6  # a comparator whose gap is below this part of the loss counts as exact


@dataclass(frozen=True, eq=False)
class Series:
    """The finished runs of a learner in a game, arrays `[i, c]`: run, checkpoint. All are cumulative."""

    game: str
    learner: str
    role: Role
    settings: LearnerSettings
    seeds: NDArray[np.int64]  # [i]
    played: Floats  # [c], episodes or steps
    paid: Floats  # the loss of the learner
    low: Floats  # regret against the best policy that was found
    high: Floats  # upper bound of the regret; infinite where the comparator is not bounded
    bound: Floats  # of theory on the expected regret; NaN where there is none
    oracle_calls: Floats
    trials: Floats
    rebuilds: Floats
    spent: Floats  # [i, c, 4], seconds of the clock by `Timing`
    cpu: Floats  # [i, c, 4], seconds of the processor
    records: tuple[Record, ...]

    @classmethod
    def of(cls, runs: Iterable[tuple[Planned, Record]]) -> Self:
        """The series of runs of one learner and role in one game, at the checkpoints that all runs have."""
        ordered = sorted(runs, key=lambda run: run[1].settings.seed)
        first, records = ordered[0][0], [record for _, record in ordered]
        curves = [record.curve for record in records if record.curve]
        common = sorted(set.intersection(*(set(curve.rounds) for curve in curves)))
        kept = [np.searchsorted(curve.rounds, common) for curve in curves]
        epoch = records[0].used.get("epoch", 1)  # steps of a round of a stream of steps; the last one may be cut

        def stack(name: str, absent: float = np.nan) -> Floats:
            return np.stack([_floats(getattr(curve, name), absent)[at] for curve, at in zip(curves, kept, strict=True)])

        paid = stack("paid")
        calls, trials, rebuilds, spent, cpu = map(stack, ("oracle_calls", "trials", "rebuilds", "spent", "cpu"))
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
            calls,
            trials,
            rebuilds,
            spent,
            cpu,
            tuple(records),
        )

    @property
    def name(self) -> str:
        """The name in tables."""
        return self.named(self.learner)

    def named(self, learner: str) -> str:
        """A name of the learner, and how it was tuned."""
        return learner if self.role == Role.THEORY else f"{learner} ({self.role})"

    @property
    def feedback(self) -> str | None:
        """The feedback of the learner, "bandit", "full" or "aggregate"; None if nothing says, or a baseline."""
        if self.role == Role.BASELINE:
            return None
        record = self.records[0]
        return record.used.get("told") or record.settings.game.feedback

    @property
    def tuned_without_delay(self) -> bool:
        """Whether feedback was delayed, and the rate is what theory gives without delay."""
        return bool(self.records[0].used.get("tuned_without_delay"))

    def plays_as(self, other: "Series") -> bool:
        """Whether both paid the same with the same seeds at all checkpoints, as with two oracles that plan alike."""
        same = np.array_equal(self.seeds, other.seeds) and np.array_equal(self.played, other.played)
        return same and np.allclose(self.paid, other.paid, rtol=ALIKE, atol=0.0)

    @property
    def final(self) -> Floats:
        """The final regret of each run `[i]`."""
        return self.low[:, -1]

    @property
    def length(self) -> int:
        """The rounds of the game: those of a try may be fewer."""
        return self.records[0].settings.game.length

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the runs `[i]`."""
        return tuple(record.id for record in self.records)

    @property
    def open(self) -> bool:
        """Whether the comparator of some run is bounded, not found: the regret is an interval."""
        return bool((self.high - self.low > COMPARATOR_TOLERANCE * np.maximum(np.abs(self.paid), 1.0)).any())

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The rounds of each run `[i]`: episodes, steps, or epochs of a stream."""
        return np.array([record.curve.rounds[-1] for record in self.records if record.curve])

    @cached_property
    def of_learner(self) -> Floats:
        """Seconds of the learner `[i, c]`."""
        seconds: Floats = self.spent[:, :, :3].sum(axis=2)
        return seconds

    @property
    def seconds(self) -> Floats:
        """Seconds of the learner `[i, c]` since the first checkpoint, before which code is compiled and loaded."""
        since: Floats = self.of_learner - self.of_learner[:, :1]
        return since

    def each(self, sums: Floats) -> Floats:
        """The mean `[i, ...]` of an episode or step after the first checkpoint, from cumulative sums `[i, c, ...]`."""
        alone = len(self.played) == 1
        since, begun = (0.0, 0.0) if alone else (sums[:, 0], self.played[0])
        mean: Floats = (sums[:, -1] - since) / (self.played[-1] - begun)
        return mean


@dataclass(frozen=True, eq=False)
class Contest:
    """A game, the finished runs of its learners, and those of uniform play beside which they are shown."""

    label: str
    settings: GameSettings
    series: list[Series]
    baseline: Series | None = None  # None: it was not asked for, or no run of it is finished
    learners: tuple[str, ...] = ()  # of all games of the report, in its order: each has one color

    def place(self, learner: str) -> int:
        """The place of a learner among all of the report."""
        return [*self.learners, *dict.fromkeys(series.learner for series in self.series)].index(learner)

    @property
    def drawn(self) -> list[Series]:
        """The learners without those that tuning left as theory has them, whose runs would be shown twice."""
        return [series for series in self.series if not self.tuned_as_theory(series)]

    @property
    def alike(self) -> list[list[Series]]:
        """The learners that are drawn, in groups of those that played alike."""
        groups: list[list[Series]] = []
        for series in self.drawn:
            same = next((group for group in groups if series.plays_as(group[0])), None)
            if same is None:
                groups.append([series])
            else:
                same.append(series)
        return groups

    @cached_property
    def names(self) -> dict[str, str]:
        """The names of its learners in legends, by label."""
        return legend_names([self])

    @property
    def shown(self) -> list[Series]:
        """The learners, then the baseline."""
        return self.series + ([self.baseline] if self.baseline else [])

    def shares(self, series: Series) -> Floats:
        """The final regret `[i]` as a share of that of uniform play, by common seed.

        The best fixed policy in hindsight has 0, uniform play 1. Empty where there is no baseline, or where uniform
        play has no regret, so that a share of it would say nothing.
        """
        if self.baseline is None:
            return np.empty(0)
        here, there = common_seeds(series, self.baseline)
        whole = self.baseline.final[there]
        shares: Floats = series.final[here] / whole if (whole > 0.0).all() else np.empty(0)
        return shares

    def replaced(self, series: Series) -> dict[str, Any]:
        """The settings besides the multiplier that tuning gave other values than the learner has by itself."""
        own: dict[str, Any] = {}
        for other in self.series:
            if (other.learner, other.role) == (series.learner, Role.THEORY):
                own = dict(other.settings.settings)
        tuned = series.settings.settings if series.role == Role.TUNED else {}
        return {name: value for name, value in tuned.items() if name not in own or own[name] != value}

    @property
    def unit(self) -> str:
        """The unit of the length of the game."""
        return "episode" if self.settings.episodes else "step"

    def tuned_as_theory(self, series: Series) -> bool:
        """Whether tuning chose theory's settings, so that the runs are those of theory."""
        others = [other for other in self.series if (other.learner, other.role) == (series.learner, Role.THEORY)]
        return series.role == Role.TUNED and any(set(series.ids) <= set(other.ids) for other in others)


@dataclass(frozen=True, eq=False)
class StoredRuns:
    """All runs that a spec asks for: finished, failed and missing."""

    spec: Spec
    contests: list[Contest]
    tuning: list[Series]  # the tries
    tunings: Mapping[Pair, Tuning]  # what came of them
    finished: list[tuple[Planned, Record]]
    failed: list[tuple[Planned, Failure]]
    missing: list[Planned]
    waiting: bool  # the runs with tuned settings are not known yet
    unasked: int  # stored runs that the spec does not ask for
    broken: list[str]  # files

    @classmethod
    def gather(cls, spec: Spec, store: Store) -> Self:
        """Read every stored run once, and group those that the spec asks for."""
        records = {record.id: record for record in store.records()}
        plan = spec.plan(lambda id: records[id].final_paid if id in records else None)
        planned = [entry for batch in plan for entry in batch]
        there = [(entry, records[entry.id]) for entry in planned if entry.id in records]
        finished = [(entry, record) for entry, record in there if record.curve]
        return cls(
            spec,
            _contests(planned, [run for run in finished if run[0].role != Role.TUNING]),
            _series(run for run in finished if run[0].role == Role.TUNING),
            plan.tunings,
            finished,
            [(entry, record.failure) for entry, record in there if record.failure],
            [entry for entry in planned if entry.id not in records],
            plan.waiting,
            len(records.keys() - {entry.id for entry in planned}),
            sorted(file.relative_to(store.folder).as_posix() for file in store.broken),
        )

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of finished, failed and missing runs."""
        finished, failed = ([entry for entry, _ in part] for part in (self.finished, self.failed))
        return {"finished": count(finished), "failed": count(failed), "missing": count(self.missing)}

    @property
    def asked(self) -> int:
        """The number of runs that the spec asks for, as far as they are known."""
        return count(self._planned)

    @property
    def chosen(self) -> set[tuple[str, str, bytes]]:
        """Game, learner and the identity of its settings in the tuned runs, as far as they are known."""
        tuned = [entry for entry in self._planned if entry.role == Role.TUNED]
        return {(entry.game, entry.learner, identity(entry.settings.learner)) for entry in tuned}

    @property
    def _planned(self) -> list[Planned]:
        return [entry for entry, _ in self.finished] + [entry for entry, _ in self.failed] + self.missing


def legend_names(contests: Iterable[Contest]) -> dict[str, str]:
    """Short names of the learners of some games, by label."""
    series = [each for contest in contests for each in contest.series]
    return short_names({each.learner: each.settings for each in reversed(series)})  # theory's settings come first


def count(planned: Iterable[Planned]) -> int:
    """The number of runs; one with two roles, such as where tuning chose theory's settings, counts once."""
    return len({entry.id for entry in planned})


def common_seeds(a: Series, b: Series) -> tuple[Any, Any]:
    """Indices in both series of the seeds that both finished."""
    _, at_a, at_b = np.intersect1d(a.seeds, b.seeds, return_indices=True)
    return at_a, at_b


def _contests(planned: Iterable[Planned], finished: list[tuple[Planned, Record]]) -> list[Contest]:
    # Tries may be shorter, and what a game tells does not matter to a baseline.
    shown = [entry for entry in planned if entry.role in (Role.THEORY, Role.TUNED)]
    games = {entry.game: entry.settings.game for entry in shown}
    order = tuple(dict.fromkeys(entry.learner for entry in shown))
    made = []
    for label, settings in games.items():
        series = _series(run for run in finished if run[0].game == label)
        learners = [each for each in series if each.role != Role.BASELINE]
        baseline = next((each for each in series if each.role == Role.BASELINE), None)
        made.append(Contest(label, settings, learners, baseline, order))
    return made


def _series(runs: Iterable[tuple[Planned, Record]]) -> list[Series]:
    """The series in the order of the spec, theory before tuned, one for each choice of settings and length of game."""
    groups: dict[tuple[str, str, Role, int, bytes], list[tuple[Planned, Record]]] = {}
    for entry, record in runs:
        which = (entry.game, entry.learner, entry.role)
        key = (*which, entry.settings.game.length, identity(entry.settings.learner))
        groups.setdefault(key, []).append((entry, record))
    places = {key[:2]: place for place, key in reversed(list(enumerate(groups)))}
    series = {key: Series.of(members) for key, members in groups.items()}
    order = sorted(groups, key=lambda key: (places[key[:2]], *key[2:4], series[key].settings.multiplier))
    return [series[key] for key in order]


def _floats(values: list[float | None] | dict[str, list[float]], absent: float) -> Floats:
    """A column `[c]` of a curve, or its seconds `[c, 4]` by part of the loop."""
    if isinstance(values, dict):
        return np.column_stack([values[part] for part in Timing._fields])
    return np.array([absent if value is None else value for value in values], dtype=np.float64)
