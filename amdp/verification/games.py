"""Games of the library beside the plain reference, round by round.

The reference is told what was played, and draws again, from the same history, what the library drew: the policy, the
path of the policy that was played, and the weight of one of its pairs. Given the history, both draws have one law if
the library is right, so their difference is symmetric about 0, whatever that law is. What is not drawn (confidence
sets, sums of estimates, what was paid, what the best policy pays) must be the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amdp.algorithms.estimators.feedback import Weights
from amdp.algorithms.streams.epochs import ReplayedResampling
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import Floats
from amdp.game.arenas import Continuing, Episodic
from amdp.game.delays import Ints
from amdp.game.loop import ArenaGame
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import MarkovPolicies
from amdp.model.segments import Segment
from amdp.model.transitions import Kernel
from amdp.verification import rates, reference
from amdp.verification.base import Check, Effort, Finding, Parts, agreement, at_most, judged, unsurprising
from amdp.verification.reference import Episodes, Path, Stream, Table

STEPS, STATES, ACTIONS, INITIAL = 3, 3, 2, 2
SHAPE = STEPS, STATES, ACTIONS
RATE, LIMIT = 0.5, 6
SHORT, LONG, EVERY = 3, 12, 20  # rounds of a game; sets change most in the first ones, and every 20th game is longer
DELTA, SCALE = 0.1, 0.003  # a radius that is informative after one visit
NARROW = 0.7  # the mean width of intervals of rows that were visited, at most, at the end of a game
KNOWN_GAMES, UNKNOWN_GAMES, DELAYED_GAMES, STREAM_GAMES = 400, 600, 400, 150  # in the quick form
EPOCH, EPOCHS, STREAM_RATE = 9, 5, 2.0
PARKED = 0, 0  # the pair that stays where it is
# A stream with a rhythm of three steps: the laws of its policies still move when a switch ends.
RHYTHM = [
    [[1.0, 0.0, 0.0], [0.0, 0.99, 0.01]],
    [[0.0, 0.01, 0.99], [0.02, 0.0, 0.98]],
    [[0.99, 0.0, 0.01], [0.98, 0.02, 0.0]],
]
SYMMETRIC = "differences of two draws from one law are symmetric (de la Pena 1999)"
STAGES = "draw", "play", "weigh"


def checks() -> list[Check]:
    """Whole games of Algorithms 1, 3, 4 and 6."""
    compared = (
        "first and second moments of what a policy pays, of what its path pays and of weights, each drawn again by "
        "plain loops from the same history"
    )
    return [
        Check(
            "game-known",
            "Algorithm 1: FTPL with known transitions",
            "policies, paths, weights, sums of estimates and the regret are those of the pseudo-code",
            "sums of estimates in every round; expected losses and the best policy in hindsight",
            compared,
            {
                "fixed-noise": ("draw",),
                "play-from-state-0": ("play", "start"),
                "trials-from-state-0": ("weigh",),
                "no-truncation": ("weigh",),
                "estimates-doubled": ("learn",),
                "comparator-without-last-round": ("measure",),
            },
            _known,
            at_most(SYMMETRIC),
        ),
        Check(
            "game-unknown",
            "Algorithm 3: FTPL with unknown transitions",
            "policies, paths, weights, confidence sets, sums of estimates and the regret are those of the pseudo-code",
            "ends of all intervals and sums of estimates in every round; expected losses and the best policy",
            compared,
            {
                "pessimism": ("draw",),
                "play-from-state-0": ("play", "start"),
                "trials-from-state-0": ("weigh",),
                "weights-after-narrowing": ("weigh",),
                "narrowed-at-powers-of-two": ("observe",),
                "frozen-sets": ("narrowed",),
                "estimates-doubled": ("learn",),
                "comparator-without-last-round": ("measure",),
            },
            _unknown,
            at_most(SYMMETRIC),
        ),
        Check(
            "game-delayed",
            "Algorithm 4: FTPL with delayed feedback and unknown transitions",
            "policies, paths, weights, confidence sets, sums of estimates and the regret are those of the pseudo-code",
            "ends of all intervals and sums of estimates in every round; expected losses and the best policy",
            compared,
            {
                "pessimism": ("draw",),
                "play-from-state-0": ("play", "start"),
                "trials-from-state-0": ("weigh",),
                "late-weights": ("weigh",),
                "delay-off-by-one": ("learn",),
                "narrowed-at-powers-of-two": ("observe",),
                "frozen-sets": ("narrowed",),
                "comparator-without-last-round": ("measure",),
            },
            _delayed,
            at_most(SYMMETRIC),
        ),
        Check(
            "game-stream",
            "Algorithm 5, Algorithm 6: policy switching, and FTPL over stationary policies in epochs",
            "policies, epochs with their switches, weights, sums of estimates and the regret are as in the pseudo-code",
            "sums of estimates in every epoch; losses met and the best stationary policy",
            compared,
            {
                "fixed-noise": ("draw",),
                "unshifted-target": ("play",),
                "play-from-state-0": ("start",),
                "trials-from-state-0": ("weigh",),
                "estimates-doubled": ("learn",),
                "comparator-without-last-round": ("measure",),
            },
            _stream,
            at_most(SYMMETRIC),
            "a trial goes through the switch as well: weights are those of the exact form, not of the printed one",
        ),
    ]


class Watched:
    """A learner seen from outside: everything is passed on to it, and what it last weighed is kept."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.distribution: Any = None  # that played the last round
        self.narrowed: Any = None  # what it became after it saw the path
        self.weights = Weights(np.empty(0))

    @property
    def feedback(self) -> type:
        """As the learner's."""
        kind: type = self.learner.feedback
        return kind

    def start(self, domain: Any, rng: np.random.Generator) -> Any:
        """As the learner does."""
        return self.learner.start(domain, rng)

    def observe(self, distribution: Any, segment: Segment) -> Any:
        """As the learner does, and keep it."""
        self.narrowed = self.learner.observe(distribution, segment)
        return self.narrowed

    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        """As the learner does, and keep it."""
        self.distribution, self.weights = distribution, self.learner.weigh(distribution, segment, rng)
        return self.weights

    def learn(self, distribution: Any, feedback: Any) -> Any:
        """As the learner does."""
        return self.learner.learn(distribution, feedback)


