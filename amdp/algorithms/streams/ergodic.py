"""Learners of ergodic worlds that choose anew in every step: MDP-E and MDP-Exp3.

Each state has an expert algorithm of its own, exponential weights over its actions, which learns from what an action
costs in the long run: `Q_t`, the average-loss value of the policy `pi_t` that was played, for the losses `l_t`. By the
performance difference `rho(pi_t) - rho(pi) = sum_s d_pi(s) <pi_t(s) - pi(s), Q_t(s)>`, small regret in every state is
small regret in the long run, and slow policies are where their stationary law says.

- `MdpE` (Even-Dar, Kakade and Mansour 2009) has full information: all of `l_t`.
- `MdpExp3` (Neu, Gyorgy, Szepesvari and Antos 2014) has bandit feedback: it weighs a loss by the chance of the visit,
  looking `N` steps back. An estimate is used with a delay of `N` steps: then the last `N` policies were chosen before
  the `N` moves that they decided, and the estimate is unbiased.

The structure of both is [from memory]; the linear system, the tuning and the explicit bounds are [derived]
(docs/ergodic.md). `T` steps, `S` states, `A` actions; `contraction`, `influence` and `memory = 1 / (1 - contraction)`
are those of `amdp.model.mixing.Mixing`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, log, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms.blocks import BlockResult
from amdp.algorithms.bounds import MOST_EXPLORATION, RegretBound, over, require_rate, require_rounds
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.algorithms.streams.blocks import StepForm, empty_steps
from amdp.algorithms.streams.steps import Unweighted, stationary
from amdp.algorithms.task import Task
from amdp.arrays import Floats, Policies, require_whole
from amdp.errors import InvalidInput
from amdp.kernels.blocks import Block
from amdp.model.chains import rows_of
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.mixing import Chain, Mixing, least_arrival, least_visits, require_mixing, require_visits
from amdp.model.segments import Segment, Shape


@dataclass(frozen=True)
class ErgodicBound(RegretBound):
    """A bound on expected regret over an ergodic kernel."""

    penalty: float  # of not knowing the best action
    stability: float  # what the changes of the weights cost, delayed estimates included
    exploration: float  # steps that are played at random
    tracking: float  # how far the state is from where its policy would have it
    start: float  # of the learner and of the best policy, and steps without estimates


@dataclass(frozen=True, eq=False)
class Rule:
    """The policy `pi(a|s) = (1 - exploration) softmax(scores[s])(a) + exploration / A`, and its chain."""

    rows: Floats = field(repr=False)  # [s, a, y]
    scores: Floats = field(repr=False)  # [s, a]
    exploration: float = 0.0

    @cached_property
    def chain(self) -> Chain:
        """The Markov chain of the policy."""
        policy = np.empty(self.scores.shape)
        kernels.ergodic.soften(self.scores, self.exploration, policy)
        return Chain(self.rows, policy)

    def moved(self, scores: Floats) -> Self:
        """The policy after `scores` `[s, a]` were added to its own."""
        return replace(self, scores=self.scores + scores)


@dataclass(frozen=True, eq=False)
class LocalExperts:
    """The state of `MdpE`: exponential weights in each state of the world."""

    domain: StationaryPolicies
    rule: Rule = field(repr=False)
    last: Segment | None = field(default=None, repr=False, kw_only=True)  # the step just played
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.rule.chain.policy


@dataclass(frozen=True)
class MdpE(Unweighted):
    """MDP-E: exponential weights of `rate` in every state, with full information."""

    rate: float

    def __post_init__(self) -> None:
        require_rate(self.rate)

    @classmethod
    def tuned(cls, domain: Domain, rounds: int, *, multiplier: float = 1.0) -> Self:
        """The rate that balances the bound; with one state, `sqrt(8 ln A / T)`."""
        known, mixing = _mixing(domain)
        return cls(multiplier * sqrt(log(known.shape[2]) / (require_rounds(rounds) * _unrest(mixing))))

    def start(self, domain: Domain, rng: np.random.Generator) -> LocalExperts:
        known, _ = _mixing(domain)
        return LocalExperts(known, Rule(rows_of(known.dynamics), np.zeros(known.shape[1:])))

    def observe(self, distribution: LocalExperts, segment: Segment) -> LocalExperts:
        return replace(distribution, last=segment)

    def learn(self, distribution: LocalExperts, feedback: Feedback) -> LocalExperts:
        """`scores[s, a] -= rate * Q_t[s, a]` in all states, visited or not."""
        assert isinstance(feedback, FullInformation)
        _require_on_time(distribution.last, feedback)
        ahead = distribution.rule.chain.long_run(feedback.table[0]).ahead
        return replace(distribution, rule=distribution.rule.moved(-self.rate * ahead))

    def block_form(self, domain: Domain) -> "ExpertSteps | None":
        """How it plays blocks of steps in machine code; None for types derived from it, which may do something else."""
        return ExpertSteps(self) if type(self) is MdpE else None

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> ErgodicBound | None:
        """`ln A / rate + rate T (R^2 / 8 + R influence memory^2 / 4) + 2 memory`, `R = 1 + influence memory`.

        None with delays.
        """
        if waited:
            return None
        known, mixing = _mixing(domain)
        spread = _spread(mixing)
        return ErgodicBound(
            over(log(known.shape[2]), self.rate),
            self.rate * rounds * spread**2 / 8.0,
            0.0,
            self.rate * rounds * (_unrest(mixing) - spread**2 / 8.0),
            2.0 * mixing.memory if known.shape[1] > 1 else 0.0,
        )


@dataclass(frozen=True, eq=False)
class DelayedLocalExperts(LocalExperts):
    """The state of `MdpExp3`: the weights, state distributions given the last pairs, and estimates not yet used."""

    laws: Floats = field(repr=False)  # [i, s], of the present state given the last pairs, that of `len(laws)` ago first
    likely: float  # half the least visit chance of a policy
    unlikely: int = 0  # steps whose state had a smaller chance, looking back: their estimates are larger than planned
    waiting: tuple[Floats, ...] = field(default=(), repr=False)  # Q of the last steps, the oldest first


@dataclass(frozen=True)
class MdpExp3:
    """MDP-Exp3: exponential weights in every state, with bandit feedback.

    The estimate of step `t` is `l_t(s_t, a_t) / (mu(s_t) pi_t(a_t|s_t))` at the pair that was met and 0 elsewhere, with
    `mu` the law of `s_t` given `(s, a)` of `lookback` steps before. The first `lookback` steps give none. It moves the
    scores of step `t + lookback` for the first time.
    """

    rate: float
    exploration: float
    lookback: int
    feedback: ClassVar[type] = Bandit

    def __post_init__(self) -> None:
        require_rate(self.rate)
        require_whole("lookback", self.lookback, 1)
        if not 0.0 <= self.exploration <= 1.0:
            raise InvalidInput(f"{self.exploration}; it must be between 0 and 1", "exploration")

    @classmethod
    def tuned(cls, domain: Domain, rounds: int, *, multiplier: float = 1.0) -> Self:
        """`N = ceil(1 + tau ln T)`, rate `sqrt(beta ln A / (tau^3 AT))`, exploration `2 (2 tau + 3) A rate / beta`.

        `beta` is the least visit chance of a policy; `tau` counts as 1 if it is less, but for `N`. The rate is at most
        what keeps the exploration at 1/2: then `rate |Q| <= 1` as long as `mu(s_t) >= beta / 2`. The state counts the
        steps in which it was less. `multiplier` scales the rate alone; above 1 the step of a weight may be larger.
        """
        known, mixing = _mixing(domain)
        require_visits(known.dynamics)
        beta = least_visits(known.dynamics).value
        actions, slow = known.shape[2], max(1.0, mixing.time)
        wanted = sqrt(beta * log(actions) / (slow**3 * actions * require_rounds(rounds)))
        share = 2.0 * (2.0 * slow + 3.0) * actions / beta  # of the exploration, for a rate of 1
        rate = min(wanted, MOST_EXPLORATION / share)
        return cls(multiplier * rate, min(MOST_EXPLORATION, share * rate), _lookback(mixing, rounds))

    @classmethod
    def balanced(cls, domain: Domain, rounds: int, *, multiplier: float = 1.0) -> Self:
        """The same `N`, no exploration, and the rate that balances the bound, whose proof does without exploration."""
        known, mixing = _mixing(domain)
        require_visits(known.dynamics)
        _, states, actions = known.shape
        lookback = _lookback(mixing, rounds)
        floor = least_arrival(known.dynamics, lookback)
        if floor <= 0.0:
            raise InvalidInput(f"some policies miss a state for sure {lookback} steps later; use MdpExp3.tuned")
        unrest = _noise(mixing, known.shape, floor, lookback) + _drift(mixing, states)
        return cls(multiplier * sqrt(log(actions) / (require_rounds(rounds) * unrest)), 0.0, lookback)

    def start(self, domain: Domain, rng: np.random.Generator) -> DelayedLocalExperts:
        known, _ = _mixing(domain)
        require_visits(known.dynamics)
        rule = Rule(rows_of(known.dynamics), np.zeros(known.shape[1:]), self.exploration)
        return DelayedLocalExperts(known, rule, np.empty((0, known.shape[1])), least_visits(known.dynamics).value / 2.0)

    def weigh(self, distribution: DelayedLocalExperts, segment: Segment, rng: np.random.Generator) -> Weights:
        """One over the chance of the pair, looking back; 0 where that is not possible yet."""
        if len(distribution.laws) < self.lookback:
            return Weights(np.zeros(1))
        s, a = int(segment.states[0]), int(segment.actions[0])
        return Weights(np.array([1.0 / (distribution.laws[0, s] * distribution.rule.chain.policy[s, a])]))

    def observe(self, distribution: DelayedLocalExperts, segment: Segment) -> DelayedLocalExperts:
        """Move all laws by the policy that was played; the newest begins with the pair that was met."""
        known, rule, state = len(distribution.laws), distribution.rule, int(segment.states[0])
        full = known == self.lookback
        laws = np.empty((known if full else known + 1, len(rule.rows)))
        kernels.ergodic.pass_on(distribution.laws, rule.chain.moves, rule.rows[state, segment.actions[0]], laws)
        unlikely = distribution.unlikely + int(full and distribution.laws[0, state] < distribution.likely)
        return replace(distribution, laws=laws, unlikely=unlikely, last=segment)

    def learn(self, distribution: DelayedLocalExperts, feedback: Feedback) -> DelayedLocalExperts:
        """The average-loss value of the estimate joins the queue; the one whose time has come moves the scores."""
        assert isinstance(feedback, Bandit)
        _require_on_time(distribution.last, feedback)
        estimate = np.zeros(distribution.rule.scores.shape)
        estimate[feedback.segment.states, feedback.segment.actions] = feedback.losses * feedback.weights.values
        waiting = (*distribution.waiting, distribution.rule.chain.long_run(estimate).ahead)
        if len(waiting) < self.lookback:
            return replace(distribution, waiting=waiting)
        return replace(distribution, rule=distribution.rule.moved(-self.rate * waiting[0]), waiting=waiting[1:])

    def block_form(self, domain: Domain) -> "DelayedExpertSteps | None":
        """How it plays blocks of steps in machine code; None for types derived from it, which may do something else."""
        return DelayedExpertSteps(self) if type(self) is MdpExp3 else None

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> ErgodicBound | None:
        """The bound of docs/ergodic.md; None with delays, or if a state can be missed `N` steps after any other."""
        known, mixing = _mixing(domain)
        _, states, actions = known.shape
        floor = least_arrival(known.dynamics, self.lookback)
        if waited or floor <= 0.0:
            return None
        several = float(states > 1)
        return ErgodicBound(
            over(log(actions), self.rate),
            self.rate * rounds * _noise(mixing, known.shape, floor, self.lookback),
            self.exploration * rounds * _spread(mixing),
            rounds * (self.rate * _drift(mixing, states) + several * mixing.contraction ** (self.lookback - 1)),
            self.lookback + several * mixing.memory,
        )


# --- compiled forms ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpertSteps(StepForm[LocalExperts]):
    """MDP-E, block by block."""

    learner: MdpE

    def play(
        self, distribution: LocalExperts, block: Block, space: object, rng: np.random.Generator
    ) -> tuple[LocalExperts, BlockResult]:
        rule, played = distribution.rule, empty_steps(block)
        scores, policies = rule.scores.copy(), np.empty((len(block.slots), *rule.scores.shape))
        reached = kernels.ergodic.mdp_e(block, rule.rows, float(self.learner.rate), scores, policies, played)
        result = BlockResult(played, policies, np.zeros(len(policies), np.int64), reached=int(reached))
        return replace(distribution, rule=replace(rule, scores=scores)), result

    def save(self, distribution: LocalExperts) -> dict[str, Floats]:
        return {"scores": distribution.rule.scores}

    def load(self, distribution: LocalExperts, saved: Mapping[str, Floats]) -> LocalExperts:
        return replace(distribution, rule=replace(distribution.rule, scores=saved["scores"]))


@dataclass(frozen=True)
class DelayedExpertSteps(StepForm[DelayedLocalExperts]):
    """MDP-Exp3, block by block."""

    learner: MdpExp3

    def play(
        self, distribution: DelayedLocalExperts, block: Block, space: object, rng: np.random.Generator
    ) -> tuple[DelayedLocalExperts, BlockResult]:
        rule, lookback, played = distribution.rule, self.learner.lookback, empty_steps(block)
        known, queued = len(distribution.laws), len(distribution.waiting)
        laws, waiting = np.zeros((lookback, len(rule.rows))), np.zeros((lookback, *rule.scores.shape))
        laws[:known] = distribution.laws
        for place, estimate in zip(waiting, distribution.waiting, strict=False):
            place[:] = estimate
        scores, policies = rule.scores.copy(), np.empty((len(block.slots), *rule.scores.shape))
        settings = float(self.learner.rate), float(self.learner.exploration), distribution.likely
        reached, known, queued, oldest, unlikely = kernels.ergodic.mdp_exp3(
            block, rule.rows, *settings, scores, laws, known, waiting, queued, policies, played
        )
        after = replace(
            distribution,
            rule=replace(rule, scores=scores),
            laws=laws[:known],
            unlikely=distribution.unlikely + int(unlikely),
            waiting=tuple(np.roll(waiting, -oldest, axis=0)[:queued]),
        )
        return after, BlockResult(played, policies, np.zeros(len(policies), np.int64), reached=int(reached))

    def save(self, distribution: DelayedLocalExperts) -> dict[str, NDArray[Any]]:
        waiting = np.array(distribution.waiting).reshape(-1, *distribution.rule.scores.shape)
        state = {"scores": distribution.rule.scores, "laws": distribution.laws, "waiting": waiting}
        return state | {"unlikely": np.array(distribution.unlikely)}

    def load(self, distribution: DelayedLocalExperts, saved: Mapping[str, NDArray[Any]]) -> DelayedLocalExperts:
        rule, unlikely = replace(distribution.rule, scores=saved["scores"]), int(saved["unlikely"])
        return replace(distribution, rule=rule, laws=saved["laws"], unlikely=unlikely, waiting=tuple(saved["waiting"]))


# --- what the bounds are made of --------------------------------------------------------------------------------------


def _mixing(domain: Domain) -> tuple[StationaryPolicies, Mixing]:
    known = stationary(domain)
    return known, require_mixing(known.dynamics)


def _spread(mixing: Mixing) -> float:
    """How far apart the long-run costs of two actions of one state can be: `1 + influence memory`."""
    return 1.0 + mixing.influence * mixing.memory


def _unrest(mixing: Mixing) -> float:
    """What a rate of 1 costs a step: `R^2 / 8` in the weights, `R influence memory^2 / 4` in the state's law."""
    spread = _spread(mixing)
    return spread**2 / 8.0 + spread * mixing.influence * mixing.memory**2 / 4.0


