"""FTPL whose rate tunes itself: its measured gaps have the right mean, and its potential grows as the rate falls.

These statements are not in the paper; docs/learning-rates.md proves them.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from amdp.algorithms.estimators.resampling import SharedScaledResampling
from amdp.algorithms.ftpl.adaptive import AdaptiveFtpl, noise_range
from amdp.arrays import Floats
from amdp.oracles.base import Planner, bind
from amdp.verification import p_values, worlds
from amdp.verification.base import Effort, Finding, Parts, check, judged, p_value_margin
from amdp.verification.comparison import SYMMETRIC
from amdp.verification.worlds import DOMAIN, SHAPE, TRANSITIONS

RATES = (1.0, 4.0)
UNIT = 3.0  # the size that the difference of two gaps of one leader each is expected to have
HIGH_RATE = 30.0  # of noise so small that the potential comes close to what the best policy pays
ROUNDING = 1e-9  # allowed in an inequality, relative to the figures in it


def _learner(parts: Parts, plans: int) -> AdaptiveFtpl:
    rate = parts.adaptive(noise_range(SHAPE) / 2.0)
    return parts.adaptive_ftpl(rate, SharedScaledResampling, parts.oracle, plans=plans)


def _plain_gap(total: Floats, estimate: Floats, noise: Floats) -> float:
    """What the leader for `total` plus noise pays above the cheapest policy once the estimate is added."""
    costs = total + noise
    leader, cheapest = worlds.leaders(TRANSITIONS, np.stack([costs, costs + estimate]))
    paid, least = (worlds.value(TRANSITIONS, policy, costs + estimate) for policy in (leader, cheapest))
    return paid - least


@check(
    statement="adaptive FTPL, docs/learning-rates.md: gaps that are measured with fresh noise",
    claim="gaps are not negative, and E[gap] = <q, l> - (Phi(L + l) - Phi(L)) given the estimate l",
    exact="the sign of each gap",
    simulated="rounds of FTPL, and for each estimate one more gap, by plain backward induction on noise of numpy",
    inequality=SYMMETRIC,
    rejects={
        "gap-noise-of-trials": ("mean",),
        "estimate-on-both-sides": ("mean",),
        "gaps-cut": ("mean",),
        "gap-of-two-noises": ("sign",),
    },
)
def _ftpl_gaps(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    learner, cases = _learner(parts, plans=1), effort.samples(4000)
    differences, least = np.empty((len(RATES), cases)), np.inf
    for (i, rate), case in product(enumerate(RATES), range(cases)):
        total = rng.uniform(0.0, 2.0 / rate, size=SHAPE)  # as far apart as the noise
        state: Any = replace(learner.start(DOMAIN, rng), total=total, perturbation=parts.laplace(rate))
        feedback = worlds.feedback_of_round(learner, state, state.draw(rng), np.ones(SHAPE), rng)
        after = learner.learn(state, feedback)
        gap = after.rate.total - state.rate.total
        differences[i, case] = gap - _plain_gap(total, after.total - total, worlds.laplace(1, rate, rng)[0])
        least = min(least, gap * rate)
    chances = [p_values.symmetric(sample, UNIT) for sample in (*differences, differences.reshape(-1))]
    text = f"the least gap is {least:.1e} of the noise; means differ with p = {min(chances):.2g}"
    margins = {"mean": p_value_margin(min(chances), len(chances)), "sign": least + ROUNDING}
    return judged(text, differences.size, margins, p_value=min(chances))


def _potential(planner: Planner, total: Floats, noise: Floats, rate: float) -> tuple[float, Floats]:
    """The mean of the least perturbed sums over the noises `[n, h, s, a]`, and the mean occupancy of the leaders."""
    costs = total + noise / rate
    measures = worlds.occupancies(TRANSITIONS, planner.minimize(costs).actions)
    return float((measures * costs).sum()) / len(noise), measures.mean(axis=0)


@check(
    statement="adaptive FTPL, docs/learning-rates.md: telescoping of the potential",
    claim="Phi + beta/rate grows as the rate falls, -beta/rate <= Phi_rate(0), and Phi_rate(L) <= <q*, L>",
    exact="both sides on each path, Phi and beta for the even law on noises that come with their opposites",
    rejects={"forgetful-rate": ("growth",), "myopic-oracle": ("end",)},
)
def _ftpl_telescoping(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    learner, rounds, planner = _learner(parts, plans=8), 60, bind(parts.oracle, DOMAIN)
    growth, end, share = np.inf, np.inf, 0.0
    for _ in range(effort.samples(4)):
        half = worlds.laplace(100, 1.0, rng)
        noise = np.concatenate([half, -half])  # of mean 0, as the proof needs it
        beta = float(noise.max(axis=(2, 3)).sum()) / len(noise)
        state: Any = learner.start(DOMAIN, rng)
        before, measure = _potential(planner, state.total, noise, state.rate.value)
        end = min(end, before + beta / state.rate.value)
        regret_allowed, paid, means = 0.0, 0.0, rng.random(SHAPE)
        for _ in range(rounds):
            table = (rng.random(SHAPE) < means).astype(np.float64)
            feedback = worlds.feedback_of_round(learner, state, state.draw(rng), table, rng)
            after, rate = learner.learn(state, feedback), state.rate.value
            grown, _ = _potential(planner, after.total, noise, rate)
            met = float(np.vdot(measure, after.total - state.total))
            regret_allowed, paid = regret_allowed + met - (grown - before), paid + met
            next_potential, measure = _potential(planner, after.total, noise, after.rate.value)
            growth = min(growth, next_potential + beta / after.rate.value - (grown + beta / rate))
            best = worlds.value(TRANSITIONS, worlds.leaders(TRANSITIONS, after.total[None])[0], after.total)
            end = min(end, best - grown, best - _potential(planner, after.total, noise, HIGH_RATE)[0])
            share = max(share, (paid - best) / (regret_allowed + beta / rate))
            before, state = next_potential, after
    text = f"the sum grows by {growth:.1e} or more as rates fall, and regret is at most {share:.3f} of its bound"
    return judged(text, 0, {"growth": growth + ROUNDING, "end": end + ROUNDING}, share=share)
