"""The infinite horizon: hitting times, switches, the noise of all steps, and Hedge."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import ceil, e, log, sqrt
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.stats import gamma

from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import FullInformation, Weights
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.streams.switching import PolicySwitching, RenewedSwitching
from amdp.arrays import Floats, one_hot
from amdp.kernels.threads import multiply
from amdp.model.segments import Place, Segment
from amdp.model.transitions import Kernel
from amdp.verification import rates
from amdp.verification.base import (
    FALSE_ALARM,
    NO_CHANCE,
    Check,
    Effort,
    Finding,
    Parts,
    Verdict,
    agreement,
    at_most,
    judged,
    unsurprising,
)
from amdp.verification.reference import Stream
from amdp.verification.worlds import SmallWorld

PLAYABLE = 1e6  # rounds or steps that are played within hours

# A chain with a slow rhythm: its law still moves when a switch ends, so that a target of the wrong time shows.
RHYTHM = np.zeros((3, 2, 3))
RHYTHM[0, 0, 0] = 1.0
RHYTHM[0, 1, 1], RHYTHM[0, 1, 2] = 0.9, 0.1
RHYTHM[1, :, 2], RHYTHM[1, :, 1] = 0.9, 0.1
RHYTHM[2, :, 0], RHYTHM[2, :, 2] = 0.95, 0.05


def checks() -> list[Check]:
    """Section 5 and appendix D."""
    return [
        Check(
            "hitting",
            "Definition 1, Lemma 29: reaching a state at an exact time (Lemma 5.2 of Chandrasekaran and Tewari)",
            "some l <= 2D has a policy that is at s' first after exactly l steps with chance at least 1 / (4D)",
            "the diameter by a linear program, first-passage chances of its policy",
            "",
            {"lucky-diameter": ("chance", "diameter")},
            _hitting,
            NO_CHANCE,
        ),
        Check(
            "common-length",
            "Lemma 30: one length l* for all targets (Theorem 5.3 of Chandrasekaran and Tewari)",
            "with l* <= 2D every target is met after exactly l* steps with chance p_g >= p* >= 1 / (4D)",
            "chances of the routes by forward products",
            "",
            {"first-visits": ("chances",), "long-attempts": ("bounds",)},
            _common_length,
            NO_CHANCE,
            "p_g is the chance to be at g after l* steps, which is what the procedure tests, not of a first visit",
        ),
        Check(
            "switch-law",
            "Theorem 31: correctness of switching (Lemma 5.6 of Chandrasekaran and Tewari)",
            "the state at the end of a switch has the law mu_pi^t of its time t",
            "the law",
            "switches: how often each state is met at each time",
            {"unshifted-target": ("law",)},
            _switch_law,
            at_most("the binomial law"),
            "the target is drawn from the law at arrival, t + l*; with the law at t, as printed, it is false",
        ),
        Check(
            "switch-length",
            "Theorem 32: efficiency of switching (Lemma 5.7 of Chandrasekaran and Tewari)",
            "a switch takes at most (l* + D*) / p* <= 12 D^2 steps in expectation",
            "the bounds; the exact law of the length, by plain loops",
            "switches, whose lengths are compared with that law",
            {"slow-way-home": ("law",), "unannounced-delay": ("law",), "bounds-cut": ("bounds",)},
            _switch_length,
            at_most("distance of an empirical distribution function (Massart 1990)"),
        ),
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
            NO_CHANCE,
        ),
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
            NO_CHANCE,
        ),
        Check(
            "parameters-ftpl-stream",
            "Theorem 7: choices of rate, limit and epochs",
            "rate S^(1/3) D^(-2/3) T^(-1/3), S^(2/3) A^(1/2) D^(-4/3) T^(5/6) epochs; below T from some T on",
            "the parameters and the bound; the least power of two from which the bound says something",
            "",
            {"swapped-epochs": ("parameters",), "bounds-cut": ("bound",)},
            _parameters_ftpl_stream,
            NO_CHANCE,
        ),
    ]


def _entry(parts: Parts, rows: Floats, steps: int) -> PolicySwitching:
    return parts.switching(Kernel.homogeneous(rows, steps))


def _parked(rng: np.random.Generator, states: int = 4, actions: int = 2) -> Floats:
    """Random rows `[s, a, y]`, all positive but for a place where one may stay."""
    rows = 0.9 * rng.dirichlet(np.full(states, 0.4), size=(states, actions)) + 0.1 / states
    rows[-1, 0] = np.eye(states)[-1]
    return rows


# --- hitting ----------------------------------------------------------------------------------------------------------


def _least_times(rows: Floats, target: int) -> Floats:
    """The least expected steps `[s]` to `target`: greatest `x <= 1 + sum_y p(y|s,a) x_y` that is 0 at the target."""
    states, actions, _ = rows.shape
    left = np.repeat(np.eye(states), actions, axis=0) - rows.reshape(-1, states)
    keep = np.repeat(np.arange(states) != target, actions)
    bounds = [(0, 0) if s == target else (0, None) for s in range(states)]
    found = linprog(-np.ones(states), left[keep], np.ones(keep.sum()), bounds=bounds)
    return np.asarray(found.x, dtype=np.float64)


def _first_passages(rows: Floats, times: Floats, target: int, longest: int) -> Floats:
    """The chance `[l, s]` that the policy of least time is at `target` first after exactly `l + 1` steps."""
    ahead = rows @ times
    chosen = rows[np.arange(len(rows)), ahead.argmin(axis=1)]
    chances = np.empty((longest, len(rows)))
    chances[0] = chosen[:, target]
    stay = chosen * (np.arange(len(rows)) != target)
    for step in range(1, longest):
        chances[step] = stay @ chances[step - 1]
    return chances


def _hitting(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    worlds, worst, off = effort.samples(6), np.inf, 0.0
    for _ in range(worlds):
        rows = _parked(rng)
        entry = _entry(parts, rows, 400)
        times = np.stack([_least_times(rows, y) for y in range(len(rows))])  # [y, s]
        diameter = float(times.max())
        off = max(off, abs(entry.diameter.value - diameter))
        for y in range(len(rows)):
            chances = _first_passages(rows, times[y], y, int(2.0 * diameter))
            others = np.arange(len(rows)) != y
            worst = min(worst, float(chances.max(axis=0)[others].min() * 4.0 * entry.diameter.value))
    text = f"the best chance is at least {worst:.2f} times 1 / (4D); the diameters agree to {off:.0e}"
    return judged(text, 0, {"chance": worst - 1.0, "diameter": agreement(off, 1e-6)}, ratio=worst)


def _common_length(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    worlds, worst, off, long = effort.samples(6), np.inf, 0.0, 0.0
    for _ in range(worlds):
        rows = _parked(rng)
        routes, diameter = _entry(parts, rows, 400).routes, max(_least_times(rows, y).max() for y in range(len(rows)))
        for target in range(len(rows)):
            at = np.eye(len(rows))[routes.parked]
            for left in reversed(range(routes.length)):
                at = at @ rows[np.arange(len(rows)), routes.actions[target, left]]
            off = max(off, abs(float(at[target]) - float(routes.arrival[target])))
        worst = min(worst, routes.success * 4.0 * diameter)
        long = max(long, routes.length / (2.0 * diameter))
    text = f"p* is at least {worst:.2f} times 1 / (4D), l* at most {long:.2f} times 2D; chances agree to {off:.0e}"
    margins = {"bounds": min(worst - 1.0, 1.0 - long), "chances": agreement(off)}
    return judged(text, 0, margins, ratio=worst, length=long)


# --- switches ---------------------------------------------------------------------------------------------------------


def _switch_law(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    steps, runs = 25, effort.samples(6000)
    entry = _entry(parts, RHYTHM, steps)
    policy = one_hot(np.array([1, 0, 0]), 2)
    counts = np.zeros((steps, 3))
    for _ in range(runs):
        segment = entry.walk(Place(4, 2), policy, steps, rng).segment
        if len(segment.states):
            counts[segment.start, segment.states[0]] += 1
    law = np.zeros((steps, 3))
    law[0, 0] = 1.0
    for t in range(1, steps):
        law[t] = law[t - 1] @ RHYTHM[np.arange(3), [1, 0, 0]]
    chances = rates.frequencies(counts, law)
    least, tests = float(chances.min()), chances.size
    text = f"of {tests} counts of states at times, {int(counts.sum())} switches, the least likely has p = {least:.2g}"
    return judged(text, runs, {"law": unsurprising(least, tests)}, p_value=least)


def _switch_length(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    worlds, steps, runs = 4, 300, effort.samples(600)
    worst, looser, chance = 0.0, 0.0, 1.0
    for _ in range(worlds):
        rows = _parked(rng)
        entry = _entry(parts, rows, steps)
        diameter = max(_least_times(rows, y).max() for y in range(len(rows)))
        actions = rng.integers(2, size=len(rows))
        plain = Stream(rows.tolist(), entry.initial, steps, 1.0, 1)
        plain.time, plain.state = 1, 2
        over, policy = np.array(plain.entered(actions.tolist(), steps)), one_hot(actions, 2)
        taken = np.array([len(entry.walk(Place(1, 2), policy, steps, rng).entering.states) for _ in range(runs)])
        seen = (taken[:, None] <= np.arange(len(over))).mean(axis=0)
        chance = min(chance, rates.distance(float(np.abs(seen - over).max()), runs))
        worst = max(worst, float((1.0 - over).sum()) / entry.expected_length)
        looser = max(looser, entry.expected_length / (12.0 * diameter**2))
    text = (
        f"the mean is at most {worst:.2f} times its bound, and that {looser:.2f} times 12 D^2; the law of the length "
        f"differs with p = {chance:.2g} at least"
    )
    margins = {"law": unsurprising(chance, worlds), "bounds": 1.0 - max(worst, looser)}
    return judged(text, worlds * runs, margins, share=worst, of_paper=looser)


# --- noise and Hedge --------------------------------------------------------------------------------------------------


def _noise_of_all_steps(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, steps, states, actions = 8.0, 60, 3, 2
    rows = _parked(rng, states, actions)
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
    least = rates.lower_mean(np.minimum(spread, most), most, FALSE_ALARM)
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
        totals = np.zeros(len(distribution.paid))
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


# --- choices of the theorems ------------------------------------------------------------------------------------------


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
        found = Ftpl.tuned(domain, k).bound(domain, k)
        assert found is not None
        return found.total / (steps * k)

    least = _least(share)
    text = (
        f"noise of {size / (draws * steps * states * actions):.3g} times its size (p = {chance:.2g}), limit "
        f"{tuned.estimator.limit}; the bound says something from K = {least:.2g} on ({steps} steps, {states} states, "
        f"{actions} actions)"
    )
    margins = {"noise": unsurprising(chance, 1), "bound": agreement(off)}
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
        "parameters": agreement(abs(tuned.rate / rate - 1.0) + abs(tuned.epochs - epochs)),
        "bound": agreement(off),
    }
    return _within_reach(judged(text, 0, margins, least=least))


def _within_reach(found: Finding) -> Finding:
    """Out of reach if it holds, and its bound says something only beyond what can be played."""
    far = found.verdict is Verdict.HOLDS and found.figures["least"] > PLAYABLE
    return replace(found, verdict=Verdict.OUT_OF_REACH) if far else found


def _least(share: Callable[[int], float]) -> float:
    """The least power of two, up to 2^54, from which the share of the trivial bound stays below 1."""
    return next((2.0**power for power in range(1, 55) if share(2**power) < 1.0), np.inf)
