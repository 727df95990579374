"""Games in episodes, known and unknown transitions and delays, beside the plain reference round by round."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from amdp.arrays import Floats
from amdp.game.arenas import Episodic
from amdp.game.delays import Ints
from amdp.game.loop import ArenaGame
from amdp.game.rounds import Round
from amdp.losses import FixedLosses
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import MarkovPolicies
from amdp.model.transitions import Kernel
from amdp.verification import reference
from amdp.verification.base import Check, Effort, Finding, Parts, at_most
from amdp.verification.comparison import (
    DRAWN_AGAIN,
    SYMMETRIC,
    Comparison,
    RecordingLearner,
    loss_on,
    path_of,
    random_streams,
    visits_of_state_0,
)
from amdp.verification.reference import Episodes, Path

STEPS, STATES, ACTIONS, INITIAL = 3, 3, 2, 2
SHAPE = STEPS, STATES, ACTIONS
RATE, LIMIT = 0.5, 6
SHORT, LONG, EVERY = 3, 12, 20  # rounds of a game; sets change most in the first ones, and every 20th game is longer
DELTA, SCALE = 0.1, 0.003  # a radius that is informative after one visit
KNOWN_GAMES, UNKNOWN_GAMES, DELAYED_GAMES = 400, 600, 400  # in the quick form


def checks() -> list[Check]:
    """Whole games of Algorithms 1, 3 and 4."""
    return [
        Check(
            "game-known",
            "Algorithm 1: FTPL with known transitions",
            "policies, paths, weights, sums of estimates and the regret are those of the pseudo-code",
            "sums of estimates in every round; expected losses and the best policy in hindsight",
            DRAWN_AGAIN,
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
            DRAWN_AGAIN,
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
            DRAWN_AGAIN,
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
    ]


def _known(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    comparison = Comparison()
    for rounds in _lengths(effort.samples(KNOWN_GAMES)):
        rows, delays = _rows(rng), np.zeros(rounds, dtype=np.int64)
        plain = reference.over_a_kernel(rows.tolist(), INITIAL, RATE, LIMIT)
        _EpisodicGame(comparison, parts, rows, MarkovPolicies(Kernel(rows), INITIAL), plain, delays, rng).compare()
    return comparison.finding()


def _unknown(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    comparison = Comparison()
    for rounds in _lengths(effort.samples(UNKNOWN_GAMES)):
        _over_sets(comparison, parts, np.zeros(rounds, dtype=np.int64), rng).compare()
    return comparison.finding()


def _delayed(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    comparison = Comparison()
    for rounds in _lengths(effort.samples(DELAYED_GAMES)):
        _over_sets(comparison, parts, rng.integers(0, 1 + rounds // 2, size=rounds, endpoint=True), rng).compare()
    return comparison.finding()


def _lengths(games: int) -> list[int]:
    return [SHORT if i % EVERY else LONG for i in range(games)]


def _rows(rng: np.random.Generator) -> Floats:
    return np.asarray(rng.dirichlet(np.full(STATES, 0.7), size=(STEPS, STATES, ACTIONS)))


def _over_sets(comparison: Comparison, parts: Parts, delays: Ints, rng: np.random.Generator) -> "_EpisodicGame":
    rounds = len(delays)
    box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, rounds, DELTA, scale=SCALE))
    plain = reference.over_sets(SHAPE, INITIAL, RATE, LIMIT, rounds, DELTA, SCALE)
    return _EpisodicGame(comparison, parts, _rows(rng), MarkovPolicies(box, INITIAL), plain, delays, rng)


@dataclass
class _EpisodicGame:
    """One game, compared while it is played and measured."""

    comparison: Comparison
    parts: Parts
    rows: Floats  # the true kernel
    domain: MarkovPolicies  # what the library's learner knows of it
    plain: Episodes
    delays: Ints  # [k]
    rng: np.random.Generator

    def compare(self) -> None:
        """Play, measure, and keep every difference."""
        self.tables = self.rng.uniform(size=(len(self.delays), *SHAPE))
        self.learner = RecordingLearner(self.parts.ftpl(RATE, LIMIT))
        game = ArenaGame(Episodic(Kernel(self.rows), INITIAL), FixedLosses(self.tables), self.parts.delays(self.delays))
        played = self.parts.play(game, self.learner, self.domain, random_streams(self.rng))
        self.paid: list[float] = []
        regret = self.parts.measure(game, self._recorded(played))
        rows, sums = self.rows.tolist(), np.cumsum(self.tables, axis=0).tolist()
        self.comparison.add_equals("measure", regret.paid, np.cumsum(self.paid))
        self.comparison.add_equals(
            "measure", regret.best, [reference.best_in_hindsight(rows, INITIAL, table) for table in sums]
        )

    def _recorded(self, played: Iterable[Round]) -> Iterator[Round]:
        """Pass the rounds on; the reference learns of each before the next one is played."""
        waiting: dict[int, tuple[Path, list[float]]] = {}
        for record in played:
            path = path_of(record.segment)
            self.comparison.add_equals("learn", self.learner.distribution.total, self.plain.estimates)
            self._compare_draws(record, path)
            waiting[record.k] = path, self.learner.weights.values.tolist()
            self.plain.observe(path)
            self._compare_sets(self.learner.narrowed.domain.dynamics)
            for j in range(record.k + 1):
                if j + self.delays[j] == record.k:
                    self.plain.learn(*waiting.pop(j), self.tables[j].tolist())
            yield record
        self._keep_widths(self.learner.narrowed.domain.dynamics)

    def _compare_sets(self, dynamics: Any) -> None:
        if isinstance(dynamics, BernsteinBox):
            self.comparison.add_equals("observe", dynamics.lower[:-1], self.plain.lower[:-1])
            self.comparison.add_equals("observe", dynamics.upper[:-1], self.plain.upper[:-1])

    def _compare_draws(self, record: Round, path: Path) -> None:
        rows, table, policy = self.rows.tolist(), self.tables[record.k].tolist(), record.policy.argmax(axis=2).tolist()
        other = self.plain.drawn(self.rng)
        for what, costs in (("losses", table), ("estimates", self.plain.estimates)):
            values = (reference.value(rows, choice, INITIAL, costs) for choice in (policy, other))
            self.comparison.add_draws("draw", what, *values)
        visits = (sum(self.plain.visits[0][INITIAL][choice[0][INITIAL]]) for choice in (policy, other))
        self.comparison.add_draws("draw", "visits of the first row", *visits)
        self.comparison.add_equals("start", path[0][0], INITIAL)
        again = reference.walked(rows, policy, INITIAL, self.rng)
        self.comparison.add_draws("play", "losses", loss_on(path, table), loss_on(again, table))
        self.comparison.add_draws("play", "steps in state 0", visits_of_state_0(path), visits_of_state_0(again))
        self.paid.append(reference.value(rows, policy, INITIAL, table))
        for h, weight in enumerate(self.learner.weights.values.tolist()):  # of each step, drawn independently
            self.comparison.add_draws("weigh", f"step {h}", weight, self.plain.counted(path, h, self.rng))

    def _keep_widths(self, dynamics: Any) -> None:
        if isinstance(dynamics, BernsteinBox):
            met = np.array(self.plain.visits)[:-1].sum(axis=-1) > 0.0
            self.comparison.widths.append(float((dynamics.upper - dynamics.lower)[:-1][met].mean()))