def _lookback(mixing: Mixing, rounds: int) -> int:
    """`ceil(1 + tau ln T)`: what was before is forgotten up to `1 / T`."""
    return ceil(1.0 + mixing.time * log(require_rounds(rounds)))


def _noise(mixing: Mixing, shape: Shape, floor: float, lookback: int) -> float:
    """The second moments of estimates: of each, `(A + 2 r + S r^2) / floor`, and with the `N - 1` before it.

    `r = influence memory`, `floor` the least arrival. Two estimates that are `i` steps apart meet with
    `(u_i + r v_i) (u_j + r v_j)`, `j = N - i`: what was seen at the one tells about the state at the other, so that
    `u_i = min(1/floor, 1 + c^(i-1) / floor)` and `v_i = min(1/floor, S + c^(i-1) / floor)`, `c` the contraction.
    """
    (_, states, actions), reach = shape, mixing.influence * mixing.memory
    remembered = mixing.contraction ** np.arange(lookback - 1) / floor
    meets = np.minimum(1.0 / floor, 1.0 + remembered) + reach * np.minimum(1.0 / floor, states + remembered)
    return float((actions + 2.0 * reach + states * reach**2) / floor + meets @ meets[::-1])


def _drift(mixing: Mixing, states: int) -> float:
    """What a rate of 1 moves the state's law away from the stationary one, a step."""
    reach = mixing.influence * mixing.memory
    return states * mixing.influence * mixing.memory**2 * (1.0 + reach / 4.0)


def _require_on_time(last: Segment | None, feedback: Feedback) -> None:
    if feedback.segment is not last:
        raise InvalidInput("feedback came late; MDP-E and MDP-Exp3 learn from each step before the next one is played")


# --- recipes ----------------------------------------------------------------------------------------------------------


def mdp_e(task: Task, *, rate: float | None = None) -> MdpE:
    """MDP-E of Even-Dar et al.: full information, ergodic; a round is a step."""
    return task.by_hand(MdpE.tuned(task.stream(), task.rounds), rate)


def mdp_exp3(
    task: Task, *, rate: float | None = None, exploration: float | None = None, lookback: int | None = None
) -> MdpExp3:
    """MDP-Exp3 of Neu et al.: bandit feedback, ergodic; a round is a step."""
    theory = MdpExp3.tuned(task.stream(), task.rounds)
    return task.by_hand(theory, rate, exploration=exploration, lookback=lookback)
