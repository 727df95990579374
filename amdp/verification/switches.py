"""The infinite horizon: hitting times, and the procedure that switches from one stationary policy to another."""

import numpy as np
from scipy.optimize import linprog

from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import Floats, one_hot
from amdp.model.segments import Place
from amdp.model.transitions import Kernel
from amdp.verification import p_values
from amdp.verification.base import (
    NO_FALSE_ALARM,
    Check,
    Effort,
    Finding,
    Parts,
    at_most,
    equality_margin,
    judged,
    p_value_margin,
)
from amdp.verification.reference_stream import Stream

# A chain with a slow rhythm: its law still moves when a switch ends, so that a target of the wrong time shows.
RHYTHM = np.zeros((3, 2, 3))
RHYTHM[0, 0, 0] = 1.0
RHYTHM[0, 1, 1], RHYTHM[0, 1, 2] = 0.9, 0.1
RHYTHM[1, :, 2], RHYTHM[1, :, 1] = 0.9, 0.1
RHYTHM[2, :, 0], RHYTHM[2, :, 2] = 0.95, 0.05


def checks() -> list[Check]:
    """Hitting times and policy switching: section 5 and appendix D."""
    return [
        Check(
            "hitting",
            "Definition 1, Lemma 29: reaching a state at an exact time (Lemma 5.2 of Chandrasekaran and Tewari)",
            "some l <= 2D has a policy that is at s' first after exactly l steps with chance at least 1 / (4D)",
            "the diameter by a linear program, first-passage chances of its policy",
            "",
            {"lucky-diameter": ("chance", "diameter")},
            _hitting,
            NO_FALSE_ALARM,
        ),
        Check(
            "common-length",
            "Lemma 30: one length l* for all targets (Theorem 5.3 of Chandrasekaran and Tewari)",
            "with l* <= 2D every target is met after exactly l* steps with chance p_g >= p* >= 1 / (4D)",
            "chances of the routes by forward products",
            "",
            {"first-visits": ("chances",), "long-attempts": ("bounds",)},
            _common_length,
            NO_FALSE_ALARM,
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
    ]


def _entry(parts: Parts, rows: Floats, steps: int) -> PolicySwitching:
    return parts.switching(Kernel.homogeneous(rows, steps))


def parked_rows(rng: np.random.Generator, states: int = 4, actions: int = 2) -> Floats:
    """Random rows `[s, a, y]`, all positive but for a place where one may stay."""
    rows = 0.9 * rng.dirichlet(np.full(states, 0.4), size=(states, actions)) + 0.1 / states
    rows[-1, 0] = np.eye(states)[-1]
    return rows


def _least_times(rows: Floats, target: int) -> Floats:
    """The least expected steps `[s]` to `target`: greatest `x <= 1 + sum_y p(y|s,a) x_y` that is 0 at the target."""
    states, actions, _ = rows.shape
    left = np.repeat(np.eye(states), actions, axis=0) - rows.reshape(-1, states)
    keep = np.repeat(np.arange(states) != target, actions)
    bounds = [(0, 0) if s == target else (0, None) for s in range(states)]
    solution = linprog(-np.ones(states), left[keep], np.ones(keep.sum()), bounds=bounds)
    return np.asarray(solution.x, dtype=np.float64)


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
        rows = parked_rows(rng)
        entry = _entry(parts, rows, 400)
        times = np.stack([_least_times(rows, y) for y in range(len(rows))])  # [y, s]
        diameter = float(times.max())
        off = max(off, abs(entry.diameter.value - diameter))
        for y in range(len(rows)):
            chances = _first_passages(rows, times[y], y, int(2.0 * diameter))
            others = np.arange(len(rows)) != y
            worst = min(worst, float(chances.max(axis=0)[others].min() * 4.0 * entry.diameter.value))
    text = f"the best chance is at least {worst:.2f} times 1 / (4D); the diameters agree to {off:.0e}"
    return judged(text, 0, {"chance": worst - 1.0, "diameter": equality_margin(off, 1e-6)}, ratio=worst)


def _common_length(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    worlds, worst, off, long = effort.samples(6), np.inf, 0.0, 0.0
    for _ in range(worlds):
        rows = parked_rows(rng)
        routes, diameter = _entry(parts, rows, 400).routes, max(_least_times(rows, y).max() for y in range(len(rows)))
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
    chances = p_values.frequencies(counts, law)
    least, tests = float(chances.min()), chances.size
    text = f"of {tests} counts of states at times, {int(counts.sum())} switches, the least likely has p = {least:.2g}"
    return judged(text, runs, {"law": p_value_margin(least, tests)}, p_value=least)


def _switch_length(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    worlds, steps, runs = 4, 300, effort.samples(600)
    worst, looser, chance = 0.0, 0.0, 1.0
    for _ in range(worlds):
        rows = parked_rows(rng)
        entry = _entry(parts, rows, steps)
        diameter = max(_least_times(rows, y).max() for y in range(len(rows)))
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