@dataclass
class Comparison:
    """What games of the library and the reference differ in."""

    pairs: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    off: dict[str, float] = field(default_factory=dict)  # the greatest difference of what is not drawn
    widths: list[float] = field(default_factory=list)  # of confidence intervals at the end of games

    def drawn(self, stage: str, what: str, library: float, plain: float) -> None:
        """Two draws from one law, if the library is right."""
        self.pairs[stage, what].append((library, plain))

    def same(self, what: str, library: Any, plain: Any) -> None:
        """Two arrays that are the same, if the library is right."""
        difference = np.abs(np.asarray(library, dtype=np.float64) - np.asarray(plain, dtype=np.float64)).max()
        self.off[what] = max(self.off.get(what, 0.0), float(difference))

    def finding(self) -> Finding:
        """The least likely difference of each stage, and the greatest of what is not drawn."""
        tests, rounds = 2 * len(self.pairs), len(self.pairs["draw", "losses"])
        chances = dict.fromkeys(STAGES, 1.0)
        for (stage, _), pairs in self.pairs.items():
            values = np.array(pairs)
            for moment, unit in ((values, 1.0), (values**2, 4.0)):
                chances[stage] = min(chances[stage], rates.symmetric(moment[:, 0] - moment[:, 1], unit))
        margins = {stage: unsurprising(chance, tests) for stage, chance in chances.items()}
        margins |= {what: agreement(off) for what, off in self.off.items()}
        sets = ""
        if self.widths:
            margins["narrowed"] = NARROW - float(np.mean(self.widths))
            sets = f"; intervals are {np.mean(self.widths):.2f} wide at the end"
        text = (
            ", ".join(f"{stage} p = {chance:.2g}" for stage, chance in chances.items())
            + f" (least of {tests}); "
            + ", ".join(f"{what} off by {off:.0e}" for what, off in self.off.items())
            + sets
        )
        return judged(text, rounds, margins, **{f"p_{stage}": chance for stage, chance in chances.items()})


# --- episodes ---------------------------------------------------------------------------------------------------------


