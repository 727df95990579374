"""Geometric resampling and importance weighting: what the estimates are on average, and how much they scatter."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from amdp.algorithms.estimators.feedback import Bandit
from amdp.arrays import Actions, Floats
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame
from amdp.losses import FixedLosses
from amdp.model.domains import MarkovPolicies
from amdp.model.segments import Segment
from amdp.model.transitions import Kernel
from amdp.verification import p_values, worlds
from amdp.verification.base import Effort, Finding, Parts, check, equality_margin, judged, p_value_margin
from amdp.verification.comparison import RecordingLearner, random_streams
from amdp.verification.worlds import ACTIONS, DOMAIN, INITIAL, KERNEL, SHAPE, STATES, STEPS, TRANSITIONS

RATE, LIMIT = 0.4, 3
PLAIN = 60_000  # estimates by plain array operations
EXCHANGEABLE = "the mean of one of two samples among all orders of both (Hoeffding 1963, Bennett 1962)"


def _losses(rng: np.random.Generator) -> Floats:
    return rng.uniform(0.2, 1.0, size=SHAPE)


def _estimates(parts: Parts, domain: MarkovPolicies, total: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Estimates `[n, h, s, a]` of losses that are 1 everywhere, each of one episode in the small world."""
    learner = parts.ftpl(RATE, LIMIT)
    distribution: Any = replace(learner.start(domain, rng), total=total)
    estimates = np.empty((n, *SHAPE))
    for i in range(n):
        feedback = worlds.feedback_of_round(learner, distribution, distribution.draw(rng), np.ones(SHAPE), rng)
        estimates[i] = learner.learn(distribution, feedback).total - total
    return estimates


def _plain_estimates(
    policies: Callable[[], Actions], tried: Callable[[Actions], Floats], rng: np.random.Generator
) -> Floats:
    """The same by plain array operations: `policies()` are independent, and meet each pair with the chances `tried`."""
    met = worlds.paths(TRANSITIONS, policies(), rng)
    counts, open_still = np.ones(met.shape), np.ones(met.shape, dtype=bool)
    for _ in range(LIMIT - 1):
        open_still &= rng.random(met.shape) >= tried(policies())
        counts += open_still
    return np.asarray(met * counts)


def _known(parts: Parts, effort: Effort, rng: np.random.Generator, power: int) -> Finding:
    """Compare the moments of estimates with those of plain array operations, after some losses were learned."""
    total = 3.0 * _losses(rng)
    estimates = _estimates(parts, DOMAIN, total, effort.samples(3000), rng)

    def policies() -> Actions:
        return worlds.leaders(TRANSITIONS, total + worlds.laplace(effort.samples(PLAIN), RATE, rng))

    plain = _plain_estimates(policies, lambda actions: worlds.occupancies(TRANSITIONS, actions), rng)
    chance, tests = _compared(estimates, plain, (power,))
    text = f"means of power {power} of {tests} estimates differ with p = {chance:.2g} at least"
    return judged(text, len(estimates), {"moments": p_value_margin(chance, tests)}, p_value=chance)


