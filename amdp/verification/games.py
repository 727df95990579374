"""Whole games of Algorithms 1 and 3 to 6, played by the library beside the plain reference, round by round."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amdp.algorithms.streams.epochs import ReplayedResampling
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import Floats
from amdp.game.arenas import Continuing, Episodic
from amdp.game.delays import Ints
from amdp.game.loop import ArenaGame
from amdp.game.rounds import Round
from amdp.losses import FixedLosses
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.transitions import Kernel
from amdp.verification import reference
from amdp.verification.base import Effort, Finding, Parts, check
from amdp.verification.comparison import SYMMETRIC, Comparison, RecordingLearner, path_of, random_streams
from amdp.verification.reference import Episodes, Path, Table
from amdp.verification.reference_stream import Stream

STEPS, STATES, ACTIONS, INITIAL = 3, 3, 2, 2
SHAPE = STEPS, STATES, ACTIONS
RATE, LIMIT = 0.5, 6
SHORT, LONG, EVERY = 3, 12, 20  # rounds of a game; sets change most in the first ones, and every 20th game is longer
DELTA, SCALE = 0.1, 0.003  # a radius that is informative after one visit
KNOWN_GAMES, UNKNOWN_GAMES, DELAYED_GAMES, STREAM_GAMES = 400, 600, 400, 150  # in the quick form
EPOCH, EPOCHS, STREAM_RATE = 9, 5, 2.0
PARKED = 0, 0  # the pair of a stream that stays where it is
# A stream with a rhythm of three steps: the laws of its policies still move when a switch ends.
RHYTHM = [
    [[1.0, 0.0, 0.0], [0.0, 0.99, 0.01]],
    [[0.0, 0.01, 0.99], [0.02, 0.0, 0.98]],
    [[0.99, 0.0, 0.01], [0.98, 0.02, 0.0]],
]
DRAWN_AGAIN = (
    "first and second moments of what a policy pays, of what its path pays and of weights, each drawn again by "
    "plain loops from the same history"
)
OVER_SETS = "policies, paths, weights, confidence sets, sums of estimates and the regret are those of the pseudo-code"
OVER_SETS_EXACT = "ends of all intervals and sums of estimates in every round; expected losses and the best policy"

Known = Callable[[Floats, int], tuple[MarkovPolicies, Episodes]]  # by the true kernel and the rounds of a game


@check(
    statement="Algorithm 1: FTPL with known transitions",
    claim="policies, paths, weights, sums of estimates and the regret are those of the pseudo-code",
    exact="sums of estimates in every round; expected losses and the best policy in hindsight",
    simulated=DRAWN_AGAIN,
    inequality=SYMMETRIC,
    rejects={
        "fixed-noise": ("draw",),
        "play-from-state-0": ("play", "start"),
        "trials-from-state-0": ("weigh",),
        "no-truncation": ("weigh",),
        "estimates-doubled": ("learn",),
        "comparator-without-last-round": ("measure",),
    },
)
def _game_known(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    def known(rows: Floats, rounds: int) -> tuple[MarkovPolicies, Episodes]:
        return MarkovPolicies(Kernel(rows), INITIAL), Episodes(rows.tolist(), rows.tolist(), INITIAL, RATE, LIMIT)

    return _episodes(parts, effort.samples(KNOWN_GAMES), known, _no_delays, rng)


@check(
    statement="Algorithm 3: FTPL with unknown transitions",
    claim=OVER_SETS,
    exact=OVER_SETS_EXACT,
    simulated=DRAWN_AGAIN,
    inequality=SYMMETRIC,
    rejects={
        "pessimism": ("draw",),
        "play-from-state-0": ("play", "start"),
        "trials-from-state-0": ("weigh",),
        "weights-after-narrowing": ("weigh",),
        "narrowed-at-powers-of-two": ("observe",),
        "frozen-sets": ("narrowed",),
        "estimates-doubled": ("learn",),
        "comparator-without-last-round": ("measure",),
    },
)
def _game_unknown(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    return _episodes(parts, effort.samples(UNKNOWN_GAMES), _sets(parts), _no_delays, rng)


@check(
    statement="Algorithm 4: FTPL with delayed feedback and unknown transitions",
    claim=OVER_SETS,
    exact=OVER_SETS_EXACT,
    simulated=DRAWN_AGAIN,
    inequality=SYMMETRIC,
    rejects={
        "pessimism": ("draw",),
        "play-from-state-0": ("play", "start"),
        "trials-from-state-0": ("weigh",),
        "late-weights": ("weigh",),
        "delay-off-by-one": ("learn",),
        "narrowed-at-powers-of-two": ("observe",),
        "frozen-sets": ("narrowed",),
        "comparator-without-last-round": ("measure",),
    },
)
def _game_delayed(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    def draw_delays(rounds: int) -> Ints:
        return rng.integers(0, 1 + rounds // 2, size=rounds, endpoint=True)

    return _episodes(parts, effort.samples(DELAYED_GAMES), _sets(parts), draw_delays, rng)


@check(
    statement="Algorithm 5, Algorithm 6: policy switching, and FTPL over stationary policies in epochs",
    claim="policies, epochs with their switches, weights, sums of estimates and the regret are as in the pseudo-code",
    exact="sums of estimates in every epoch; losses met and the best stationary policy",
    simulated=DRAWN_AGAIN,
    inequality=SYMMETRIC,
    rejects={
        "fixed-noise": ("draw",),
        "unshifted-target": ("play",),
        "play-from-state-0": ("start",),
        "trials-from-state-0": ("weigh",),
        "estimates-doubled": ("learn",),
        "comparator-without-last-round": ("measure",),
    },
    correction="a trial goes through the switch as well: weights are those of the exact form, not of the printed one",
)
def _game_stream(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    comparison, steps = Comparison(), EPOCH * EPOCHS
    entry = parts.switching(Kernel.homogeneous(np.array(RHYTHM), steps), INITIAL)
    plain = Stream(RHYTHM, INITIAL, steps, STREAM_RATE, LIMIT)
    for _ in range(effort.samples(STREAM_GAMES)):
        plain.begin()
        _StreamGame(comparison, parts, rng, entry, plain).play()
    return comparison.finding()


def _no_delays(rounds: int) -> Ints:
    return np.zeros(rounds, dtype=np.int64)


def _sets(parts: Parts) -> Known:
    def known(_: Floats, rounds: int) -> tuple[MarkovPolicies, Episodes]:
        box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, rounds, DELTA, scale=SCALE))
        return MarkovPolicies(box, INITIAL), reference.over_sets(SHAPE, INITIAL, RATE, LIMIT, rounds, DELTA, SCALE)

    return known


def _episodes(
    parts: Parts, games: int, known: Known, draw_delays: Callable[[int], Ints], rng: np.random.Generator
) -> Finding:
    comparison = Comparison()
    for i in range(games):
        rounds = SHORT if i % EVERY else LONG
        delays, rows = draw_delays(rounds), np.asarray(rng.dirichlet(np.full(STATES, 0.7), size=SHAPE))
        _EpisodicGame(comparison, parts, rng, rows, *known(rows, rounds), delays).play()
    return comparison.finding()


@dataclass
class _Game(ABC):
    """One game, compared while it is played and measured."""

    comparison: Comparison
    parts: Parts
    rng: np.random.Generator
    tables: Floats = field(init=False)  # [k, h, s, a]
    learner: RecordingLearner = field(init=False)
    paid: list[float] = field(init=False, default_factory=list)  # in each round, by the reference

    def compare(self, game: ArenaGame, learner: Any, domain: Domain, oracle: str | None, best: list[float]) -> None:
        """Play, measure, and keep every difference; `best` is what the best policy pays after each round."""
        self.learner = RecordingLearner(learner)
        played = self.parts.play(game, self.learner, domain, random_streams(self.rng))
        regret = self.parts.measure(game, self.recorded(played), oracle)
        self.comparison.add_equals("measure", regret.paid, np.cumsum(self.paid))
        self.comparison.add_equals("measure", regret.best, best)

    @abstractmethod
    def recorded(self, played: Iterable[Round]) -> Iterator[Round]:
        """Pass the rounds on; the reference learns of each before the next one is played."""

    def compare_paths(self, path: Path, again: Path, table: Table, start: int = 0) -> None:
        """Two paths of one policy that begin at step `start`."""
        losses = (sum(table[start + h][s][a] for h, (s, a) in enumerate(either)) for either in (path, again))
        self.comparison.add_draws("play", "losses", *losses)
        self.comparison.add_draws("play", "steps in state 0", *(sum(s == 0 for s, _ in x) for x in (path, again)))


@dataclass
class _EpisodicGame(_Game):
    rows: Floats  # the true kernel
    domain: MarkovPolicies  # what the library's learner knows of it
    plain: Episodes
    delays: Ints  # [k]

    def play(self) -> None:
        """Play episodes of random losses."""
        self.tables = self.rng.uniform(size=(len(self.delays), *SHAPE))
        game = ArenaGame(Episodic(Kernel(self.rows), INITIAL), FixedLosses(self.tables), self.parts.delays(self.delays))
        rows, sums = self.rows.tolist(), np.cumsum(self.tables, axis=0).tolist()
        best = [reference.best_in_hindsight(rows, INITIAL, table) for table in sums]
        self.compare(game, self.parts.ftpl(RATE, LIMIT), self.domain, None, best)

    def recorded(self, played: Iterable[Round]) -> Iterator[Round]:
        waiting: dict[int, tuple[Path, list[float]]] = {}
        for record in played:
            path = path_of(record.segment)
            self.comparison.add_equals("learn", self.learner.distribution.total, self.plain.estimates)
            self._compare_draws(record, path)
            waiting[record.k] = path, self.learner.weights.values.tolist()
            self.plain.observe(path)
            dynamics = self.learner.narrowed.domain.dynamics
            if isinstance(dynamics, BernsteinBox):
                self.comparison.add_equals("observe", dynamics.lower[:-1], self.plain.lower[:-1])
                self.comparison.add_equals("observe", dynamics.upper[:-1], self.plain.upper[:-1])
            for j in range(record.k + 1):
                if j + self.delays[j] == record.k:
                    self.plain.learn(*waiting.pop(j), self.tables[j].tolist())
            yield record
        if isinstance(dynamics, BernsteinBox):
            met = np.array(self.plain.visits)[:-1].sum(axis=-1) > 0.0
            self.comparison.widths.append(float((dynamics.upper - dynamics.lower)[:-1][met].mean()))

    def _compare_draws(self, record: Round, path: Path) -> None:
        rows, table, policy = self.rows.tolist(), self.tables[record.k].tolist(), record.policy.argmax(axis=2).tolist()
        other = self.plain.drawn(self.rng)
        for what, costs in (("losses", table), ("estimates", self.plain.estimates)):
            values = (reference.value(rows, choice, INITIAL, costs) for choice in (policy, other))
            self.comparison.add_draws("draw", what, *values)
        visits = (sum(self.plain.visits[0][INITIAL][choice[0][INITIAL]]) for choice in (policy, other))
        self.comparison.add_draws("draw", "visits of the first row", *visits)
        self.comparison.add_equals("start", path[0][0], INITIAL)
        self.compare_paths(path, reference.walked(rows, policy, INITIAL, self.rng), table)
        self.paid.append(reference.value(rows, policy, INITIAL, table))
        for h, weight in enumerate(self.learner.weights.values.tolist()):  # of each step, drawn independently
            self.comparison.add_draws("weigh", f"step {h}", weight, self.plain.counted(path, h, self.rng))


@dataclass
class _StreamGame(_Game):
    entry: PolicySwitching
    plain: Stream

    def play(self) -> None:
        """Play a stream of random losses, largest where it may be parked, so that most policies move."""
        self.tables = 0.5 * self.rng.uniform(size=(self.plain.steps, 1, STATES, ACTIONS))
        self.tables[:, 0, *PARKED] += 0.5
        best = []
        for stop in range(EPOCH, self.plain.steps + 1, EPOCH):
            table = np.where(np.arange(self.plain.steps)[:, None, None] < stop, self.tables[:, 0], 0.0)
            best.append(self.plain.best_in_hindsight(table.tolist()))
        game = ArenaGame(Continuing(self.entry, EPOCH), FixedLosses(self.tables))
        estimator = ReplayedResampling(LIMIT, self.entry)
        learner = self.parts.leader(self.parts.laplace(STREAM_RATE), estimator, "enumeration")
        self.compare(game, learner, game.arena.domain, "enumeration", best)

    def recorded(self, played: Iterable[Round]) -> Iterator[Round]:
        table = self.tables[:, 0].tolist()
        for record in played:
            entering, path = path_of(record.entering), path_of(record.segment)
            policy, stop = record.policy.argmax(axis=1).tolist(), (record.k + 1) * EPOCH
            whole = entering + path
            if record.k == 0:
                self.comparison.add_equals("start", whole[0][0], INITIAL)
            self.plain.state = whole[0][0]
            self.comparison.add_equals("learn", self.learner.distribution.total, self.plain.estimates)
            self._compare_draws(entering, path, policy, stop)
            self.paid.append(sum(table[record.k * EPOCH + i][s][a] for i, (s, a) in enumerate(whole)))
            self.plain.learn(path, stop, self.learner.weights.values.tolist(), table)
            self.plain.move_on(policy, path, stop)
            yield record

    def _compare_draws(self, entering: Path, path: Path, policy: list[int], stop: int) -> None:
        plain, table = self.plain, self.tables[:, 0].tolist()
        both = [plain.policies.index(choice) for choice in (policy, plain.drawn(self.rng))]
        for what, costs in (("losses", table), ("estimates", plain.estimates)):
            self.comparison.add_draws("draw", what, *(plain.pays(choice, costs) for choice in both))
        switch_again, path_again, _ = plain.epoch(policy, stop, self.rng)
        self.compare_paths(entering + path, switch_again + path_again, table, stop - EPOCH)
        self.comparison.add_draws("play", "steps of a switch", len(entering), len(switch_again))
        law = plain.laws[both[0]]  # chances of the states that were followed at their times, summed
        rhythms = (sum(law[stop - len(x) + i][s] for i, (s, _) in enumerate(x)) for x in (path, path_again))
        self.comparison.add_draws("play", "rhythm", *rhythms)
        if path:
            i = int(self.rng.integers(len(path)))
            weight = float(self.learner.weights.values[i])
            self.comparison.add_draws("weigh", "weights", weight, plain.counted(path, stop, i, self.rng))
