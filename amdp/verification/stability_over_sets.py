"""Stability over confidence sets and with delays, and how far occupancies in a set are apart (appendices B.2 and C)."""

from dataclasses import dataclass, field
from math import exp, log, sqrt
from typing import Any

import numpy as np

from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.ftpl.perturbed_leader import laplace_rate, resampling_limit
from amdp.arrays import Actions, Floats, one_hot
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import MarkovPolicies
from amdp.model.segments import Pairs
from amdp.oracles.base import bind
from amdp.verification import p_values, worlds
from amdp.verification.base import FALSE_ALARM, Effort, Finding, Parts, check, judged
from amdp.verification.unknown_transitions import MAX_WIDTH, first_width
from amdp.verification.worlds import ACTIONS, DOMAIN, INITIAL, KERNEL, PAIRS, SHAPE, STATES, STEPS, TRANSITIONS

ROUNDS = 60
DELTA = 0.02
SCALE = 0.1  # of the radius: at full size the sets stay vacuous for thousands of rounds
GAME_SCALE = 0.03  # in games of few rounds: stability asks for no true kernel in the set
DRAWS = 800  # of the noise, for expectations over the law of the leader
LAW = 100  # leaders that are a law, whose moments are found exactly
EVERY_PAIR = Pairs.all(SHAPE)


@dataclass(frozen=True, eq=False)
class _Leaders:
    """Leaders of draws of the noise over one confidence set: policies and kernels, as the cheapest pairs."""

    actions: Actions  # [n, h, s]
    values: Floats  # [n, h, s], what a policy has ahead under its own kernel
    box: BernsteinBox

    @classmethod
    def of(cls, parts: Parts, box: BernsteinBox, costs: Floats) -> "_Leaders":
        """The cheapest pair for each of `costs` `[n, h, s, a]`."""
        plans = bind(parts.oracle, MarkovPolicies(box, INITIAL)).minimize(costs)
        return cls(plans.actions, box.cheapest(costs).values, box)

    @property
    def occupancies(self) -> Floats:
        """Where each policy is under its kernel, `[n, h, s, a]`."""
        return worlds.optimistic_occupancies(self.box.lower, self.box.upper, self.actions, self.values)

    @property
    def counts(self) -> Floats:
        """How often each policy is chosen, then how often each kernel with each first action.

        The kernel of a pair is known by the order of the values of each step that it leads to.
        """
        n = len(self.actions)
        policies = self.actions.reshape(n, -1) @ ACTIONS ** np.arange(STEPS * STATES)
        above = self.values[:, 1:, :, None] < self.values[:, 1:, None, :]
        orders = above[:, :, *np.triu_indices(STATES, 1)].reshape(n, -1)
        kernels = np.column_stack([orders, self.actions[:, 0, INITIAL]]) @ 2 ** np.arange(orders.shape[1] + 1)
        sizes = ACTIONS ** (STEPS * STATES), 2 ** (orders.shape[1] + 1)
        counted = [np.bincount(x, minlength=size) for x, size in zip((policies, kernels), sizes, strict=True)]
        return np.concatenate(counted).astype(np.float64)


@dataclass(eq=False)
class _DelayedGame:
    """A game of the library over boxes, whose feedback waits; what a learner without delays would know."""

    parts: Parts
    rng: np.random.Generator
    longest: int  # delay
    everything: Floats = field(init=False)  # the sum of all estimates so far
    estimate: Floats = field(init=False)  # of the round just played
    distribution: Any = field(init=False)

    def __post_init__(self) -> None:
        delays = self.parts.delays(self.rng.integers(0, self.longest, size=ROUNDS, endpoint=True))
        self.delays, self.means = delays, self.rng.uniform(size=SHAPE)
        self.rate = laplace_rate(DOMAIN, ROUNDS, delays.total_within)
        self.limit = resampling_limit(DOMAIN, ROUNDS)
        self.learner = self.parts.ftpl(self.rate, self.limit)
        box = self.parts.box.vacuous(SHAPE, self.parts.radius(SHAPE, ROUNDS, DELTA, scale=GAME_SCALE))
        self.distribution = self.learner.start(MarkovPolicies(box, INITIAL), self.rng)
        self.everything = self.estimate = np.zeros(SHAPE)
        self.waiting: dict[int, Bandit] = {}

    @property
    def box(self) -> BernsteinBox:
        """The confidence set now."""
        box: BernsteinBox = self.distribution.domain.dynamics
        return box

    def play(self, k: int) -> None:
        """Play a round; feedback that arrives, and the narrower set, come with `end`."""
        table = (self.rng.random(SHAPE) < self.means).astype(np.float64)
        policy = self.distribution.draw(self.rng)
        told = worlds.feedback_of_round(self.learner, self.distribution, policy, table, self.rng)
        self.estimate = self.learner.learn(self.distribution, told).total - self.distribution.total
        self.waiting[k] = told

    def end(self, k: int) -> None:
        """Everything that the round brings is known."""
        self.everything = self.everything + self.estimate
        self.distribution = self.learner.observe(self.distribution, self.waiting[k].segment)
        for j in self.delays.arrivals(k):
            self.distribution = self.learner.learn(self.distribution, self.waiting.pop(int(j)))


