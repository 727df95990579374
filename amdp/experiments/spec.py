"""A spec: games, learners, seeds and how to tune, from TOML, JSON or a dictionary; and the runs that it asks for.

    title = "..."                    checkpoints = 50
    seeds = 10                       or [1, 2, 3], or { first = 100, count = 10 }
    baseline = true                  uniform play in every game, beside which all learners are shown

    [defaults]                       keys of games or learners, for all of them
    [[games]]                        label, instance, losses, episodes or steps, delay, feedback, unknown, radius,
                                     radius_scale, comparator; learners: the labels of those that play it
    [[learners]]                     label, name, oracle, projection, multiplier, settings; games: the labels of those
                                     that it plays; tune: a grid of its own, as large as that of all
    [tune]                           grid = { multiplier = [...], gamma = [...] } or multipliers = [...], seeds = count,
                                     search = "grid" or "halving" or { name = "halving", factor = 3 },
                                     rounds = at most so many

Names of files start in the folder of the spec. So do names of one's own code: `name = "my_module:Uniform"` is what the
file `my_module.py` beside the spec defines. A run is that of this very source: after a change it is another run.

A name may be a table with settings: `losses = { name = "swap", first = 100 }`. A list where one value is expected
stands for several runs. All learners meet all games, but for pairings that cannot work: these are skipped if nobody
asked for them by label, else refused.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Any, Self

from amdp import own_code
from amdp.algorithms.named import tunes_itself
from amdp.errors import SpecError
from amdp.experiments import reading
from amdp.experiments.candidates import Candidate
from amdp.experiments.entries import DEFAULTS, Entry, read_games, read_learners
from amdp.experiments.pairing import BASELINE, Skipped, baselines, heard_by_all, pairings
from amdp.experiments.settings import CHECKPOINTS, GameSettings, LearnerSettings, RunSettings
from amdp.experiments.tuning import MOST_SEEDS, SEEDS_BEGIN, Tries, Tune, Tuning, shortened
from amdp.regular_files import read_text

MOST_CHECKPOINTS = 100_000
MOST_NAMED = 10  # skipped pairings, failures and files that notes name one by one
LARGEST_SPEC = 2**24  # bytes; more is not a spec, but a wrong file
TUNING_CHECKPOINTS = 2  # of a try only the last one counts
AS_IT_IS = Candidate(())  # the settings of a learner, unchanged

Finished = Callable[
    [str], float | None
]  # the loss incurred in the run of an id, infinite if it failed; None: not there
Pair = tuple[str, str]  # labels of a game and a learner


class Role(StrEnum):
    """Why a run is played."""

    THEORY = "theory"  # as theory tunes it
    TUNED = "tuned"  # with the settings that the tries chose
    TUNING = "tuning"  # a try, on seeds of its own
    BASELINE = "baseline"  # uniform play, for comparison: it is not ranked


@dataclass(frozen=True)
class Planned:
    """A run that a spec asks for, and what it is called there."""

    settings: RunSettings
    game: str
    learner: str
    role: Role

    @property
    def id(self) -> str:
        """The id of the settings."""
        return self.settings.id


@dataclass(frozen=True)
class Spec:
    """What to run. Labels are unique; `pairs` says which learner plays which game."""

    title: str
    text: str  # the file as read, or TOML with the content of a dictionary
    seeds: tuple[int, ...]
    checkpoints: int
    games: Mapping[str, GameSettings]
    learners: Mapping[str, LearnerSettings]
    pairs: tuple[Pair, ...]
    tune: Tune | None
    skipped: tuple[Skipped, ...]
    folder: str = ""  # where names of files start, and one's own code is; the current one if empty
    self_tuned: tuple[str, ...] = ()  # labels of learners whose rate no multiplier can scale
    baselines: tuple[str, ...] = ()  # labels of the games that uniform play is a baseline of

    @classmethod
    def load(cls, path: str | PathLike[str], folder: str | None = None) -> Self:
        """From a file of TOML, or of JSON by its suffix; names of files start in its folder if no other is given."""
        file = Path(path)
        try:
            text = read_text(file, LARGEST_SPEC)
        except (OSError, UnicodeDecodeError) as problem:
            raise SpecError(f"cannot be read: {problem}", str(file)) from problem
        start = folder or str(file.resolve().parent)
        if file.suffix == ".json":
            return cls.from_dict(reading.from_json(text, str(file)), start, str(file))
        return cls.parse(text, str(file), start)

    @classmethod
    def parse(cls, text: str, name: str = "spec", folder: str = "") -> Self:
        """From a text in TOML; `name` is for messages about what is not TOML, and for a title where none is given."""
        return cls._read(reading.from_toml(text, name), text, name, folder)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], folder: str = "", name: str = "spec") -> Self:
        """From dictionaries and lists with the keys of the TOML; `name` is for a title where none is given."""
        tables = reading.plain(content)
        spec = cls._read(tables, "", name, folder)
        return replace(spec, text=reading.to_toml({"title": spec.title, **tables}))

    @classmethod
    def _read(cls, content: dict[str, Any], text: str, name: str, folder: str) -> Self:
        tables = reading.table("", content, KEYS, ("games", "learners"))
        seeds, defaults, tune = tables.get("seeds", (1,)), tables.get("defaults", {}), tables.get("tune")
        with own_code.looking_in(folder):
            games = read_games(tables["games"], defaults, folder)
            learners = read_learners(tables["learners"], defaults)
            tune = _fitted(tune, learners)
            pairs, skipped = pairings(games, learners, tune, seeds[0])
            itself = [entry.label for entry in learners if tunes_itself(entry.settings.name, entry.settings.settings)]
            beside = tuple(baselines(games, seeds[0])) if tables.get("baseline", True) else ()
        return cls(
            tables.get("title") or reading.line("title", Path(name).stem),
            text,
            seeds,
            tables.get("checkpoints", CHECKPOINTS),
            {entry.label: entry.settings for entry in games},
            {entry.label: entry.settings for entry in learners},
            tuple(pairs),
            tune,
            tuple(skipped),
            folder,
            tuple(itself),
            beside,
        )

    @property
    def titled(self) -> str:
        """The text with a title, which it otherwise has from the name of its file: what a folder of results keeps."""
        if "title" in reading.from_toml(self.text, "spec"):
            return self.text
        # TOML escapes one printable line as JSON does.
        return f"title = {json.dumps(self.title, ensure_ascii=False)}\n{self.text}"

    @property
    def notes(self) -> Iterator[str]:
        """What somebody should know before it runs."""
        if self.skipped:
            named = [f"{pair.game}/{pair.learner}: {pair.reason}" for pair in self.skipped[:MOST_NAMED]]
            more = [f"and {len(self.skipped) - MOST_NAMED} more"] if len(self.skipped) > MOST_NAMED else []
            yield f"{len(self.skipped)} pairings skipped: {'; '.join(named + more)}"
        if not all(self._played(*pair, Role.THEORY, self.seeds[0]).settings.repeatable for pair in self.pairs):
            yield "some solvers have a limit of seconds: their runs may end otherwise when they are repeated"
        if self.tune:
            yield from self.tune.notes
            for label in [label for label, game in self.games.items() if self.tune.learns_nothing(game)]:
                yield f"tune.rounds: the losses of {label!r} come after the end of a try; give more rounds"

    def plan(self, finished: Finished) -> "Plan":
        """The runs, batch by batch, to go through once."""
        return Plan(self, finished)

    def first(self) -> list[Planned]:
        """The runs that do not depend on others: tries first, since others wait for them."""
        return next(iter(self.plan(lambda run: None)))

    def second(self, finished: Finished) -> list[Planned] | None:
        """The runs with tuned settings; None while what some try paid is not there."""
        plan = self.plan(finished)
        runs = [planned for batch in plan for planned in batch if planned.role is Role.TUNED]
        return None if plan.waiting else runs

    def untried(self) -> dict[Pair, Tuning]:
        """The tuning of each pairing that is tuned, before any try."""
        if self.tune is None:
            return {}
        tuned = [(game, learner) for game, learner in self.pairs if learner in self.tune.grids]
        return {(game, learner): self.tune.untried(learner, self.games[game]) for game, learner in tuned}

    def independent(self) -> list[Planned]:
        """The runs that no tries decide: each learner as its theory tunes it, and the baselines."""
        theory = [self._played(*pair, Role.THEORY, seed) for seed in self.seeds for pair in self.pairs]
        return theory + [self._uniform(game, seed) for seed in self.seeds for game in self.baselines]

    def tries(self, pair: Pair, tuning: Tuning) -> dict[Candidate, list[Planned]]:
        """The runs of the next stage of a tuning, by candidate."""
        game, learner = pair
        return {each: self._tried(game, learner, each, tuning) for each in tuning.candidates}

    def tuned(self, chosen: Mapping[Pair, Candidate]) -> list[Planned]:
        """The runs with the settings that the tries chose."""
        return [
            self._played(*pair, Role.TUNED, seed, candidate)
            for seed in self.seeds
            for pair, candidate in chosen.items()
        ]

    def _tried(self, game: str, learner: str, candidate: Candidate, tuning: Tuning) -> list[Planned]:
        rounds, seeds = tuning.schedule[len(tuning.stages)].rounds, self.tune.seeds_of(learner) if self.tune else ()
        arena, player = shortened(self.games[game], rounds), candidate.applied(self.learners[learner])
        runs = [RunSettings(arena, player, seed, TUNING_CHECKPOINTS, self.folder) for seed in seeds]
        return [Planned(settings, game, learner, Role.TUNING) for settings in runs]

    def _played(self, game: str, learner: str, role: Role, seed: int, candidate: Candidate = AS_IT_IS) -> Planned:
        player = candidate.applied(self.learners[learner])
        settings = RunSettings(self.games[game], player, seed, self.checkpoints, self.folder)
        return Planned(settings, game, learner, role)

    def _uniform(self, game: str, seed: int) -> Planned:
        settings = RunSettings(heard_by_all(self.games[game]), BASELINE, seed, self.checkpoints, self.folder)
        return Planned(settings, game, BASELINE.name, Role.BASELINE)


class Plan:
    """The runs of a spec in batches: one is known when the runs of those before it are stored.

    First come the runs of `Spec.first`, then the further stages of a search that has some, then the tuned runs. All
    pairings are in the same stage, so that runners that share a folder know of the same batches. `tunings` is what is
    known of the tries after the batches that were taken; if they end while it is `waiting`, tries are missing.
    """

    def __init__(self, spec: Spec, finished: Finished) -> None:
        self.tunings = spec.untried()
        self._spec, self._finished = spec, finished

    @property
    def waiting(self) -> bool:
        """Whether the tuned runs are not known yet."""
        return not all(tuning.is_over for tuning in self.tunings.values())

    @property
    def missing(self) -> int:
        """The number of tries that the next batch waits for."""
        return sum(tuning.missing for tuning in self.tunings.values())

    @property
    def warnings(self) -> Iterator[str]:
        """What makes the choices of the tuning doubtful."""
        for (game, learner), tuning in self.tunings.items():
            yield from (f"tuning of {learner} in {game}: {warning}" for warning in tuning.warnings)

    def __iter__(self) -> Iterator[list[Planned]]:
        spec, others = self._spec, self._spec.independent()
        while tries := {pair: spec.tries(pair, tuning) for pair, tuning in self.tunings.items() if tuning.candidates}:
            yield _by_turns(tries.values()) + others
            others = []
            self.tunings |= {pair: self._after(pair, runs) for pair, runs in tries.items()}
            if self.missing:
                return
        if others:
            yield others
        if tuned := spec.tuned({pair: best for pair, each in self.tunings.items() if (best := each.chosen)}):
            yield tuned

    def _after(self, pair: Pair, runs: Mapping[Candidate, list[Planned]]) -> Tuning:
        """The tuning of a pairing after the tries of a stage."""
        losses = {each: tuple(self._finished(run.id) for run in planned) for each, planned in runs.items()}
        return replace(self.tunings[pair], stages=(*self.tunings[pair].stages, Tries(losses)))


def _by_turns(tries: Iterable[Mapping[Candidate, list[Planned]]]) -> list[Planned]:
    """One try of each pairing, then the next of each: two workers seldom compile the same code at the same time."""
    lists = [[planned for each in runs.values() for planned in each] for runs in tries]
    return [planned for turn in zip_longest(*lists) for planned in turn if planned is not None]


def _fitted(tune: Tune | None, learners: list[Entry[LearnerSettings]]) -> Tune | None:
    """The block `[tune]` with the grid of each learner."""
    own = {entry.label: entry.grid for entry in learners if entry.grid}
    if tune is None:
        for entry in learners:
            if entry.grid:
                raise SpecError("there is no [tune] with seeds and a grid for all", f"{entry.point.path}.tune")
        return None
    return tune.fitted({entry.label: entry.settings for entry in learners}, own)


def _seeds(path: str, value: Any) -> tuple[int, ...]:
    """Seeds as a count, as a list, or as a table with `first` and `count`."""
    one_seed = reading.whole(0, SEEDS_BEGIN - 1)
    if isinstance(value, list):
        seeds = tuple(one_seed(f"{path}[{i}]", seed) for i, seed in enumerate(value))
        reading.require_different(path, value)
        if not seeds:
            raise reading.wrong(path, value, "give at least one")
        return seeds
    if not isinstance(value, dict):
        return tuple(range(1, 1 + reading.whole(1, MOST_SEEDS)(path, value)))
    table = reading.table(path, value, {"first": one_seed, "count": reading.whole(1, MOST_SEEDS)}, ["count"])
    first = table.get("first", 1)
    reading.whole(1, SEEDS_BEGIN - first)(f"{path}.count", table["count"])
    return tuple(range(first, first + table["count"]))


def _defaults(path: str, value: Any) -> dict[str, Any]:
    return reading.table(path, value, dict.fromkeys(DEFAULTS, reading.anything))


KEYS: dict[str, reading.Reader] = {
    "title": reading.line,
    "seeds": _seeds,
    "checkpoints": reading.whole(2, MOST_CHECKPOINTS),
    "baseline": reading.truth,
    "defaults": _defaults,
    "games": reading.tables,
    "learners": reading.tables,
    "tune": Tune.read,
}
