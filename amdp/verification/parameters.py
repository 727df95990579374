"""What the theorems choose (learning rate, limit of trials, epochs), and from which size their bounds say something."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil, e, log, sqrt
from typing import Any

import numpy as np
from scipy.stats import gamma

from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.streams.switching import PolicySwitching, RenewedSwitching
from amdp.model.transitions import Kernel
from amdp.verification.base import (
    NO_FALSE_ALARM,
    Check,
    Effort,
    Finding,
    Parts,
    Verdict,
    at_most,
    equality_margin,
    judged,
    p_value_margin,
)
from amdp.verification.switches import RHYTHM
from amdp.verification.worlds import SmallWorld

PLAYABLE = 1e6  # rounds or steps that are played within hours


def checks() -> list[Check]:
    """The choices of the theorems."""
    return [
        Check(
            "parameters-episodes",
            "Theorem 4: choices of rate and limit",
            "rate 1/sqrt(HSAK) and limit sqrt(SAK/H); the bound is below HK from some K on",
            "the parameters and the bound; the least power of two from which the bound says something",
            "the size of the noise",
            {"scale-for-rate": ("noise",), "bounds-cut": ("bound",)},
            _parameters_episodes,
            at_most("a sum of exponential variables has a Gamma law"),
        ),
        Check(
            "parameters-hedge",
            "Theorem 8: choices of rate and epochs",
            "rate S^(1/3) A^(-1/3) (DT)^(-2/3), (ST)^(2/3) A^(1/3) D^(-4/3) epochs; below T from some T on",
            "the parameters and the bound; the least power of two from which the bound says something",
            "",
            {"swapped-epochs": ("parameters",), "bounds-cut": ("bound",)},
            _parameters_hedge,
            NO_FALSE_ALARM,
        ),
        Check(
            "parameters-ftpl-stream",
            "Theorem 7: choices of rate, limit and epochs",
            "rate S^(1/3) D^(-2/3) T^(-1/3), S^(2/3) A^(1/2) D^(-4/3) T^(5/6) epochs; below T from some T on",
            "the parameters and the bound; the least power of two from which the bound says something",
            "",
            {"swapped-epochs": ("parameters",), "bounds-cut": ("bound",)},
            _parameters_ftpl_stream,
            NO_FALSE_ALARM,
        ),
    ]


def _parameters_episodes(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    domain, rounds, draws = SmallWorld.fixed().domain, 1000, 20_000
    steps, states, actions = domain.shape
    tuned: Any = parts.leader.tuned(domain, rounds, perturbation=parts.laplace)
    rate, limit = 1.0 / sqrt(steps * states * actions * rounds), ceil(sqrt(states * actions * rounds / steps))
    size = float(np.abs(tuned.perturbation.perturbed(np.zeros(domain.shape), draws, rng)).sum()) * rate
    law = gamma(draws * steps * states * actions)  # of a sum of variables |z| rate, which are Exp(1)
    chance = min(1.0, 2.0 * min(float(law.cdf(size)), float(law.sf(size))))
    proved = sum(
        (
            steps * states * actions * rounds / (e * limit),
            2.0 * steps * (1.0 + log(states * actions)) / rate,
            3.0 * rate * steps**2 * states * actions * rounds,
        )
    )
    bound = tuned.bound(domain, rounds)
    off = abs(tuned.estimator.limit - limit) + (np.inf if bound is None else abs(bound.total / proved - 1.0))

    def share(k: int) -> float:
        bound_of_k = Ftpl.tuned(domain, k).bound(domain, k)
        assert bound_of_k is not None
        return bound_of_k.total / (steps * k)

    least = _least(share)
    text = (
        f"noise of {size / (draws * steps * states * actions):.3g} times its size (p = {chance:.2g}), limit "
        f"{tuned.estimator.limit}; the bound says something from K = {least:.2g} on ({steps} steps, {states} states, "
        f"{actions} actions)"
    )
    margins = {"noise": p_value_margin(chance, 1), "bound": equality_margin(off)}
    return _within_reach(judged(text, draws, margins, least=least))


def _parameters_hedge(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    def wanted(entry: PolicySwitching) -> tuple[float, float]:
        (steps, states, actions), diameter = entry.kernel.shape, entry.diameter.value
        rate = (states / actions) ** (1 / 3) * (diameter * steps) ** (-2 / 3)
        return rate, (states * steps) ** (2 / 3) * actions ** (1 / 3) * diameter ** (-4 / 3)

    def proved(tuned: Any) -> float:
        steps, states, actions = tuned.entry.kernel.shape
        penalty = states * log(actions) / tuned.rate
        return float(penalty + tuned.rate * tuned.length * states * actions * steps)

    return _stream(parts.hedge_stream, wanted, proved)


def _parameters_ftpl_stream(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    def wanted(entry: PolicySwitching) -> tuple[float, float]:
        (steps, states, actions), diameter = entry.kernel.shape, entry.diameter.value
        rate = states ** (1 / 3) * diameter ** (-2 / 3) * steps ** (-1 / 3)
        return rate, states ** (2 / 3) * actions**0.5 * diameter ** (-4 / 3) * steps ** (5 / 6)

    def proved(tuned: Any) -> float:
        steps, states, actions = tuned.entry.kernel.shape
        penalty = 10.0 * states * sqrt(actions * steps * log(actions)) / tuned.rate
        stability = 3.0 * tuned.rate * tuned.length * states * actions * steps
        return float(penalty + stability + states * actions * steps / (e * tuned.limit))

    return _stream(parts.ftpl_stream, wanted, proved)


def _stream(
    kind: Any, wanted: Callable[[PolicySwitching], tuple[float, float]], proved: Callable[[Any], float]
) -> Finding:
    """Rate and epochs of the theorem; the bound: what is proved without switches, and twice the steps of switches."""
    steps = 10**9
    entry = RenewedSwitching(Kernel.homogeneous(RHYTHM, steps))
    tuned = kind.tuned(entry)
    rate, wished = wanted(entry)
    epochs = ceil(steps / ceil(steps / round(wished)))  # all but the last of equal length
    lost = 2.0 * (tuned.epochs - 1) * entry.expected_length + tuned.epochs * tuned.window
    off = abs(tuned.bound.total / (proved(tuned) + lost) - 1.0)
    least = _least(lambda steps: kind.tuned(RenewedSwitching(Kernel.homogeneous(RHYTHM, steps))).bound.total / steps)
    text = (
        f"rate {tuned.rate:.3g}, {tuned.epochs} epochs; {rate:.3g} and {epochs} were asked for; the bound says "
        f"something from T = {least:.2g} on (3 states, diameter {entry.diameter.value:.1f})"
    )
    margins = {
        "parameters": equality_margin(abs(tuned.rate / rate - 1.0) + abs(tuned.epochs - epochs)),
        "bound": equality_margin(off),
    }
    return _within_reach(judged(text, 0, margins, least=least))


def _within_reach(finding: Finding) -> Finding:
    """Out of reach if it holds, and its bound says something only beyond what can be played."""
    far = finding.verdict is Verdict.HOLDS and finding.figures["least"] > PLAYABLE
    return replace(finding, verdict=Verdict.OUT_OF_REACH) if far else finding


def _least(share: Callable[[int], float]) -> float:
    """The least power of two, up to 2^54, from which the share of the trivial bound stays below 1."""
    return next((2.0**power for power in range(1, 55) if share(2**power) < 1.0), np.inf)
