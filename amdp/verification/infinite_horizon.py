"""The infinite horizon: hitting times, the switch from one stationary policy to another, and the regret without it."""

from itertools import product
from math import log, sqrt
from typing import Any

import numpy as np
from scipy.optimize import linprog

from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import FullInformation, Weights
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import Actions, Floats, one_hot
from amdp.kernels.threads import multiply
from amdp.model.chains import rows_of
from amdp.model.segments import Place, Segment
from amdp.model.transitions import Kernel
from amdp.verification import p_values
from amdp.verification.base import FALSE_ALARM, Effort, Finding, Parts, check, equality_margin, judged, p_value_margin
from amdp.verification.reference_stream import Stream
from amdp.verification.worlds import DOMAIN, occupancies

# A chain with a slow rhythm: its law still moves when a switch ends, so that a target of the wrong time shows.
RHYTHM = np.array([[[1.0, 0.0, 0.0], [0.0, 0.9, 0.1]], [[0.0, 0.1, 0.9]] * 2, [[0.95, 0.0, 0.05]] * 2])  # [s, a, y]


def _entry(parts: Parts, rows: Floats, steps: int) -> PolicySwitching:
    return parts.switching(Kernel.homogeneous(rows, steps))


def plain_law(entry: PolicySwitching, actions: Actions, steps: int) -> Floats:
    """The law `[t, s]` of the state if the policy had been followed from the start."""
    moves = rows_of(entry.kernel)[np.arange(len(actions)), actions]
    law = np.zeros((steps, len(moves)))
    law[0, entry.initial] = 1.0
    for t in range(1, steps):
        law[t] = law[t - 1] @ moves
    return law


def _parked_rows(rng: np.random.Generator, states: int = 4, actions: int = 2) -> Floats:
    """Random rows `[s, a, y]`, all positive but for a place where one may stay."""
    rows = 0.9 * rng.dirichlet(np.full(states, 0.4), size=(states, actions)) + 0.1 / states
    rows[-1, 0] = np.eye(states)[-1]
    return rows


def _least_times(rows: Floats) -> Floats:
    """The least expected steps `[y, s]` to `y`: greatest `x <= 1 + sum_z p(z|s,a) x_z` that is 0 at `y`, by an LP."""
    states, actions, _ = rows.shape
    left = np.repeat(np.eye(states), actions, axis=0) - rows.reshape(-1, states)
    times = np.empty((states, states))
    for target in range(states):
        keep = np.repeat(np.arange(states) != target, actions)
        bounds = [(0, 0) if s == target else (0, None) for s in range(states)]
        times[target] = linprog(-np.ones(states), left[keep], np.ones(keep.sum()), bounds=bounds).x
    return times


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


