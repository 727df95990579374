"""The soft leader and rates that tune themselves: the inequalities behind their bounds, by enumeration.

These statements are not in the paper; docs/soft-leader.md and docs/learning-rates.md prove them.
"""

from dataclasses import dataclass
from itertools import product
from math import log
from typing import Any

import numpy as np

from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Bandit, FullInformation
from amdp.algorithms.rates import AdaptiveRate, FixedRate
from amdp.algorithms.soft_leader import SoftPolicy
from amdp.arrays import Floats
from amdp.model.segments import NOWHERE, Segment
from amdp.verification import worlds
from amdp.verification.base import Effort, Finding, Parts, check, equality_margin, judged
from amdp.verification.worlds import ACTIONS, DOMAIN, INITIAL, PAIRS, SHAPE, STATES, STEPS, TRANSITIONS

RATES = (0.02, 0.5, 4.0)
ROUNDING = 1e-9  # allowed in an inequality of figures of about 1


@dataclass(frozen=True, eq=False)
class _Paths:
    """All paths of a policy from the initial state."""

    segments: list[Segment]
    met: Floats  # [n, h, s, a], 1 where the path is
    chances: Floats  # [n]

    @classmethod
    def of(cls, p: Floats, policy: Floats) -> "_Paths":
        segments, met, chances = [], [], []
        for states in product([INITIAL], *[range(STATES)] * (STEPS - 1)):
            for actions in product(range(ACTIONS), repeat=STEPS):
                segment = Segment(np.array(states), np.array(actions))
                moves = [p[h, states[h], actions[h], states[h + 1]] for h in range(STEPS - 1)]
                segments.append(segment)
                met.append(np.zeros(SHAPE))
                met[-1][segment.places] = 1.0
                chances.append(float(policy[segment.places].prod() * np.prod(moves)))
        return cls(segments, np.stack(met), np.array(chances))

    def sums(self, table: Floats) -> Floats:
        """The sum of a table along each path, `[n]`, or of several, `[n, m]`."""
        result: Floats = np.einsum("nhsa,...hsa->n...", self.met, table)
        return result


def _state(rng: np.random.Generator, rate: float) -> SoftPolicy:
    return SoftPolicy(DOMAIN, FixedRate(rate), rng.uniform(0.0, 3.0, size=SHAPE))


def _grown(state: SoftPolicy, extra: Floats, under_way: Floats | float = 0.0) -> float:
    """By how much the soft value grows when `extra` is added to the sum of losses."""
    return state.potential(state.total + under_way + extra) - state.potential(state.total + under_way)


def _every_policy(p: Floats) -> Floats:
    """The occupancy measures of all deterministic policies."""
    every = np.array(list(product(range(ACTIONS), repeat=STEPS * STATES)), dtype=np.int32)
    return worlds.occupancies(p, every.reshape(-1, STEPS, STATES))