def _known(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    found = Comparison()
    for rounds in _lengths(effort.samples(KNOWN_GAMES)):
        rows, waits = _rows(rng), np.zeros(rounds, dtype=np.int64)
        plain = reference.over_a_kernel(rows.tolist(), INITIAL, RATE, LIMIT)
        _EpisodicGame(found, parts, rows, MarkovPolicies(Kernel(rows), INITIAL), plain, waits, rng).compare()
    return found.finding()


def _unknown(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    found = Comparison()
    for rounds in _lengths(effort.samples(UNKNOWN_GAMES)):
        _over_sets(found, parts, np.zeros(rounds, dtype=np.int64), rng).compare()
    return found.finding()


def _delayed(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    found = Comparison()
    for rounds in _lengths(effort.samples(DELAYED_GAMES)):
        _over_sets(found, parts, rng.integers(0, 1 + rounds // 2, size=rounds, endpoint=True), rng).compare()
    return found.finding()


def _lengths(games: int) -> list[int]:
    return [SHORT if i % EVERY else LONG for i in range(games)]


def _rows(rng: np.random.Generator) -> Floats:
    return np.asarray(rng.dirichlet(np.full(STATES, 0.7), size=(STEPS, STATES, ACTIONS)))


def _over_sets(found: Comparison, parts: Parts, waits: Ints, rng: np.random.Generator) -> "_EpisodicGame":
    rounds = len(waits)
    box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, rounds, DELTA, scale=SCALE))
    plain = reference.over_sets(SHAPE, INITIAL, RATE, LIMIT, rounds, DELTA, SCALE)
    return _EpisodicGame(found, parts, _rows(rng), MarkovPolicies(box, INITIAL), plain, waits, rng)


@dataclass
class _EpisodicGame:
    """One game, compared while it is played and measured."""

    found: Comparison
    parts: Parts
    rows: Floats  # the true kernel
    domain: MarkovPolicies  # what the library's learner knows of it
    plain: Episodes
    waits: Ints  # [k], delays
    rng: np.random.Generator

    def compare(self) -> None:
        """Play, measure, and keep every difference."""
        self.tables = self.rng.uniform(size=(len(self.waits), *SHAPE))
        self.learner = Watched(self.parts.ftpl(RATE, LIMIT))
        game = ArenaGame(Episodic(Kernel(self.rows), INITIAL), FixedLosses(self.tables), self.parts.delays(self.waits))
        played = self.parts.play(game, self.learner, self.domain, _streams(self.rng))
        self.paid: list[float] = []
        regret = self.parts.measure(game, self._each(played))
        rows, sums = self.rows.tolist(), np.cumsum(self.tables, axis=0).tolist()
        self.found.same("measure", regret.paid, np.cumsum(self.paid))
        self.found.same("measure", regret.best, [reference.best_in_hindsight(rows, INITIAL, one) for one in sums])

    def _each(self, played: Iterable[Round]) -> Iterator[Round]:
        """Pass the rounds on; the reference learns of each before the next one is played."""
        waiting: dict[int, tuple[Path, list[float]]] = {}
        for one in played:
            path = _path(one.segment)
            self.found.same("learn", self.learner.distribution.total, self.plain.estimates)
            self._compare_draws(one, path)
            waiting[one.k] = path, self.learner.weights.values.tolist()
            self.plain.observe(path)
            self._compare_sets(self.learner.narrowed.domain.dynamics)
            for j in range(one.k + 1):
                if j + self.waits[j] == one.k:
                    self.plain.learn(*waiting.pop(j), self.tables[j].tolist())
            yield one
        self._keep_widths(self.learner.narrowed.domain.dynamics)

    def _compare_sets(self, dynamics: Any) -> None:
        if isinstance(dynamics, BernsteinBox):
            self.found.same("observe", dynamics.lower[:-1], self.plain.lower[:-1])
            self.found.same("observe", dynamics.upper[:-1], self.plain.upper[:-1])

    def _compare_draws(self, one: Round, path: Path) -> None:
        rows, table, policy = self.rows.tolist(), self.tables[one.k].tolist(), one.policy.argmax(axis=2).tolist()
        other = self.plain.drawn(self.rng)
        for what, costs in (("losses", table), ("estimates", self.plain.estimates)):
            values = (reference.value(rows, choice, INITIAL, costs) for choice in (policy, other))
            self.found.drawn("draw", what, *values)
        visits = (sum(self.plain.visits[0][INITIAL][choice[0][INITIAL]]) for choice in (policy, other))
        self.found.drawn("draw", "visits of the first row", *visits)
        self.found.same("start", path[0][0], INITIAL)
        again = reference.walked(rows, policy, INITIAL, self.rng)
        self.found.drawn("play", "losses", _met(path, table), _met(again, table))
        self.found.drawn("play", "steps in state 0", _in_state_0(path), _in_state_0(again))
        self.paid.append(reference.value(rows, policy, INITIAL, table))
        for h, weight in enumerate(self.learner.weights.values.tolist()):  # of each step, drawn independently
            self.found.drawn("weigh", f"step {h}", weight, self.plain.counted(path, h, self.rng))

    def _keep_widths(self, dynamics: Any) -> None:
        if isinstance(dynamics, BernsteinBox):
            met = np.array(self.plain.visits)[:-1].sum(axis=-1) > 0.0
            self.found.widths.append(float((dynamics.upper - dynamics.lower)[:-1][met].mean()))


def _streams(rng: np.random.Generator) -> Streams:
    return Streams.from_seed(int(rng.integers(2**32)))


def _path(segment: Segment) -> Path:
    return list(zip(segment.states.tolist(), segment.actions.tolist(), strict=True))


def _met(path: Path, table: Table, start: int = 0) -> float:
    return sum(table[start + h][s][a] for h, (s, a) in enumerate(path))


def _in_state_0(path: Path) -> int:
    return sum(s == 0 for s, _ in path)


def _in_rhythm(law: list[list[float]], path: Path, stop: int) -> float:
    """The chances of the states that were followed, under the law of the policy at their times, summed."""
    return sum(law[stop - len(path) + i][s] for i, (s, _) in enumerate(path))


# --- a stream ---------------------------------------------------------------------------------------------------------


def _stream(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    found, steps = Comparison(), EPOCH * EPOCHS
    entry = parts.switching(Kernel.homogeneous(np.array(RHYTHM), steps), INITIAL)
    plain = Stream(RHYTHM, INITIAL, steps, STREAM_RATE, LIMIT)
    for _ in range(effort.samples(STREAM_GAMES)):
        plain.begin()
        _StreamGame(found, parts, entry, plain, rng).compare()
    return found.finding()


@dataclass
class _StreamGame:
    """One stream, compared while it is played and measured."""

    found: Comparison
    parts: Parts
    entry: PolicySwitching
    plain: Stream
    rng: np.random.Generator

    def compare(self) -> None:
        """Play, measure, and keep every difference."""
        self.tables = 0.5 * self.rng.uniform(size=(self.plain.steps, 1, STATES, ACTIONS))
        self.tables[:, 0, *PARKED] += 0.5  # so that most policies move
        noise, estimator = self.parts.laplace(STREAM_RATE), ReplayedResampling(LIMIT, self.entry)
        self.learner = Watched(self.parts.leader(noise, estimator, "enumeration"))
        game = ArenaGame(Continuing(self.entry, EPOCH), FixedLosses(self.tables))
        played = self.parts.play(game, self.learner, game.arena.domain, _streams(self.rng))
        self.paid: list[float] = []
        regret = self.parts.measure(game, self._each(played), "enumeration")
        best = []
        for stop in range(EPOCH, self.plain.steps + 1, EPOCH):
            table = np.where(np.arange(self.plain.steps)[:, None, None] < stop, self.tables[:, 0], 0.0)
            best.append(self.plain.best_in_hindsight(table.tolist()))
        self.found.same("measure", regret.paid, np.cumsum(self.paid))
        self.found.same("measure", regret.best, best)

    def _each(self, played: Iterable[Round]) -> Iterator[Round]:
        """Pass the epochs on; the reference learns of each before the next one is played."""
        table = self.tables[:, 0].tolist()
        for one in played:
            entering, path = _path(one.entering), _path(one.segment)
            policy, stop = one.policy.argmax(axis=1).tolist(), (one.k + 1) * EPOCH
            if one.k == 0:
                self.found.same("start", (entering + path)[0][0], INITIAL)
            self.plain.state = (entering + path)[0][0]
            self.found.same("learn", self.learner.distribution.total, self.plain.estimates)
            self._compare_draws(entering, path, policy, stop)
            self.paid.append(_met(entering + path, table, one.k * EPOCH))
            self.plain.learn(path, stop, self.learner.weights.values.tolist(), table)
            self.plain.move_on(policy, path, stop)
            yield one

    def _compare_draws(self, entering: Path, path: Path, policy: list[int], stop: int) -> None:
        plain, table, start = self.plain, self.tables[:, 0].tolist(), stop - EPOCH
        both = [plain.policies.index(choice) for choice in (policy, plain.drawn(self.rng))]
        for what, costs in (("losses", table), ("estimates", plain.estimates)):
            self.found.drawn("draw", what, *(plain.pays(choice, costs) for choice in both))
        again = plain.epoch(policy, stop, self.rng)
        whole, other = entering + path, again[0] + again[1]
        self.found.drawn("play", "losses", _met(whole, table, start), _met(other, table, start))
        self.found.drawn("play", "steps in state 0", _in_state_0(whole), _in_state_0(other))
        self.found.drawn("play", "steps of a switch", len(entering), len(again[0]))
        law = plain.laws[both[0]]
        self.found.drawn("play", "rhythm", *(_in_rhythm(law, one, stop) for one in (path, again[1])))
        if path:
            i = int(self.rng.integers(len(path)))
            weight = float(self.learner.weights.values[i])
            self.found.drawn("weigh", "weights", weight, plain.counted(path, stop, i, self.rng))
