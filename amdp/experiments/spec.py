"""A spec: games, learners, seeds and how to tune, from TOML, JSON or a dictionary; and the runs that it asks for.

    title = "..."                    checkpoints = 50
    seeds = 10                       or [1, 2, 3], or { first = 100, count = 10 }

    [defaults]                       keys of games or learners, for all of them
    [[games]]                        label, instance, losses, episodes or steps, delay, feedback, unknown, radius,
                                     radius_scale, comparator; learners: the labels of those that play it
    [[learners]]                     label, name, oracle, projection, multiplier, settings; games: the labels of those
                                     that it plays
    [tune]                           multipliers = [...], seeds = count, rounds = at most so many

Names of files start in the folder of the spec. So do names of one's own code: `name = "my_module:Uniform"` is what the
file `my_module.py` beside the spec defines. A run is that of this very source: after a change it is another run.

A name may be a table with settings: `losses = { name = "swap", first = 100 }`. A list where one value is expected
stands for several runs. All learners meet all games, but for pairings that cannot work: these are skipped if nobody
asked for them by label, else refused.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from amdp import own_code
from amdp.algorithms.named import tunes_itself
from amdp.errors import SpecError
from amdp.experiments import reading
from amdp.experiments.entries import DEFAULTS, read_games, read_learners
from amdp.experiments.pairing import Skipped, pairings
from amdp.experiments.settings import CHECKPOINTS, GameSettings, LearnerSettings, RunSettings
from amdp.experiments.tuning import MOST_SEEDS, SEEDS_BEGIN, Tune
from amdp.regular_files import read_text

MOST_CHECKPOINTS = 100_000
MOST_NAMED = 10  # skipped pairings, failures and files that notes name one by one
LARGEST_SPEC = 2**24  # bytes; more is not a spec, but a wrong file
TUNING_CHECKPOINTS = 2  # of a try only the last one counts


class Role(StrEnum):
    """Why a run is played."""

    THEORY = "theory"  # as theory tunes it
    TUNED = "tuned"  # with the multiplier that the tries chose
    TUNING = "tuning"  # a try, on seeds of its own


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
    pairs: tuple[tuple[str, str], ...]  # labels of games and learners
    tune: Tune | None
    skipped: tuple[Skipped, ...]
    folder: str = ""  # where names of files start, and one's own code is; the current one if empty
    self_tuned: tuple[str, ...] = ()  # labels of learners whose rate no multiplier can scale

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
            if tune:
                tune.require_products({entry.label: entry.settings.multiplier for entry in learners})
            pairs, skipped = pairings(games, learners, tune, seeds[0])
            itself = [entry.label for entry in learners if tunes_itself(entry.settings.name, entry.settings.settings)]
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
        if not all(self._planned(*pair, Role.THEORY, self.seeds[0]).settings.repeatable for pair in self.pairs):
            yield "some solvers have a limit of seconds: their runs may end otherwise when they are repeated"
        for label in [label for label, game in self.games.items() if self.tune and self.tune.learns_nothing(game)]:
            yield f"tune.rounds: the losses of {label!r} come after the end of a try; give more rounds"

    def first(self) -> list[Planned]:
        """The runs that do not depend on others: tries first, since others wait for them."""
        tries = [run for _, planned in self._tries() for run in planned]
        theory = [
            self._planned(game, learner, Role.THEORY, seed) for seed in self.seeds for game, learner in self.pairs
        ]
        return tries + theory

    def second(self, finished: Callable[[str], float | None]) -> list[Planned] | None:
        """The runs with tuned multipliers; None while what some try paid is not there."""
        return self.tuned(self.tried(finished))

    def tried(self, finished: Callable[[str], float | None]) -> dict[tuple[str, str], dict[float, float]] | None:
        """What each pairing's multipliers paid in their tries, on average: the losses are the same for all of them."""
        paid: dict[tuple[str, str], dict[float, float]] = {}
        for (game, learner, multiplier), planned in self._tries():
            known = [loss for run in planned if (loss := finished(run.id)) is not None]
            if len(known) < len(planned):
                return None
            paid.setdefault((game, learner), {})[multiplier] = fmean(known) if max(known) < inf else inf
        return paid

    def tuned(self, tried: Mapping[tuple[str, str], Mapping[float, float]] | None) -> list[Planned] | None:
        """The runs with the best of the multipliers that were tried."""
        if tried is None:
            return None
        chosen = {pair: self.tune.best(losses) for pair, losses in tried.items()} if self.tune else {}
        return [
            self._planned(*pair, Role.TUNED, seed, multiplier=multiplier)
            for seed in self.seeds
            for pair, multiplier in chosen.items()
        ]

    def _tries(self) -> Iterator[tuple[tuple[str, str, float], list[Planned]]]:
        if self.tune is None:
            return
        for game, learner in self.pairs:
            for multiplier in () if learner in self.self_tuned else self.tune.multipliers:
                seeds = self.tune.seeds
                yield (
                    (game, learner, multiplier),
                    [self._planned(game, learner, Role.TUNING, seed, multiplier=multiplier) for seed in seeds],
                )

    def _planned(self, game: str, learner: str, role: Role, seed: int, multiplier: float = 1.0) -> Planned:
        arena, player, checkpoints = self.games[game], self.learners[learner], self.checkpoints
        if role is Role.TUNING and self.tune:
            arena, checkpoints = self.tune.shortened(arena), TUNING_CHECKPOINTS
        player = replace(player, multiplier=player.multiplier * multiplier)
        return Planned(RunSettings(arena, player, seed, checkpoints, self.folder), game, learner, role)


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
    "defaults": _defaults,
    "games": reading.tables,
    "learners": reading.tables,
    "tune": Tune.read,
}
