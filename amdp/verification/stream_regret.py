"""The infinite horizon: the noise of all steps in FTPL, and the inequality of Hedge."""

from itertools import product
from math import log, sqrt
from typing import Any

import numpy as np

from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import FullInformation, Weights
from amdp.arrays import one_hot
from amdp.kernels.threads import multiply
from amdp.model.segments import Segment
from amdp.verification import p_values
from amdp.verification.base import (
    FALSE_ALARM,
    NO_FALSE_ALARM,
    Check,
    Effort,
    Finding,
    Parts,
    at_most,
    judged,
)
from amdp.verification.switches import parked_rows
from amdp.verification.worlds import SmallWorld


def checks() -> list[Check]:
    """The regret of FTPL and Hedge without switches: appendix D."""
    return [
        Check(
            "noise-of-all-steps",
            "Lemma 45: the noise of all steps (generalizes Lemma 8 of Syrgkanis et al.)",
            "E max - E min over policies of <mu, z> is at most 10/rate sqrt(SAT ln N), N policies",
            "occupancies of all policies, the bound",
            "draws of the noise",
            {"scale-for-rate": ("spread",)},
            _noise_of_all_steps,
            at_most("limits of a bounded mean (Maurer and Pontil 2009), of spreads cut at ten times the bound"),
        ),
        Check(
            "hedge-inequality",
            "Lemma 37: property of Hedge",
            "the sum of <p_t, l_t> - l_t(i) is at most ln N / rate + rate sum of <p_t, l_t^2>, on every path",
            "both sides, on each path",
            "",
            {"contrary-hedge": ("regret",)},
            _hedge_inequality,
            NO_FALSE_ALARM,
        ),
    ]


def _noise_of_all_steps(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, steps, states, actions = 8.0, 60, 3, 2
    rows = parked_rows(rng, states, actions)
    every = np.array(list(product(range(actions), repeat=states)))
    where = np.zeros((len(every), steps, states, actions))
    at = np.zeros((len(every), states))
    at[:, 0] = 1.0
    for t in range(steps):
        where[:, t] = at[:, :, None] * one_hot(every, actions)
        at = np.einsum("nsa,say->ny", where[:, t], rows)
    draws = effort.samples(400)
    noise = parts.laplace(rate).perturbed(np.zeros((steps, states, actions)), draws, rng)
    sums = multiply(noise.reshape(draws, -1), where.reshape(len(every), -1).T)
    spread = sums.max(axis=1) - sums.min(axis=1)
    allowed = 10.0 / rate * sqrt(states * actions * steps * log(len(every)))
    mean, most = float(spread.mean()), 10.0 * allowed
    least = p_values.lower_mean(np.minimum(spread, most), most, FALSE_ALARM)
    text = f"spread {mean:.2f}, bound {allowed:.1f}"
    return judged(text, draws, {"spread": 1.0 - least / allowed}, share=mean / allowed)


def _hedge_inequality(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world, rate = SmallWorld.fixed(), 0.25
    paths, rounds, worst = effort.samples(20), 60, -np.inf
    nowhere = Segment(np.empty(0, np.int64), np.empty(0, np.int64))
    for _ in range(paths):
        learner = parts.hedge(rate, WholeTable())
        distribution: Any = learner.start(world.domain, rng)
        paid = squared = 0.0
        totals = np.zeros(len(distribution.incurred))
        best = rng.random(world.domain.shape)
        for _ in range(rounds):
            table = (rng.random(world.domain.shape) < best).astype(np.float64)
            losses = distribution.listed.expected_losses(table)
            chances = distribution.mixture.chances
            paid, squared = paid + float(chances @ losses), squared + float(chances @ losses**2)
            totals += losses
            distribution = learner.learn(distribution, FullInformation(nowhere, Weights(np.empty(0)), table))
        allowed = log(len(totals)) / rate + rate * squared
        worst = max(worst, (paid - float(totals.min())) / allowed)
    text = f"the regret is at most {worst:.3f} times the right side, on {paths} paths of {rounds} rounds"
    return judged(text, 0, {"regret": 1.0 - worst}, share=worst)
