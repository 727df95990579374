"""Games of an infinite horizon, in epochs, beside the plain reference epoch by epoch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from amdp.algorithms.streams.epochs import ReplayedResampling
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.game.arenas import Continuing
from amdp.game.loop import ArenaGame
from amdp.game.rounds import Round
from amdp.losses import FixedLosses
from amdp.model.transitions import Kernel
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
from amdp.verification.reference import Path
from amdp.verification.reference_stream import Stream

STATES, ACTIONS, INITIAL, LIMIT = 3, 2, 2, 6
GAMES = 150  # in the quick form
EPOCH, EPOCHS, STREAM_RATE = 9, 5, 2.0
PARKED = 0, 0  # the pair that stays where it is
# A stream with a rhythm of three steps: the laws of its policies still move when a switch ends.
RHYTHM = [
    [[1.0, 0.0, 0.0], [0.0, 0.99, 0.01]],
    [[0.0, 0.01, 0.99], [0.02, 0.0, 0.98]],
    [[0.99, 0.0, 0.01], [0.98, 0.02, 0.0]],
]


def checks() -> list[Check]:
    """Whole games of Algorithms 5 and 6."""
    return [
        Check(
            "game-stream",
            "Algorithm 5, Algorithm 6: policy switching, and FTPL over stationary policies in epochs",
            "policies, epochs with their switches, weights, sums of estimates and the regret are as in the pseudo-code",
            "sums of estimates in every epoch; losses met and the best stationary policy",
            DRAWN_AGAIN,
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


def _stream(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    comparison, steps = Comparison(), EPOCH * EPOCHS
    entry = parts.switching(Kernel.homogeneous(np.array(RHYTHM), steps), INITIAL)
    plain = Stream(RHYTHM, INITIAL, steps, STREAM_RATE, LIMIT)
    for _ in range(effort.samples(GAMES)):
        plain.begin()
        _StreamGame(comparison, parts, entry, plain, rng).compare()
    return comparison.finding()


@dataclass
class _StreamGame:
    """One stream, compared while it is played and measured."""

    comparison: Comparison
    parts: Parts
    entry: PolicySwitching
    plain: Stream
    rng: np.random.Generator

    def compare(self) -> None:
        """Play, measure, and keep every difference."""
        self.tables = 0.5 * self.rng.uniform(size=(self.plain.steps, 1, STATES, ACTIONS))
        self.tables[:, 0, *PARKED] += 0.5  # so that most policies move
        noise, estimator = self.parts.laplace(STREAM_RATE), ReplayedResampling(LIMIT, self.entry)
        self.learner = RecordingLearner(self.parts.leader(noise, estimator, "enumeration"))
        game = ArenaGame(Continuing(self.entry, EPOCH), FixedLosses(self.tables))
        played = self.parts.play(game, self.learner, game.arena.domain, random_streams(self.rng))
        self.paid: list[float] = []
        regret = self.parts.measure(game, self._recorded(played), "enumeration")
        best = []
        for stop in range(EPOCH, self.plain.steps + 1, EPOCH):
            table = np.where(np.arange(self.plain.steps)[:, None, None] < stop, self.tables[:, 0], 0.0)
            best.append(self.plain.best_in_hindsight(table.tolist()))
        self.comparison.add_equals("measure", regret.paid, np.cumsum(self.paid))
        self.comparison.add_equals("measure", regret.best, best)

    def _recorded(self, played: Iterable[Round]) -> Iterator[Round]:
        """Pass the epochs on; the reference learns of each before the next one is played."""
        table = self.tables[:, 0].tolist()
        for record in played:
            entering, path = path_of(record.entering), path_of(record.segment)
            policy, stop = record.policy.argmax(axis=1).tolist(), (record.k + 1) * EPOCH
            if record.k == 0:
                self.comparison.add_equals("start", (entering + path)[0][0], INITIAL)
            self.plain.state = (entering + path)[0][0]
            self.comparison.add_equals("learn", self.learner.distribution.total, self.plain.estimates)
            self._compare_draws(entering, path, policy, stop)
            self.paid.append(loss_on(entering + path, table, record.k * EPOCH))
            self.plain.learn(path, stop, self.learner.weights.values.tolist(), table)
            self.plain.move_on(policy, path, stop)
            yield record

    def _compare_draws(self, entering: Path, path: Path, policy: list[int], stop: int) -> None:
        plain, table, start = self.plain, self.tables[:, 0].tolist(), stop - EPOCH
        both = [plain.policies.index(choice) for choice in (policy, plain.drawn(self.rng))]
        for what, costs in (("losses", table), ("estimates", plain.estimates)):
            self.comparison.add_draws("draw", what, *(plain.pays(choice, costs) for choice in both))
        again = plain.epoch(policy, stop, self.rng)
        whole, other = entering + path, again[0] + again[1]
        self.comparison.add_draws("play", "losses", loss_on(whole, table, start), loss_on(other, table, start))
        self.comparison.add_draws("play", "steps in state 0", visits_of_state_0(whole), visits_of_state_0(other))
        self.comparison.add_draws("play", "steps of a switch", len(entering), len(again[0]))
        law = plain.laws[both[0]]
        self.comparison.add_draws("play", "rhythm", *(_in_rhythm(law, followed, stop) for followed in (path, again[1])))
        if path:
            i = int(self.rng.integers(len(path)))
            weight = float(self.learner.weights.values[i])
            self.comparison.add_draws("weigh", "weights", weight, plain.counted(path, stop, i, self.rng))


def _in_rhythm(law: list[list[float]], path: Path, stop: int) -> float:
    """The chances of the states that were followed, under the law of the policy at their times, summed."""
    return sum(law[stop - len(path) + i][s] for i, (s, _) in enumerate(path))