@check(
    statement="Lemma 19, Lemma 27: single-step stability over confidence sets, and with delays",
    claim=(
        "over the set of the round, the leader that knows its estimate l_k too has any pair with chance at least "
        "exp(-rate ||l_k||_1) times that of the leader without, and this one exp(-rate ||missing||_1) times that of "
        "the delayed learner, missing what has not arrived"
    ),
    exact="the bounds",
    simulated="leaders of fresh noise in games with delays: how often each policy, and each kernel, is chosen",
    inequality="exact limits of binomial chances (Clopper and Pearson 1934)",
    rejects={"scale-for-rate": ("pairs",), "frozen-sets": ("narrowed",)},
    correction="pairs have chances, no densities: kernels of leaders are corners of the set",
)
def _pair_stability(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    game, draws, looked, worst, most = _DelayedGame(parts, rng, 20), effort.samples(8_000), (19, 39, 59), np.inf, 0.0
    level = FALSE_ALARM / (4 * len(looked) * (ACTIONS ** (STEPS * STATES) + 2 ** (STATES * (STEPS - 1) + 1)))
    for k in range(ROUNDS):
        game.play(k)
        if k in looked:
            known = game.distribution.total, game.everything, game.everything + game.estimate
            laws = [_counts(parts, game, costs, draws, rng) for costs in known]
            for i in range(2):
                norm = float((known[i + 1] - known[i]).sum())
                least = p_values.chances_between(laws[i], draws, level)[0] * exp(-game.rate * norm)
                upper = p_values.chances_between(laws[i + 1], draws, level)[1]
                worst, most = min(worst, float((upper - least).min())), max(most, game.rate * norm)
        game.end(k)
    width = first_width(game.box)
    text = (
        f"chances are, up to limits that hold together, at least {worst:.1e} above their bounds, down to "
        f"exp(-{most:.2f}) times others; intervals of the first step end {width:.2f} wide"
    )
    margins = {"pairs": worst, "narrowed": MAX_WIDTH - width}
    return judged(text, 3 * len(looked) * draws, margins, slack=worst)


def _counts(parts: Parts, game: _DelayedGame, costs: Floats, draws: int, rng: np.random.Generator) -> Floats:
    return _Leaders.of(parts, game.box, parts.laplace(game.rate).perturbed(costs, draws, rng)).counts


@check(
    statement="Lemma 20: the stability term over confidence sets, by what single steps allow",
    claim=(
        "leaders that know the estimate of the round too, over the same set, pay at most rate sum of ||l_k||_1 "
        "<o_k, l_k> less, o_k where leaders are under their own kernels"
    ),
    exact="the bound of the lemma, for comparison",
    simulated="both leaders on the estimates of games over boxes: means over independent draws of the noise",
    inequality="limits of a bounded mean (Maurer and Pontil 2009)",
    rejects={"scale-for-rate": ("stability",), "frozen-sets": ("narrowed",)},
)
def _stability_over_sets(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    games, limits, widths, shares = effort.samples(1), [], [], []
    for _ in range(games):
        game = _DelayedGame(parts, rng, 0)
        noise = parts.laplace(game.rate).perturbed(np.zeros(SHAPE), DRAWS, rng)
        moved, allowed, width = np.zeros(DRAWS), np.zeros(DRAWS), 0.0
        for k in range(ROUNDS):
            game.play(k)
            known = game.everything, game.everything + game.estimate
            paid, less = (
                (_Leaders.of(parts, game.box, costs + noise).occupancies * game.estimate).sum(axis=(1, 2, 3))
                for costs in known
            )
            size = float(game.estimate.sum())
            moved += paid - less
            allowed += game.rate * size * paid
            width += 2.0 * size + game.rate * size**2  # no two of the differences are further apart
            game.end(k)
        limits.append(p_values.lower_mean(moved - allowed, width, FALSE_ALARM / games))
        widths.append(first_width(game.box))
        shares.append(float(moved.mean()) / (3.0 * game.rate * STEPS**2 * PAIRS * ROUNDS))
    least, share, mean_width = max(limits), float(np.mean(shares)), float(np.mean(widths))
    text = (
        f"the term is {share:.3f} of its bound, and below what single steps allow by {-least:.0f} at least up to "
        f"limits that hold; intervals of the first step end {mean_width:.2f} wide"
    )
    return judged(text, games * DRAWS, {"stability": -least, "narrowed": MAX_WIDTH - mean_width}, share=share)


@check(
    statement="Lemma 20, Theorem 17: the mean of what single steps allow",
    claim=(
        "while the set holds the kernel, E[||l_k||_1 <o_k, l_k>] given the past is at most H(H+1)SA, so that the "
        "stability term is at most 2 rate H^2 SAK + 4 delta KHL"
    ),
    exact="the mean for losses of 1 and laws of a hundred leaders: visits of pairs of steps, truncated counts",
    rejects={"wrong-step": ("mean",), "frozen-sets": ("narrowed",)},
    correction="the proof counts H^2 pairs of steps h != h' where there are H(H-1), and has 3 in the place of 2",
)
def _mean_over_sets(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """Sets that have seen more and more paths; leaders of noise around random sums of estimates."""
    paths, share, looked = effort.samples(1_000), 0.0, 0
    box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, paths, DELTA, scale=SCALE))
    for k in range(paths):
        box = box.narrow(KERNEL.walk(np.full(SHAPE, 1.0 / ACTIONS), INITIAL, rng.random((STEPS, 2))))
        if (k + 1) % (paths // 10) == 0 and box.contains(KERNEL):
            costs = parts.laplace(0.3).perturbed(rng.uniform(0.0, 10.0, size=SHAPE), LAW, rng)
            share, looked = max(share, _mean_allowed(_Leaders.of(parts, box, costs), 100)), looked + 1
    width = first_width(box)
    text = (
        f"the mean is at most {share:.2f} of H(H+1)SA, for {looked} sets; intervals of the first step end "
        f"{width:.2f} wide"
    )
    return judged(text, 0, {"mean": 1.0 - share, "narrowed": MAX_WIDTH - width}, share=share)


def _mean_allowed(leaders: _Leaders, limit: int) -> float:
    """`E[||l||_1 <o, l>]` over `H(H+1)SA`, for losses of 1 and a law that draws one of the leaders."""
    there = leaders.occupancies.mean(axis=0)
    visited = worlds.occupancies(TRANSITIONS, leaders.actions).mean(axis=0)
    policies = one_hot(leaders.actions, ACTIONS)
    tried = leaders.box.greatest_visits(policies, INITIAL, EVERY_PAIR).mean(axis=0).reshape(SHAPE)
    count, square = _truncated(tried, limit)
    products = worlds.sums_of_products(TRANSITIONS, leaders.actions, there * count, count)
    return float(products.mean() + (visited * there * square).sum()) / (STEPS * (STEPS + 1) * PAIRS)


def _truncated(q: Floats, limit: int) -> tuple[Floats, Floats]:
    """`E[M]` and `E[M^2]` of the trials to the first success of chance `q`, at most `limit`: sums of their tails."""
    n = np.arange(limit)
    tails = (1.0 - q[..., None]) ** n
    return tails.sum(axis=-1), (tails * (2 * n + 1)).sum(axis=-1)


@check(
    statement="Lemma 25, Theorem 21, Theorem 22: occupancies over confidence sets come close",
    claim=(
        "while the set holds the kernel P, the sum over h, s, a of the most that mu(P') is off mu(P), P' in the set, "
        "is at most what the proof of Theorem 22 has: widths w that paths under P meet, and S times products of two; "
        "on each path the widths, (H-h) each, add up to order H^2 S sqrt(AK) with explicit constants "
        "(from chances to visits leads the inequality of Azuma, which is not checked)"
    ),
    exact="both sides for policies drawn by chance, the least and greatest chances by the library, on each path",
    rejects={"wrong-step": ("distance",), "frozen-sets": ("growth", "narrowed")},
    correction=(
        "w is how far a kernel of the set may be from P, up to two radii; with one radius, as printed, it is false "
        "where P is at an end of its interval"
    ),
)
def _occupancies_over_sets(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rounds, share, met, looked = effort.samples(3_000), 0.0, 0.0, 0
    radius = parts.radius(SHAPE, rounds, DELTA, scale=SCALE)
    box = parts.box.vacuous(SHAPE, radius)
    for k in range(rounds):
        actions = rng.integers(ACTIONS, size=SHAPE[:2]).astype(np.int32)
        segment = KERNEL.walk(one_hot(actions, ACTIONS), INITIAL, rng.random((STEPS, 2)))
        for h in range(STEPS - 1):
            s, a = segment.states[h], segment.actions[h]
            met += (STEPS - 1 - h) * float((box.upper - box.lower)[h, s, a].sum())
        if k % (rounds // 60) == 0 and box.contains(KERNEL):
            share, looked = max(share, _distance_share(box, actions)), looked + 1
        box = box.narrow(segment)
    allowed, width = _widths_allowed(rounds, SCALE), first_width(box)
    far = next(2.0**i for i in range(10, 60) if _widths_allowed(2**i, 1.0) < STEPS * 2.0**i)
    text = (
        f"occupancies are off by at most {share:.2f} of what the widths allow, in {looked} rounds; the widths on the "
        f"path add up to {met:.0f}, {met / allowed:.2f} of what is proved, which at the full radius is below HK from "
        f"K = {far:.2g} on; with one radius the first of these shares reaches {_one_radius():.2f}; intervals of the "
        f"first step end {width:.2f} wide"
    )
    margins = {"distance": 1.0 - share, "growth": 1.0 - met / allowed, "narrowed": MAX_WIDTH - width}
    return judged(text, 0, margins, share=share, met=met)


def _distance_share(box: BernsteinBox, actions: Actions) -> float:
    """How far occupancies of a policy `[h, s]` may be off, over what the widths of the set allow."""
    true, policy = worlds.occupancies(TRANSITIONS, actions[None])[0], one_hot(actions, ACTIONS)[None]
    most = box.greatest_visits(policy, INITIAL, EVERY_PAIR).reshape(SHAPE)
    least = box.least_visits(policy, INITIAL, EVERY_PAIR).reshape(SHAPE)
    off = float(np.maximum(most - true, true - least).sum())
    return off / _off_allowed(np.maximum(box.upper - TRANSITIONS, TRANSITIONS - box.lower), actions)


def _off_allowed(widths: Floats, actions: Actions) -> float:
    """What the proof of Theorem 22 allows for widths `[h, s, a, y]`: sums of one width, and `S` times those of two."""
    each = np.arange(STATES)
    at = worlds.occupancies(TRANSITIONS, actions[None])[0].sum(axis=2)  # [h, s]
    of_policy, moves = (x[np.arange(STEPS)[:, None], each, actions] for x in (widths, TRANSITIONS))  # [h, s, y]
    sums = of_policy.sum(axis=2)
    ahead, total = np.zeros(STATES), 0.0  # for each state: sums of (H - h'') widths from here on
    for h in reversed(range(STEPS - 1)):
        total += float(at[h] @ ((STEPS - 1 - h) * sums[h] + STATES * of_policy[h] @ ahead))
        ahead = (STEPS - 1 - h) * sums[h] + moves[h] @ ahead
    return total


def _widths_allowed(rounds: int, scale: float) -> float:
    """A bound on the widths that a path meets, `(H-h)` each [derived].

    A row that was met `n` times is `2 scale (4 sqrt(S i / n) + 10 S i / n)` wide in sum, by Cauchy's inequality, and
    `S` if never; sums over `n`, and Cauchy's inequality over the rows, give `2 sqrt(SAK)` and `SA (1 + ln K)`.
    """
    term = log(10.0 * STEPS * PAIRS * rounds / DELTA)
    roots, logs = 2.0 * sqrt(PAIRS * rounds), PAIRS * (1.0 + log(rounds))
    each_step = STATES * PAIRS + 2.0 * scale * (4.0 * sqrt(STATES * term) * roots + 10.0 * STATES * term * logs)
    return STEPS * (STEPS - 1) / 2.0 * each_step


def _one_radius() -> float:
    """The same share with one radius for each width, where the kernel is at an end of the set: above 1 it is broken.

    Only the last transitions are not known: two of three chances are a radius off the centre of their interval.
    """
    radius = float(TRANSITIONS[-2].min()) / 2.0
    lower, upper = TRANSITIONS.copy(), TRANSITIONS.copy()
    centre = TRANSITIONS[-2] + radius * np.array([1.0, -1.0, 0.0])
    lower[-2], upper[-2] = centre - radius, centre + radius
    box = BernsteinBox(lower, upper)
    actions = np.zeros(SHAPE[:2], np.int32)
    either = _off_allowed(np.maximum(upper - TRANSITIONS, TRANSITIONS - lower), actions)
    return _distance_share(box, actions) * either / _off_allowed((upper - lower) / 2.0, actions)
