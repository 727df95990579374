"""Tuning by tries: as many candidates, on the same seeds and rounds, for every learner; and what came of the tries."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf, log
from statistics import fmean
from typing import Any, Self

from amdp.errors import SpecError
from amdp.experiments import reading
from amdp.experiments.candidates import MULTIPLIER, Axis, Candidate, Grid, scales, settings_of, shown
from amdp.experiments.search import GridSearch, Search, Stage, read_search, search_to_json
from amdp.experiments.settings import GameSettings, LearnerSettings
from amdp.game.games import find_delays

SEEDS_BEGIN = 2**32  # those of a spec are below: no game is both tried and evaluated
MOST_SEEDS = 100_000
SEEDS = 3
KEYS: dict[str, reading.Reader] = {
    "grid": Grid.read,
    "multipliers": reading.positive_numbers,
    "search": read_search,
    "seeds": reading.whole(1, MOST_SEEDS),
    "rounds": reading.whole(1),
}


@dataclass(frozen=True)
class Tune:
    """Values to try, how they are searched, seeds to try them on, and how many rounds a try has at most."""

    grid: Grid  # for all learners that have no other
    seeds: tuple[int, ...]
    rounds: int | None = None
    search: Search = field(default_factory=GridSearch)
    grids: Mapping[str, Grid] = field(default_factory=dict)  # by label of the learner; without one it is not tuned

    @classmethod
    def read(cls, path: str, value: Any) -> Self:
        """The block `[tune]` of a spec; `fitted` makes the grid of each learner of it."""
        table = reading.table(path, value, KEYS)
        if "grid" in table and "multipliers" in table:
            raise SpecError("give either grid or multipliers, which is short for a grid of the multiplier alone", path)
        if "grid" not in table and "multipliers" not in table:
            raise SpecError("missing; it must be given, or a grid", reading.below(path, "multipliers"))
        grid = table.get("grid") or Grid.of_multipliers(table["multipliers"], reading.below(path, "multipliers"))
        seeds = range(SEEDS_BEGIN, SEEDS_BEGIN + table.get("seeds", SEEDS))
        return cls(grid, tuple(seeds), table.get("rounds"), table.get("search", GridSearch()))

    def fitted(self, learners: Mapping[str, LearnerSettings], own: Mapping[str, Grid] | None = None) -> Self:
        """The same with the grid of each learner: its own, which must be as large, or what it has of the common one.

        A learner that tunes itself is not tuned, unless it has a grid of its own.
        """
        for axis in self.grid.axes:
            known = {name: None for learner in learners.values() for name in settings_of(learner)}
            if axis.name not in (MULTIPLIER, *known):
                raise reading.unknown_setting(axis.path, axis.name, [MULTIPLIER, *known], "no learner has this setting")
        grids = {}
        for label, learner in learners.items():
            given = (own or {}).get(label)
            if given:
                self._require_own(given, label, learner)
            part = given or self.grid.within((MULTIPLIER, *settings_of(learner)) if scales(learner) else ())
            part.require_fit(label, learner)
            if part.axes:
                grids[label] = part
        return replace(self, grids=grids)

    def _require_own(self, grid: Grid, label: str, learner: LearnerSettings) -> None:
        """Refuse a learner's own grid of another size, and a multiplier in it that the learner cannot use."""
        path = grid.axes[0].path.rpartition(".")[0]
        if len(grid) != len(self.grid):
            rule = f"[tune] has {len(self.grid)}, and every learner gets as many tries"
            raise SpecError(f"its lists make {len(grid)} combinations; {rule}", path)
        if MULTIPLIER in grid.names and not all(scales(each.applied(learner)) for each in grid.candidates):
            raise SpecError(f"{label!r} tunes its rate itself: leave it out", f"{path}.{MULTIPLIER}")

    def seeds_of(self, label: str) -> tuple[int, ...]:
        """The seeds of a learner's tries: more of them with fewer combinations, so that all have as many tries."""
        more = len(self.grid) // len(self.grids[label])
        return tuple(range(self.seeds[0], self.seeds[0] + more * len(self.seeds)))

    @property
    def notes(self) -> Iterator[str]:
        """Who has fewer combinations than others, and why."""
        fewer = [
            f"{label!r} has {len(grid)} of {len(self.grid)} (without {', '.join(sorted(missing))}), each on "
            f"{len(self.seeds_of(label))} seeds instead of {len(self.seeds)}"
            for label, grid in self.grids.items()
            if len(grid) < len(self.grid) and (missing := set(self.grid.names) - set(grid.names))
        ]
        if fewer:
            yield f"fewer combinations to try: {'; '.join(fewer)}; `tune` in an entry of a learner may give it others"

    def untried(self, label: str, game: GameSettings) -> "Tuning":
        """The tuning of a learner in a game, before any try."""
        grid = self.grids[label]
        rounds = game.length if self.rounds is None else min(self.rounds, game.length)
        return Tuning(grid, self.search.schedule(len(grid), rounds))

    def shortest(self, label: str, game: GameSettings) -> GameSettings:
        """The shortest game that a learner plays, tries included."""
        return shortened(game, self.untried(label, game).schedule[0].rounds) if label in self.grids else game

    def learns_nothing(self, game: GameSettings) -> bool:
        """Whether the losses of some try are told after its end, on average."""
        rounds = min((self.shortest(label, game).length for label in self.grids), default=game.length)
        delays = find_delays(game.delay, rounds, self.seeds[0], stream=game.steps is not None)
        return delays is not None and delays.total >= len(delays) ** 2

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists; grids as pairs, which keep an order that the keys of JSON would lose."""
        grids = [(label, _pairs(grid)) for label, grid in self.grids.items()]
        search = search_to_json(self.search)
        return {"grid": _pairs(self.grid), "seeds": self.seeds, "rounds": self.rounds, "search": search, "grids": grids}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], learners: Mapping[str, LearnerSettings]) -> Self:
        """What `to_json` made, or what amdp made when multipliers were all that it tried."""
        seeds, rounds = tuple(content["seeds"]), content["rounds"]
        if "multipliers" in content:
            return cls(Grid.of_multipliers(content["multipliers"]), seeds, rounds).fitted(learners)
        grids = {label: _grid(pairs) for label, pairs in content["grids"]}
        return cls(_grid(content["grid"]), seeds, rounds, read_search("search", content["search"]), grids)


@dataclass(frozen=True)
class Tries:
    """The tries of one stage: what each candidate incurred with each seed; infinite if it failed, None if missing."""

    losses: Mapping[Candidate, tuple[float | None, ...]]

    @property
    def each(self) -> list[float | None]:
        """The losses of all tries."""
        return [loss for losses in self.losses.values() for loss in losses]

    def mean(self, candidate: Candidate) -> float:
        """The mean over the seeds: the losses of the game are the same for all. Infinite where a try failed."""
        known = [inf if loss is None else loss for loss in self.losses[candidate]]
        return fmean(known) if max(known) < inf else inf

    def best(self, count: int) -> tuple[Candidate, ...]:
        """The candidates of least mean loss; of equal ones those nearest to what theory says, then the first."""

        def rank(candidate: Candidate) -> tuple[float, float, float]:
            return self.mean(candidate), abs(log(candidate.multiplier)), candidate.multiplier

        return tuple(sorted(self.losses, key=rank)[:count])  # sorting keeps the order of equal ones


@dataclass(frozen=True)
class Tuning:
    """The tries of one learner in one game, as far as they are known; all stages but the last are complete."""

    grid: Grid
    schedule: tuple[Stage, ...]
    stages: tuple[Tries, ...] = ()

    @property
    def missing(self) -> int:
        """The number of tries of the stages so far that are not stored."""
        return sum(stage.each.count(None) for stage in self.stages)

    @property
    def failed(self) -> int:
        """The number of tries that failed."""
        return sum(stage.each.count(inf) for stage in self.stages)

    @property
    def tries(self) -> int:
        """The number of tries of the stages so far."""
        return sum(len(stage.each) for stage in self.stages)

    @property
    def is_over(self) -> bool:
        """Whether all stages were played."""
        return len(self.stages) == len(self.schedule) and not self.missing

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Who plays in the next stage, in the order of the grid; none after the last one."""
        if len(self.stages) == len(self.schedule):
            return ()
        if not self.stages:
            return self.grid.candidates
        best = set(self.stages[-1].best(self.schedule[len(self.stages)].candidates))
        return tuple(candidate for candidate in self.stages[-1].losses if candidate in best)

    @property
    def chosen(self) -> Candidate | None:
        """The best candidate of the last stage; None before it is complete."""
        return self.stages[-1].best(1)[0] if self.is_over else None

    @property
    def warnings(self) -> Iterator[str]:
        """What makes the choice doubtful: tries that failed, a choice at the edge, values that made no difference."""
        if self.failed:
            yield f"{self.failed} of {self.tries} tries failed"
        chosen = self.chosen
        if chosen is None or self.failed == self.tries:
            return
        if self._is_tie:
            yield "a tie: all candidates did alike in all tries; the nearest to theory is taken"
            return
        for axis in self.grid.axes:
            if axis.is_edge(chosen[axis.name]):
                at = f"{shown(chosen[axis.name])} is at the edge of the grid"
                tried = ", ".join(map(shown, sorted(axis.values)))
                yield f"{axis.name} = {at} ({tried}): a value beyond it may be better"
        for axis in self.grid.axes:
            for values in self._saturated(axis):
                yield f"{axis.name} = {', '.join(map(shown, values))} did alike in all tries: it saturates there"

    @property
    def _is_tie(self) -> bool:
        """Whether all candidates incurred the same losses in the first stage, in which all of them play."""
        losses = set(self.stages[0].losses.values())
        return len(self.grid) > 1 and len(losses) == 1

    def _saturated(self, axis: Axis) -> Iterator[list[Any]]:
        """Groups of values of a setting that made no difference, whatever the other settings were."""
        groups: list[list[Any]] = []
        for value in axis.values:
            same = next((group for group in groups if self._alike(axis.name, group[0], value)), None)
            if same is None:
                groups.append([value])
            else:
                same.append(value)
        return (group for group in groups if len(group) > 1)

    def _alike(self, name: str, one: Any, other: Any) -> bool:
        """Whether two values of a setting incurred the same losses wherever both played; failures tell nothing."""
        compared = False
        for stage in self.stages:
            for candidate, losses in stage.losses.items():
                twin = Candidate(tuple((key, other if key == name else value) for key, value in candidate.values))
                if candidate[name] != one or twin not in stage.losses or inf in (*losses, *stage.losses[twin]):
                    continue
                if losses != stage.losses[twin]:
                    return False
                compared = True
        return compared


def shortened(game: GameSettings, rounds: int) -> GameSettings:
    """The same game with fewer rounds."""
    return replace(game, steps=rounds) if game.episodes is None else replace(game, episodes=rounds)


def _pairs(grid: Grid) -> list[tuple[str, tuple[Any, ...]]]:
    return [(axis.name, axis.values) for axis in grid.axes]


def _grid(pairs: list[tuple[str, list[Any]]]) -> Grid:
    return Grid(tuple(Axis(name, tuple(values)) for name, values in pairs))