@check(
    statement="Definition 1, Lemma 29: reaching a state at an exact time (Lemma 5.2 of Chandrasekaran and Tewari)",
    claim="some l <= 2D has a policy that is at s' first after exactly l steps with chance at least 1 / (4D)",
    exact="the diameter by a linear program, first-passage chances of its policy",
    rejects={"lucky-diameter": ("chance", "diameter")},
)
def _hitting(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    worlds, worst, off = effort.samples(6), np.inf, 0.0
    for _ in range(worlds):
        rows = _parked_rows(rng)
        entry = _entry(parts, rows, 400)
        times = _least_times(rows)
        diameter = float(times.max())
        off = max(off, abs(entry.diameter.value - diameter))
        for y in range(len(rows)):
            chances = _first_passages(rows, times[y], y, int(2.0 * diameter))
            others = np.arange(len(rows)) != y
            worst = min(worst, float(chances.max(axis=0)[others].min() * 4.0 * entry.diameter.value))
    text = f"the best chance is at least {worst:.2f} times 1 / (4D); the diameters agree to {off:.0e}"
    return judged(text, 0, {"chance": worst - 1.0, "diameter": equality_margin(off, 1e-6)}, ratio=worst)


@check(
    statement="Lemma 30: one length l* for all targets (Theorem 5.3 of Chandrasekaran and Tewari)",
    claim="with l* <= 2D every target is met after exactly l* steps with chance p_g >= p* >= 1 / (4D)",
    exact="chances of the routes by forward products",
    rejects={"first-visits": ("chances",), "long-attempts": ("bounds",)},
    correction="p_g is the chance to be at g after l* steps, which is what the procedure tests, not of a first visit",
)
def _common_length(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    worlds, worst, off, long = effort.samples(6), np.inf, 0.0, 0.0
    for _ in range(worlds):
        rows = _parked_rows(rng)
        routes, diameter = _entry(parts, rows, 400).routes, float(_least_times(rows).max())
        for target in range(len(rows)):
            at = np.eye(len(rows))[routes.parked]
            for left in reversed(range(routes.length)):
                at = at @ rows[np.arange(len(rows)), routes.actions[target, left]]
            off = max(off, abs(float(at[target]) - float(routes.arrival[target])))
        worst = min(worst, routes.success * 4.0 * diameter)
        long = max(long, routes.length / (2.0 * diameter))
    text = f"p* is at least {worst:.2f} times 1 / (4D), l* at most {long:.2f} times 2D; chances agree to {off:.0e}"
    margins = {"bounds": min(worst - 1.0, 1.0 - long), "chances": equality_margin(off)}
    return judged(text, 0, margins, ratio=worst, length=long)


@check(
    statement="Theorem 31: correctness of switching (Lemma 5.6 of Chandrasekaran and Tewari)",
    claim="the state at the end of a switch has the law mu_pi^t of its time t",
    exact="the law",
    simulated="switches: how often each state is met at each time",
    inequality="the binomial law",
    rejects={"unshifted-target": ("law",)},
    correction="the target is drawn from the law at arrival, t + l*; with the law at t, as printed, it is false",
)
def _switch_law(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    steps, runs = 25, effort.samples(6000)
    entry, actions = _entry(parts, RHYTHM, steps), np.array([1, 0, 0])
    counts = np.zeros((steps, 3))
    for _ in range(runs):
        segment = entry.walk(Place(4, 2), one_hot(actions, 2), steps, rng).segment
        if len(segment.states):
            counts[segment.start, segment.states[0]] += 1
    chances = p_values.frequencies(counts, plain_law(entry, actions, steps))
    least, tests = float(chances.min()), chances.size
    text = f"of {tests} counts of states at times, {int(counts.sum())} switches, the least likely has p = {least:.2g}"
    return judged(text, runs, {"law": p_value_margin(least, tests)}, p_value=least)


@check(
    statement="Theorem 32: efficiency of switching (Lemma 5.7 of Chandrasekaran and Tewari)",
    claim="a switch takes at most (l* + D*) / p* <= 12 D^2 steps in expectation",
    exact="the bounds; the exact law of the length, by plain loops",
    simulated="switches, whose lengths are compared with that law",
    inequality="distance of an empirical distribution function (Massart 1990)",
    rejects={"slow-way-home": ("law",), "unannounced-delay": ("law",), "bounds-cut": ("bounds",)},
)
def _switch_length(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    worlds, steps, runs = 4, 300, effort.samples(600)
    worst, looser, chance = 0.0, 0.0, 1.0
    for _ in range(worlds):
        rows = _parked_rows(rng)
        entry = _entry(parts, rows, steps)
        diameter = float(_least_times(rows).max())
        actions = rng.integers(2, size=len(rows))
        plain = Stream(rows.tolist(), entry.initial, steps, 1.0, 1)
        plain.time, plain.state = 1, 2
        over, policy = np.array(plain.entered(actions.tolist(), steps)), one_hot(actions, 2)
        taken = np.array([len(entry.walk(Place(1, 2), policy, steps, rng).entering.states) for _ in range(runs)])
        seen = (taken[:, None] <= np.arange(len(over))).mean(axis=0)
        chance = min(chance, p_values.distance(float(np.abs(seen - over).max()), runs))
        worst = max(worst, float((1.0 - over).sum()) / entry.expected_length)
        looser = max(looser, entry.expected_length / (12.0 * diameter**2))
    text = (
        f"the mean is at most {worst:.2f} times its bound, and that {looser:.2f} times 12 D^2; the law of the length "
        f"differs with p = {chance:.2g} at least"
    )
    margins = {"law": p_value_margin(chance, worlds), "bounds": 1.0 - max(worst, looser)}
    return judged(text, worlds * runs, margins, share=worst, of_paper=looser)


@check(
    statement="Lemma 45: the noise of all steps (generalizes Lemma 8 of Syrgkanis et al.)",
    claim="E max - E min over policies of <mu, z> is at most 10/rate sqrt(SAT ln N), N policies",
    exact="occupancies of all policies, the bound",
    simulated="draws of the noise",
    inequality="limits of a bounded mean (Maurer and Pontil 2009), of spreads cut at ten times the bound",
    rejects={"scale-for-rate": ("spread",)},
)
def _noise_of_all_steps(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, steps, states, actions = 8.0, 60, 3, 2
    rows, draws = _parked_rows(rng, states, actions), effort.samples(400)
    every = np.array(list(product(range(actions), repeat=states)))
    where = occupancies(np.stack([rows] * steps), np.stack([every] * steps, axis=1), 0)
    noise = parts.laplace(rate).perturbed(np.zeros((steps, states, actions)), draws, rng)
    sums = multiply(noise.reshape(draws, -1), where.reshape(len(every), -1).T)
    spread = sums.max(axis=1) - sums.min(axis=1)
    allowed = 10.0 / rate * sqrt(states * actions * steps * log(len(every)))
    mean, most = float(spread.mean()), 10.0 * allowed
    least = p_values.lower_mean(np.minimum(spread, most), most, FALSE_ALARM)
    text = f"spread {mean:.2f}, bound {allowed:.1f}"
    return judged(text, draws, {"spread": 1.0 - least / allowed}, share=mean / allowed)


@check(
    statement="Lemma 37: property of Hedge",
    claim="the sum of <p_t, l_t> - l_t(i) is at most ln N / rate + rate sum of <p_t, l_t^2>, on every path",
    exact="both sides, on each path",
    rejects={"contrary-hedge": ("regret",)},
)
def _hedge_inequality(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, paths, rounds, worst = 0.25, effort.samples(20), 60, -np.inf
    nowhere = Segment(np.empty(0, np.int64), np.empty(0, np.int64))
    for _ in range(paths):
        learner = parts.hedge(rate, WholeTable())
        distribution: Any = learner.start(DOMAIN, rng)
        paid = squared = 0.0
        totals = np.zeros(len(distribution.incurred))
        best = rng.random(DOMAIN.shape)
        for _ in range(rounds):
            table = (rng.random(DOMAIN.shape) < best).astype(np.float64)
            losses = distribution.listed.expected_losses(table)
            chances = distribution.mixture.chances
            paid, squared = paid + float(chances @ losses), squared + float(chances @ losses**2)
            totals += losses
            distribution = learner.learn(distribution, FullInformation(nowhere, Weights(np.empty(0)), table))
        allowed = log(len(totals)) / rate + rate * squared
        worst = max(worst, (paid - float(totals.min())) / allowed)
    text = f"the regret is at most {worst:.3f} times the right side, on {paths} paths of {rounds} rounds"
    return judged(text, 0, {"regret": 1.0 - worst}, share=worst)