@check(
    statement="the soft leader, docs/soft-leader.md: the soft value and its growth",
    claim="V = min over pi of <q, L> + KL/rate <= <q*, L> + H ln A / rate; <q, l> - (rate/2) E Y^2 <= dV <= <q, l>",
    exact="everything: all paths are enumerated, and all policies",
    rejects={"myopic-soft": ("least", "growth"), "potential-at-lower-rate": ("gap",)},
)
def _soft_value(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    every, cases = _every_policy(TRANSITIONS), effort.samples(4)
    off, growth, gap = 0.0, np.inf, np.inf
    for rate, _ in product(RATES, range(cases)):
        state = _state(rng, rate)
        value, policy = float(state.swept.values[0, INITIAL]), state.swept.policy
        paths = _Paths.of(TRANSITIONS, policy)
        entropy = paths.sums(np.log(ACTIONS * policy))  # the relative entropy to uniform choices, path by path
        paid = float(paths.chances @ (paths.sums(state.total) + entropy / rate))
        best = float(np.einsum("nhsa,hsa->n", every, state.total).min()) + STEPS * log(ACTIONS) / rate
        off = max(off, abs(value - paid), value - best)
        scattered = rng.exponential(4.0, SHAPE) * (rng.random(SHAPE) < 0.3)
        scattered[0, INITIAL, 0] = 2.0  # some of it is met
        for extra in (rng.random(SHAPE), scattered):
            sums, grown = paths.sums(extra), _grown(state, extra)
            mean = float(paths.chances @ sums)
            before = float(state.swept.values[0, INITIAL])
            growth = min(growth, grown - (mean - rate / 2.0 * float(paths.chances @ sums**2)))
            gap = min(gap, mean - (state.potential(state.total + extra) - before))
    text = f"the value is off by {off:.1e}; it grows by {growth:.1e} more than the least, {gap:.1e} less than the most"
    return judged(text, 0, {"least": equality_margin(off), "growth": growth + ROUNDING, "gap": gap + ROUNDING})


def _estimates(parts: Parts, state: SoftPolicy, paths: _Paths, table: Floats) -> Floats:
    """The estimate `[n, h, s, a]` of the losses of a round after each path."""
    learner: Any = parts.soft(state.rate, parts.weighting())
    rng = np.random.default_rng(0)  # importance weighting draws nothing
    told = [Bandit.reveal(table, each, learner.weigh(state, each, rng)) for each in paths.segments]
    return np.stack([learner.learn(state, feedback).total - state.total for feedback in told])


@check(
    statement="the soft leader, docs/soft-leader.md: the estimates of the soft leader",
    claim="E[estimate] = loss, and E[Y^2] <= H^2 SA for the sum Y of the estimate along a path",
    exact="everything: all pairs of paths are enumerated",
    rejects={"tripled-importance": ("mean", "moment"), "exploring-weights": ("mean",)},
)
def _soft_estimates(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    off, share = 0.0, 0.0
    for rate, _ in product(RATES, range(effort.samples(2))):
        state = _state(rng, rate)
        paths = _Paths.of(TRANSITIONS, state.swept.policy)
        for table in (rng.random(SHAPE), np.ones(SHAPE)):
            estimates = _estimates(parts, state, paths, table)
            met = np.einsum("n,nhsa->hsa", paths.chances, paths.met) > 0.0
            mean = np.einsum("n,nhsa->hsa", paths.chances, estimates)
            off = max(off, float(np.abs(mean - table)[met].max()))
            moment = float(paths.chances @ paths.sums(estimates) ** 2 @ paths.chances)
            share = max(share, moment / (STEPS**2 * PAIRS))
    text = f"means off by {off:.1e}; the second moment is at most {share:.3f} of its bound"
    return judged(text, 0, {"mean": equality_margin(off), "moment": 1.0 - share}, share=share)


def _costs_to_come(p: Floats, policy: Floats, tables: Floats) -> Floats:
    """What each table `[n, h, s, a]` costs from a pair on, under a policy."""
    ahead = tables.copy()
    for h in reversed(range(STEPS - 1)):
        ahead[:, h] += np.einsum("say,ny->nsa", p[h], (policy[h + 1] * ahead[:, h + 1]).sum(axis=-1))
    return ahead


@check(
    statement="the soft leader, docs/soft-leader.md: what an estimate under way costs",
    claim="dV at L + O >= <q, l> - (rate/2) E Y^2 - rate E[Y sum_h Q_O], and the last mean is at most H^2 (H+1) / 2",
    exact="everything: all paths of both rounds are enumerated",
    rejects={"tripled-importance": ("cross",), "myopic-soft": ("growth",)},
)
def _soft_delays(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    growth, share = np.inf, 0.0
    allowed = STEPS**2 * (STEPS + 1) / 2.0
    for rate, _ in product(RATES, range(effort.samples(2))):
        played, earlier = _state(rng, rate), _state(rng, rate)
        paths, before = (_Paths.of(TRANSITIONS, each.swept.policy) for each in (played, earlier))
        losses = rng.random(SHAPE) if rng.random() < 0.5 else np.ones(SHAPE)
        estimates = _estimates(parts, played, paths, losses)
        under_way = _estimates(parts, earlier, before, np.ones(SHAPE))
        to_come = paths.sums(_costs_to_come(TRANSITIONS, played.swept.policy, under_way))  # [path, estimate under way]
        sums = paths.sums(estimates)  # [path, estimate]
        cross = np.einsum("i,ij,il->jl", paths.chances, sums, to_come)
        share = max(share, float(paths.chances @ cross @ before.chances) / allowed)
        for j, other in rng.integers(len(paths.segments), size=(effort.samples(10), 2)):
            mean, moment = float(paths.chances @ sums[:, j]), float(paths.chances @ sums[:, j] ** 2)
            least = mean - rate / 2.0 * moment - rate * cross[j, other]
            grown = _grown(played, estimates[j], under_way[other])
            growth = min(growth, (grown - least) / max(1.0, abs(mean)))
    text = f"the growth is above its bound by {growth:.1e} or more; the cross term is at most {share:.3f} of its bound"
    return judged(text, 0, {"growth": growth + ROUNDING, "cross": 1.0 + ROUNDING - share}, share=share)


@check(
    statement="adaptive rates, docs/learning-rates.md: telescoping, and twice the sum of the gaps",
    claim="gaps >= 0; sum of <q_k, l_k> <= <q*, L> + Delta + range / rate <= <q*, L> + 2 Delta + first, on each path",
    exact="both sides, on each path",
    rejects={
        "potential-at-lower-rate": ("gaps", "telescoping"),
        "gaps-cut": ("regret",),
        "forgetful-rate": ("falling",),
    },
)
def _adaptive_rate(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rounds = 60
    gaps, falling, telescoped, share = np.inf, np.inf, np.inf, 0.0
    for spiteful in (True, False) * effort.samples(2):
        learner: Any = parts.soft(parts.adaptive(STEPS * log(ACTIONS)), WholeTable())
        state: Any = learner.start(DOMAIN, rng)
        total, paid, means = np.zeros(SHAPE), 0.0, rng.random(SHAPE)
        for _ in range(rounds):
            policy = state.draw(rng)
            # Losses that meet the likeliest action everywhere: no adversary makes more regret in a round.
            table = (policy >= policy.max(axis=-1, keepdims=True)) if spiteful else rng.random(SHAPE) < means
            losses = np.asarray(table, dtype=np.float64)
            paths = _Paths.of(TRANSITIONS, policy)
            paid += float(paths.chances @ paths.sums(losses))
            told = FullInformation(NOWHERE, learner.weigh(state, NOWHERE, rng), losses)
            after = learner.learn(state, told)
            gaps = min(gaps, after.rate.total - state.rate.total)
            falling = min(falling, state.rate.value - after.rate.value)
            last, state, total = state.rate.value, after, total + losses
            best = worlds.occupancies(TRANSITIONS, worlds.leaders(TRANSITIONS, total[None]))[0]
            least = float(np.vdot(best, total))
            rate: AdaptiveRate = state.rate
            telescoped = min(telescoped, least + rate.total + rate.range / last - paid)
            share = max(share, (paid - least) / (2.0 * rate.gaps + rate.first))
    text = f"the least gap is {gaps:.1e}, and the regret at most {share:.3f} of twice the gaps and the first"
    margins = {
        "gaps": gaps + ROUNDING,
        "falling": falling + ROUNDING,
        "telescoping": telescoped + ROUNDING,
        "regret": 1.0 - share,
    }
    return judged(text, 0, margins, share=share)
