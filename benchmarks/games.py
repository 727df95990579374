"""Does every game of a learner that projects come to its end? Random points do not meet what games lead to.

Every learner that projects, told the kernel or a box, also boxes far narrower than theory asks for; every world of
episodes, and two random ones whose rows lean to few states and whose start is not state 0; rates far above what theory
gives; losses that stay, and losses that change:

python -m benchmarks.games FOLDER [--worlds NAME ...] [--told NAME ...] [--learners NAME ...] [--losses NAME ...]
                                  [--multipliers X ...] [--rounds K] [--processes N] [--quick]

Each game leaves a file in FOLDER: stopped and called again, it goes on. It exits with 1 if a game died.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, ClassVar

import numpy as np

from amdp import MarkovPolicies, losses, registry
from amdp.algorithms.named import GROUP, learner
from amdp.algorithms.occupancy.measures import MeasureLearner
from amdp.arrays import Floats
from amdp.errors import AmdpError
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.instances import Instance, random_dense
from amdp.instances.named import standard
from amdp.model.confidence import BernsteinBox, Radius
from amdp.model.domains import Domain
from amdp.oracles.projection.base import Projection, ProjectionOracle, Projector
from amdp.oracles.projection.newton import NewtonProjection
from benchmarks.studies.tasks import gathered
from benchmarks.timing import one_thread

ROUNDS = 2_000
MULTIPLIERS = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
LOSSES = ("bernoulli", "switching", "swap", "walk")
BOXES = {"box": 1.0, "narrow-box": 0.03, "thin-box": 0.001}  # and what scales their radius
TOLD = ("kernel", *BOXES)
LARGE = 100  # states above which boxes are left out: seconds a round
SEED = 1


def spiky(steps: int, states: int, actions: int) -> Instance:
    """Rows that lean to one state or two, started in the last state."""
    made = random_dense(steps, states, actions, np.random.default_rng(SEED), concentration=0.02)
    return replace(made, name="spiky", initial=states - 1)


def worlds() -> dict[str, Instance]:
    """All worlds of episodes, and the spiky ones."""
    known = {name: make() for name, make in standard().items()}
    return known | {"spiky": spiky(20, 6, 2), "spiky-wide": spiky(8, 12, 4)}


def projecting(domain: Domain) -> list[str]:
    """The names of the learners that project onto the measures of a domain, and whose rate can be multiplied."""
    return [name for name in registry.names(GROUP) if isinstance(_made(name, domain), MeasureLearner)]


def _made(name: str, domain: Domain) -> Any:
    """The learner of that name; None if it does not play this."""
    try:
        return learner(name, domain, ROUNDS, multiplier=2.0)
    except AmdpError:
        return None


@dataclass
class Tally:
    """What the projections of a game took."""

    solves: int = 0
    by_dual: int = 0  # that took dual steps
    iterations: int = 0  # of the longest

    def add(self, found: Projection) -> None:
        """Count an answer."""
        self.solves += 1
        self.by_dual += bool(found.report.note)
        self.iterations = max(self.iterations, found.report.iterations)


@dataclass(frozen=True)
class Counted:
    """The answers of an oracle, counted."""

    oracle: ProjectionOracle = field(default_factory=NewtonProjection)
    tally: Tally = field(default_factory=Tally)
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        """What the oracle supports."""
        return self.oracle.supports(domain)

    def bind(self, domain: Domain) -> Projector:
        """A projector that counts."""
        return _CountedProjector(self, domain)


class _CountedProjector(Projector):
    oracle: Counted

    def __init__(self, oracle: Counted, domain: Domain) -> None:
        super().__init__(oracle, domain)
        self._bound = oracle.oracle.bind(domain)

    def project(self, log_point: Floats, near: Projection | None = None) -> Projection:
        found = self._bound.project(log_point, near)
        self.oracle.tally.add(found)
        return found


@dataclass(frozen=True)
class ProjectedGame:
    """One game; all of these decide it."""

    world: str
    told: str
    learner: str
    multiplier: float
    losses: str
    rounds: int = ROUNDS
    seed: int = SEED

    @property
    def file(self) -> str:
        """Of its result."""
        return f"{self}.json"

    def __str__(self) -> str:
        parts = self.world, self.told, self.learner, f"x{self.multiplier:g}", self.losses, self.rounds, self.seed
        return "_".join(map(str, parts))

    def measured(self) -> dict[str, float]:
        """Rounds played, what the projections took, and seconds of the processor."""
        world, counted, began, played = worlds()[self.world], Counted(), process_time(), 0
        domain = told(self.told, world, self.rounds)
        named = learner(self.learner, domain, self.rounds, multiplier=self.multiplier)
        assert isinstance(named, MeasureLearner)
        player = replace(named, projection=counted)
        adversary = losses.named(self.losses, world.shape, self.rounds, self.seed, world.costs)
        game = ArenaGame(Episodic(world.kernel, world.initial), adversary, None, player.feedback)
        try:
            for one in play_rounds(game, player, domain, Streams.from_seed(self.seed)):
                played = one.k + 1
        except Exception as problem:  # whatever ends a game is what this looks for
            print(f"DIED in round {played + 1}: {self}: {type(problem).__name__}: {problem}", flush=True)
        return {"played": played, "seconds": process_time() - began, **vars(counted.tally)}


def told(kind: str, world: Instance, rounds: int) -> MarkovPolicies:
    """What a learner is told of the transitions: all, or a box that it narrows as it plays."""
    if kind == "kernel":
        return MarkovPolicies(world.kernel, world.initial)
    radius = Radius.paper(world.shape, rounds, scale=BOXES[kind])
    return MarkovPolicies(BernsteinBox.vacuous(world.shape, radius), world.initial)


def games(asked: Namespace) -> Iterator[ProjectedGame]:
    """All games that were asked for."""
    known = worlds()
    for kind, name in product(asked.told, asked.worlds):
        if kind in BOXES and known[name].shape[1] > LARGE:
            continue
        domain = told(kind, known[name], asked.rounds)
        players = [player for player in projecting(domain) if player in (asked.learners or [player])]
        for player, table, multiplier in product(players, asked.losses, asked.multipliers):
            yield ProjectedGame(name, kind, player, multiplier, table, asked.rounds)


def report(results: Mapping[ProjectedGame, Mapping[str, float]]) -> int:
    """Print what the games of each world and learner took, and those that died; 1 if there are any."""
    groups: dict[tuple[str, ...], list[Mapping[str, float]]] = {}
    for game, result in results.items():
        groups.setdefault((game.world, game.told, game.learner), []).append(result)
    for names, found in groups.items():
        solves, by_dual = (int(sum(one[key] for one in found)) for key in ("solves", "by_dual"))
        longest, seconds = int(max(one["iterations"] for one in found)), sum(one["seconds"] for one in found)
        print(
            f"{' '.join(names):50s} {len(found):3d} games {solves:8d} solves, {by_dual} with dual steps, "
            f"at most {longest} steps; {seconds:.0f} s"
        )
    died = [game for game, result in results.items() if result["played"] < game.rounds]
    print(f"{len(results) - len(died)} games came to their end, {len(died)} died{':' if died else ''}", *died, sep="\n")
    return int(bool(died))


def _parse(arguments: Sequence[str] | None) -> Namespace:
    names = list(worlds())
    parser = ArgumentParser(prog="python -m benchmarks.games", description="Do games with projections end?")
    parser.add_argument("folder", type=Path, help="where each game leaves a file")
    parser.add_argument("--worlds", nargs="+", default=names, choices=names)
    parser.add_argument("--told", nargs="+", default=TOLD, choices=TOLD)
    parser.add_argument("--learners", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--losses", nargs="+", default=LOSSES, metavar="NAME")
    parser.add_argument("--multipliers", nargs="+", type=float, default=MULTIPLIERS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a world and two rates, a few rounds")
    asked = parser.parse_args(arguments)
    if asked.quick:
        asked.worlds, asked.losses, asked.multipliers, asked.rounds = ["lock"], ["bernoulli"], (1.0, 100.0), 20
    return asked


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what has not been played, and report on all."""
    asked = _parse(arguments)
    one_thread()
    with ProcessPoolExecutor(asked.processes) as pool:
        return report(gathered(games(asked), asked.folder, pool))


if __name__ == "__main__":
    raise SystemExit(main())
