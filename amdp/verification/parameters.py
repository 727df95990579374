"""What the theorems choose (learning rate, limit of trials, epochs), and from which size their bounds say something."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil, e, log, sqrt
from typing import Any

import numpy as np
from scipy.stats import gamma

from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.streams.switching import RenewedSwitching
from amdp.model.transitions import Kernel
from amdp.verification.base import Effort, Finding, Parts, Verdict, check, equality_margin, judged, p_value_margin
from amdp.verification.infinite_horizon import RHYTHM
from amdp.verification.worlds import ACTIONS, DOMAIN, PAIRS, SHAPE, STATES, STEPS, proved_terms

PLAYABLE = 1e6  # rounds or steps that are played within hours
LONG = 10**9  # steps of a stream


@check(
    statement="Theorem 4: choices of rate and limit",
    claim="rate 1/sqrt(HSAK) and limit sqrt(SAK/H); the bound is below HK from some K on",
    exact="the parameters and the bound; the least power of two from which the bound says something",
    simulated="the size of the noise",
    inequality="a sum of exponential variables has a Gamma law",
    rejects={"scale-for-rate": ("noise",), "bounds-cut": ("bound",)},
)
def _parameters_episodes(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rounds, draws = 1000, 20_000
    tuned: Any = parts.leader.tuned(DOMAIN, rounds, perturbation=parts.laplace)
    rate, limit = 1.0 / sqrt(STEPS * PAIRS * rounds), ceil(sqrt(PAIRS * rounds / STEPS))
    size = float(np.abs(tuned.perturbation.perturbed(np.zeros(SHAPE), draws, rng)).sum()) * rate
    law = gamma(draws * STEPS * PAIRS)  # of a sum of variables |z| rate, which are Exp(1)
    chance = min(1.0, 2.0 * min(float(law.cdf(size)), float(law.sf(size))))
    bound = tuned.bound(DOMAIN, rounds)
    proved = sum(proved_terms(rate, limit, rounds).values())
    off = abs(tuned.estimator.limit - limit) + (np.inf if bound is None else abs(bound.total / proved - 1.0))

    def share(k: int) -> float:
        bound_of_k: Any = Ftpl.tuned(DOMAIN, k).bound(DOMAIN, k)
        return float(bound_of_k.total / (STEPS * k))

    least = _least(share)
    text = (
        f"noise of {size / (draws * STEPS * PAIRS):.3g} times its size (p = {chance:.2g}), limit "
        f"{tuned.estimator.limit}; the bound says something from K = {least:.2g} on ({STEPS} steps, {STATES} states, "
        f"{ACTIONS} actions)"
    )
    margins = {"noise": p_value_margin(chance, 1), "bound": equality_margin(off)}
    return _within_reach(judged(text, draws, margins, least=least))


@check(
    statement="Theorem 8: choices of rate and epochs",
    claim="rate S^(1/3) A^(-1/3) (DT)^(-2/3), (ST)^(2/3) A^(1/3) D^(-4/3) epochs; below T from some T on",
    exact="the parameters and the bound; the least power of two from which the bound says something",
    rejects={"swapped-epochs": ("parameters",), "bounds-cut": ("bound",)},
)
def _parameters_hedge(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    tuned: Any = parts.hedge_stream.tuned(_entry(LONG))
    (steps, states, actions), diameter = tuned.entry.kernel.shape, tuned.entry.diameter.value
    rate = (states / actions) ** (1 / 3) * (diameter * steps) ** (-2 / 3)
    epochs = (states * steps) ** (2 / 3) * actions ** (1 / 3) * diameter ** (-4 / 3)
    proved = states * log(actions) / tuned.rate + tuned.rate * tuned.length * states * actions * steps
    return _stream(tuned, rate, epochs, proved)


@check(
    statement="Theorem 7: choices of rate, limit and epochs",
    claim="rate S^(1/3) D^(-2/3) T^(-1/3), S^(2/3) A^(1/2) D^(-4/3) T^(5/6) epochs; below T from some T on",
    exact="the parameters and the bound; the least power of two from which the bound says something",
    rejects={"swapped-epochs": ("parameters",), "bounds-cut": ("bound",)},
)
def _parameters_ftpl_stream(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    tuned: Any = parts.ftpl_stream.tuned(_entry(LONG))
    (steps, states, actions), diameter = tuned.entry.kernel.shape, tuned.entry.diameter.value
    rate = states ** (1 / 3) * diameter ** (-2 / 3) * steps ** (-1 / 3)
    epochs = states ** (2 / 3) * actions**0.5 * diameter ** (-4 / 3) * steps ** (5 / 6)
    penalty = 10.0 * states * sqrt(actions * steps * log(actions)) / tuned.rate
    stability = 3.0 * tuned.rate * tuned.length * states * actions * steps
    return _stream(tuned, rate, epochs, penalty + stability + states * actions * steps / (e * tuned.limit))


def _entry(steps: int) -> RenewedSwitching:
    return RenewedSwitching(Kernel.homogeneous(RHYTHM, steps))


def _stream(tuned: Any, rate: float, wished: float, proved: float) -> Finding:
    """Rate and epochs of the theorem; the bound: what is proved without switches, and twice the steps of switches."""
    epochs = ceil(LONG / ceil(LONG / round(wished)))  # all but the last of equal length
    lost = 2.0 * (tuned.epochs - 1) * tuned.entry.expected_length + tuned.epochs * tuned.window
    off = abs(tuned.bound.total / (proved + lost) - 1.0)
    least = _least(lambda steps: type(tuned).tuned(_entry(steps)).bound.total / steps)
    text = (
        f"rate {tuned.rate:.3g}, {tuned.epochs} epochs; {rate:.3g} and {epochs} were asked for; the bound says "
        f"something from T = {least:.2g} on (3 states, diameter {tuned.entry.diameter.value:.1f})"
    )
    wrong = abs(tuned.rate / rate - 1.0) + abs(tuned.epochs - epochs)
    margins = {"parameters": equality_margin(wrong), "bound": equality_margin(off)}
    return _within_reach(judged(text, 0, margins, least=least))


def _within_reach(finding: Finding) -> Finding:
    """Out of reach if it holds, and its bound says something only beyond what can be played."""
    far = finding.verdict is Verdict.HOLDS and finding.figures["least"] > PLAYABLE
    return replace(finding, verdict=Verdict.OUT_OF_REACH) if far else finding


def _least(share: Callable[[int], float]) -> float:
    """The least power of two, up to 2^54, from which the share of the trivial bound stays below 1."""
    return next((2.0**power for power in range(1, 55) if share(2**power) < 1.0), np.inf)