@check(
    statement="Lemma 38: expectation of geometric resampling (Lemma 1 of Neu and Bartok)",
    claim="E[estimate] = (1 - (1-q)^L) loss",
    exact="the chance q of every policy's visits",
    simulated="episodes of the library with their counts, and the same by plain backward induction on noise of numpy",
    inequality=EXCHANGEABLE,
    rejects=dict.fromkeys(("scale-for-rate", "no-truncation", "fixed-noise", "trials-from-state-0"), ("moments",)),
)
def _resampling_mean(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    return _known(parts, effort, rng, 1)


@check(
    statement="Lemma 39: variance of geometric resampling",
    claim="E[estimate^2] = loss^2 q E[M^2], at most 2 loss^2 / q",
    exact="the chance q of every policy's visits",
    simulated="episodes of the library with their counts, and the same by plain backward induction on noise of numpy",
    inequality=EXCHANGEABLE,
    rejects=dict.fromkeys(("scale-for-rate", "no-truncation", "fixed-noise", "trials-from-state-0"), ("moments",)),
)
def _resampling_variance(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    return _known(parts, effort, rng, 2)


def _compared(estimates: Floats, plain: Floats, powers: tuple[int, ...]) -> tuple[float, int]:
    """The least p-value of the pairs and powers, and how many there are."""
    columns = estimates.reshape(len(estimates), -1).T, plain.reshape(len(plain), -1).T
    chances = [
        p_values.exchangeable(*(sample**power for sample in pair))
        for power in powers
        for pair in zip(*columns, strict=True)
    ]
    return min(chances), len(chances)


@check(
    statement="Corollary 40, Corollary 41: expectation and variance with unequal probabilities",
    claim=(
        "visited with chance v, tried with chance q: E[estimate] = (v/q) (1 - (1-q)^L) loss, "
        "E[estimate^2] <= 2 loss^2 v / q^2"
    ),
    exact="greatest visit chances over the box",
    simulated="episodes of the library over a box, and the same by plain extended value iteration on noise of numpy",
    inequality=EXCHANGEABLE,
    rejects=dict.fromkeys(("wrong-step", "scale-for-rate", "no-truncation", "fixed-noise"), ("moments",))
    | {"frozen-sets": ("narrowed",)},
)
def _resampling_unequal(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """Over the box that some paths of a uniform player leave."""
    total, seen = 3.0 * _losses(rng), 60
    box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, seen, 0.1, scale=0.05))
    for uniforms in rng.random((seen, STEPS, 2)):
        box = box.narrow(KERNEL.walk(np.full(SHAPE, 1.0 / ACTIONS), INITIAL, uniforms))
    estimates = _estimates(parts, MarkovPolicies(box, INITIAL), total, effort.samples(1500), rng)

    def policies() -> Actions:
        costs = total + worlds.laplace(effort.samples(PLAIN // 4), RATE, rng)
        return worlds.extended_value_iteration(box.lower, box.upper, costs)[0]

    plain = _plain_estimates(policies, lambda actions: worlds.greatest_chances(box.lower, box.upper, actions), rng)
    chance, tests = _compared(estimates, plain, (1, 2))
    width = float((box.upper - box.lower)[0, INITIAL].mean())
    text = (
        f"first and second moments of {tests // 2} estimates differ with p = {chance:.2g} at least; intervals of the "
        f"first step are {width:.2f} wide"
    )
    margins = {"moments": p_value_margin(chance, tests), "narrowed": 0.9 - width}
    return judged(text, len(estimates), margins, p_value=chance)


# --- exact ------------------------------------------------------------------------------------------------------------


@check(
    statement="Lemma 42, Lemma 43: mean and variance of importance weighting",
    claim="E[estimate] = loss, E[estimate^2] = loss^2 / q",
    exact="everything: all policies and all paths are enumerated",
    rejects={"exploring-weights": ("moments",)},
)
def _importance_weighting(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    start = parts.hedge(0.3, parts.weighting()).start(DOMAIN, rng)
    mixture = replace(start, incurred=rng.uniform(0.0, 8.0, len(start.incurred))).mixture
    losses, mean, square = _losses(rng), np.zeros(SHAPE), np.zeros(SHAPE)
    q = (mixture.chances[:, None, None, None] * worlds.occupancies(TRANSITIONS, mixture.listed.actions)).sum(axis=0)
    for states in product(range(STATES), repeat=STEPS - 1):
        for actions in product(range(ACTIONS), repeat=STEPS):
            path = Segment(np.array([INITIAL, *states]), np.array(actions))
            chance = _chance_of_path(mixture, path)
            if chance == 0.0:
                continue
            weights = parts.weighting().weigh(mixture, path, rng)
            estimate = parts.weighting().add(np.zeros(SHAPE), Bandit.reveal(losses, path, weights), mixture)
            mean += chance * estimate
            square += chance * estimate**2
    reached = q > 1e-12
    off = float(np.abs(mean - losses)[reached].max())
    off_square = float(np.abs(square - losses**2 / np.where(reached, q, 1.0))[reached].max())
    text = f"off by at most {off:.1e} in the mean and {off_square:.1e} in the second moment; allowed 1e-9"
    return judged(text, 0, {"moments": equality_margin(max(off, off_square))}, mean=off, second_moment=off_square)


def _chance_of_path(mixture: Any, path: Segment) -> float:
    moves = np.prod([TRANSITIONS[h, path.states[h], path.actions[h], path.states[h + 1]] for h in range(STEPS - 1)])
    agree = (mixture.listed.actions[:, np.arange(STEPS), path.states] == path.actions).all(axis=1)
    return float(moves * mixture.chances[agree].sum())


@check(
    statement="section 4: with delays the estimators are those of the undelayed run",
    claim="the estimate of a round has the law of the truncated count with q of the round that was played",
    exact="q = 1/2 before anything was learned, the truncated law",
    simulated="games of five rounds in which feedback of the first comes last",
    inequality="the binomial law",
    rejects={"late-weights": ("law",), "delay-off-by-one": ("law",)},
)
def _delayed_weights(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """A bandit: when the first round's feedback arrives, four rounds have shown that its first action has losses."""
    arena, runs = Episodic(Kernel(np.ones((1, 1, ACTIONS, 1)))), effort.samples(1500)
    losses = np.zeros((5, 1, 1, ACTIONS))
    losses[0], losses[1:, ..., 0] = 1.0, 1.0
    game = ArenaGame(arena, FixedLosses(losses), parts.delays(np.array([4, 0, 0, 0, 0])))
    counts = np.zeros((ACTIONS, LIMIT + 1))  # of the first round's weight, for its action; 0: it did not arrive
    for _ in range(runs):
        learner = RecordingLearner(parts.ftpl(5.0, LIMIT))
        list(parts.play(game, learner, arena.domain, random_streams(rng)))
        added = learner.added[3][0, 0] if len(learner.added) == 5 else np.zeros(ACTIONS)
        action = int(added.argmax())
        counts[action, min(round(added[action]), LIMIT)] += 1
    law = np.array([[0.0, *(0.25 / 2.0**m for m in range(LIMIT - 1)), 0.5**LIMIT] for _ in range(ACTIONS)])
    chances = p_values.frequencies(counts.reshape(-1), law.reshape(-1))
    least = float(chances.min())
    text = f"how often each weight of the first round came: p = {least:.2g} at least, of {chances.size} counts"
    return judged(text, runs, {"law": p_value_margin(least, chances.size)}, p_value=least)
