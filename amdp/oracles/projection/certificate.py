"""From prices to a proved measure, in plain numpy: what stands between a solver and the caller.

Prices `v[h, s]` give a policy, `log pi[h, s, a] = -phi[h, s, a] - L[h, s]` with `L = log sum_a exp(-phi)`. Its
occupancy, walked forward, is feasible whatever the solver did. Let `d[h, s]` be the chance of a state under it and
`r = v + L - log d`; then the objective exceeds the dual value of the prices by exactly

    gap = sum_{h,s} d (exp(r) - 1 - r)  >=  0,

a sum without cancellation, zero where `v = log d - L`.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Bools, Floats
from amdp.errors import InvalidInput
from amdp.kernels.layout import EMPTY_TOLERANCE
from amdp.kernels.threads import multiply
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import MarkovPolicies
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Report, Status
from amdp.oracles.projection.base import Projection, log_sum

FAR = 1e5  # logarithms beyond this have lost digits that count
Positions = NDArray[np.integer]
Entries = tuple[Positions, Positions, Floats]  # row s*A+a, column y, logarithm of the chance


@dataclass(frozen=True, eq=False)
class KernelMoves:
    """What a certificate asks of one kernel, a step at a time; `weights` are logarithms, `-inf` where unusable."""

    kernel: SingleKernel

    def usable(self, h: int, weights: Floats, dead: Bools) -> Bools:
        """The entries of `weights` that may carry mass, if it must not enter the `dead` states `[y]`."""
        leak = np.asarray(multiply(self.kernel.matrix(h), dead.astype(np.float64))).reshape(weights.shape)
        return np.asarray((weights > -np.inf) & (leak == 0.0))

    def successors(self, h: int, usable: Bools) -> Bools:
        """The states `[y]` that usable entries lead to."""
        return np.asarray(multiply(self.kernel.matrix(h).T, usable.reshape(-1).astype(np.float64))) > 0.0

    def relax(self, h: int, weights: Floats, prices: Floats) -> tuple[Floats, Entries]:
        """`phi[s, a]` at the next prices `[y]`, and the moves that attain it."""
        expected = np.asarray(multiply(self.kernel.matrix(h), prices)).reshape(weights.shape)
        step = scipy.sparse.coo_array(self.kernel.matrix(h))
        row, column = step.coords
        return expected - weights, (row, column, np.log(step.data))

    def priced(self, h: int, weights: Floats, here: Floats, later: Floats) -> Floats:
        """The weights that change the objective by a constant only, `log w + v[h, s] - v[h+1, y]`."""
        expected: Floats = np.asarray(multiply(self.kernel.matrix(h), later)).reshape(weights.shape)
        return weights + here[:, None] - expected


@dataclass(frozen=True, eq=False)
class BoxMoves:
    """The same of all rows between two bounds: each pair takes the one that suits the prices."""

    box: BernsteinBox

    def usable(self, h: int, weights: Floats, dead: Bools) -> Bools:
        lower, upper = self.box.lower[h], self.box.upper[h]
        open_ = (weights > -np.inf) & ~dead & (upper > 0.0)
        forced = (lower > 0.0) & ~open_
        room = np.where(open_, upper, 0.0).sum(axis=-1, keepdims=True)
        kept = open_ & ~forced.any(axis=-1, keepdims=True) & (room >= 1.0 - EMPTY_TOLERANCE)
        spent = lower.sum(axis=-1, keepdims=True) >= 1.0 - EMPTY_TOLERANCE
        return np.asarray(kept & ~(spent & (lower == 0.0)))

    def successors(self, h: int, usable: Bools) -> Bools:
        return np.asarray(usable.any(axis=(0, 1)))

    def relax(self, h: int, weights: Floats, prices: Floats) -> tuple[Floats, Entries]:
        log_chance = tilted(weights - prices, self.box.lower[h], self.box.upper[h])
        used = log_chance > -np.inf
        chance = np.exp(log_chance)
        cost = np.where(used, log_chance, 0.0) - np.where(used, weights, 0.0) + prices
        terms = np.where(used, chance * cost, 0.0)
        phi = np.where(used.any(axis=-1), terms.sum(axis=-1), np.inf)
        far = np.abs(np.where(used, cost, 0.0)).max(axis=-1) > FAR
        if far.any():
            rows = log_chance, cost, used, self.box.lower[h], self.box.upper[h]
            phi[far] = _expected_from_level(*(each[far] for each in rows))
        s, a, y = np.nonzero(used)
        return phi, (s * used.shape[1] + a, y, log_chance[used])

    def priced(self, h: int, weights: Floats, here: Floats, later: Floats) -> Floats:
        return weights + here[:, None, None] - later


Moves = KernelMoves | BoxMoves


def moves(domain: MarkovPolicies) -> Moves:
    """The dynamics of a domain as a certificate reads them."""
    if isinstance(domain.dynamics, BernsteinBox):
        return BoxMoves(domain.dynamics)
    assert isinstance(domain.dynamics, SingleKernel)
    return KernelMoves(domain.dynamics)


def supported(domain: MarkovPolicies, log_point: Floats) -> Floats:
    """`log_point` with `-inf` wherever no occupancy measure near it can have mass.

    Mass must not enter a state that it could not leave again: such states are dead, and so are their ancestors
    that cannot avoid them.
    """
    rule = moves(domain)
    steps, states, _ = domain.shape
    usable = np.zeros(log_point.shape, dtype=bool)
    dead = np.zeros(states, dtype=bool)
    usable[-1] = log_point[-1] > -np.inf
    if usable.ndim == 4:
        usable[-1, ..., 1:] = False  # the last step of a box has its mass in `y = 0`
    for h in reversed(range(steps)):
        if h < steps - 1:
            usable[h] = rule.usable(h, log_point[h], dead)
        dead = ~usable[h].reshape(states, -1).any(axis=1)
    if dead[domain.initial]:
        raise InvalidInput(
            f"the point has no mass on any occupancy measure from state {domain.initial}: every policy meets a "
            "pair of weight zero; give weight to the actions that should stay possible"
        )
    reached = np.zeros(states, dtype=bool)
    reached[domain.initial] = True
    for h in range(steps):
        usable[h] &= reached.reshape(-1, *(1,) * (usable.ndim - 2))
        reached = rule.successors(h, usable[h])
    return np.where(usable, log_point, -np.inf)


def certified(domain: MarkovPolicies, log_point: Floats, prices: Floats, report: Report) -> Projection:
    """The feasible measure that prices stand for, with its objective and the gap that they prove."""
    weights = supported(domain, log_point)
    log_measure, log_chance, log_total = _occupied(domain, weights, prices)
    met = log_chance > -np.inf
    kept = np.where(met, prices, 0.0)
    excess = kept[met] + log_total[met] - log_chance[met]
    # What would leave a state that no mass enters is charged in full.
    lost = ~met & (weights.reshape(*prices.shape, -1) > -np.inf).any(axis=-1)
    with np.errstate(over="ignore"):
        gap = _gap(log_chance[met], excess) + float(np.exp(prices[lost] + log_total[lost]).sum())
    residuals = flow_residual(domain, log_measure), box_residual(domain, log_measure)
    return Projection(log_measure, kept, objective(log_measure, log_point), gap, *residuals, Status.FEASIBLE, report)


def state_chances(log_measure: Floats) -> Floats:
    """The logarithms `[h, s]` of the state chances of a measure."""
    return log_sum(log_measure.reshape(*log_measure.shape[:2], -1))


def soft_prices(domain: MarkovPolicies, weights: Floats) -> Floats:
    """A first guess for supported weights: the chances of the policy that each state would choose for itself."""
    alone = prices_for(domain, weights, np.zeros(domain.shape[:2]))
    _, log_chance, _ = _occupied(domain, weights, alone)
    return prices_for(domain, weights, log_chance)


def prices_for(domain: MarkovPolicies, weights: Floats, log_chance: Floats) -> Floats:
    """Prices `v = log d - L` under which the state chances `d` would stay what they are, for supported weights."""
    rule = moves(domain)
    steps, states, _ = domain.shape
    prices = np.zeros((steps + 1, states))
    for h in reversed(range(steps)):
        phi, _ = _relax(rule, h, weights[h], prices[h + 1], last=h == steps - 1)
        total = log_sum(-phi)
        met = (total > -np.inf) & (log_chance[h] > -np.inf)
        prices[h, met] = log_chance[h, met] - total[met]
    return prices[:-1]


def reweighted(domain: MarkovPolicies, weights: Floats, prices: Floats) -> Floats:
    """Supported weights at prices: the nearest measure stays the same, the objective changes by a constant."""
    rule = moves(domain)
    result = weights + prices.reshape(*prices.shape, *(1,) * (weights.ndim - 2))
    for h in range(len(weights) - 1):
        result[h] = rule.priced(h, weights[h], prices[h], prices[h + 1])
    return result


def objective(log_measure: Floats, log_point: Floats) -> float:
    """`sum q (log q - log w) - q + w`; entries of the last step of a box beyond `y = 0` do not count."""
    used = log_measure > -np.inf
    mass = np.exp(log_measure[used])
    weight = np.exp(log_point)
    if log_point.ndim == 4:
        weight[-1, :, :, 1:] = 0.0
    return float((mass * (log_measure[used] - log_point[used])).sum() - mass.sum() + weight.sum())


def flow_residual(domain: MarkovPolicies, log_measure: Floats) -> float:
    """The largest difference between what enters a state of a step and what leaves it."""
    steps, states, _ = domain.shape
    measure = np.exp(log_measure)
    entering = np.zeros(states)
    entering[domain.initial] = 1.0
    worst = 0.0
    for h in range(steps):
        leaving = measure[h].reshape(states, -1).sum(axis=1)
        worst = max(worst, float(np.abs(entering - leaving).max()))
        if isinstance(domain.dynamics, SingleKernel):
            entering = np.asarray(multiply(domain.dynamics.matrix(h).T, measure[h].reshape(-1)))
        else:
            entering = measure[h].sum(axis=(0, 1))
    return worst


def box_residual(domain: MarkovPolicies, log_measure: Floats) -> float:
    """The largest excess of a move over its bounds, as a share of all mass; 0 over a kernel."""
    if not isinstance(domain.dynamics, BernsteinBox):
        return 0.0
    moved = np.exp(log_measure[:-1])
    pairs = moved.sum(axis=-1, keepdims=True)
    below = domain.dynamics.lower[:-1] * pairs - moved
    above = moved - domain.dynamics.upper[:-1] * pairs
    return float(max(0.0, below.max(initial=0.0), above.max(initial=0.0)))


def tilted(log_weights: Floats, lower: Floats, upper: Floats) -> Floats:
    """Logarithms of `p = clip(c w, lower, upper)` with `sum p = 1`: the row of a box nearest to the weights `[..., y]`.

    `sum p` grows with `c`, and is smooth between the values of `c` at which an entry meets a bound: these are tried
    in order, and the last stretch is solved exactly. A row without weights is `-inf`.
    """
    out = np.isneginf(log_weights)
    empty = out.all(axis=-1)
    weights = np.where(out, 0.0, log_weights)
    with np.errstate(divide="ignore"):
        low = np.where(out, -np.inf, np.log(lower))
        high = np.where(out, -np.inf, np.log(upper))
    turns = np.where(out, np.inf, low - weights), np.where(out, np.inf, high - weights)
    tried = np.sort(np.concatenate(turns, axis=-1), axis=-1)
    at_turns = np.exp(np.clip(weights[..., None, :] + tried[..., None], low[..., None, :], high[..., None, :]))
    passed = (at_turns.sum(axis=-1) <= 1.0).sum(axis=-1, keepdims=True)
    count = tried.shape[-1]
    before = np.take_along_axis(tried, np.clip(passed - 1, 0, count - 1), axis=-1)
    after = np.take_along_axis(tried, np.clip(passed, 0, count - 1), axis=-1)
    free = ~out & (turns[0] <= before) & (turns[1] >= after) & (turns[0] < turns[1])
    fixed = np.where(free | out, 0.0, np.exp(np.where(turns[1] <= before, high, low))).sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.log(np.maximum(0.0, 1.0 - fixed)) - log_sum(np.where(free, weights, -np.inf))[..., None]
    shift = np.clip(np.where(free.any(axis=-1, keepdims=True), wanted, before), before, after)
    # The sum of weight and shift rounds where both are large: what is free is divided by its own total once more.
    total = np.exp(np.where(free, weights + shift, -np.inf)).sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        again = np.log(np.maximum(0.0, 1.0 - fixed)) - np.log(total)
    shift = shift + np.where(np.abs(again) < 1e-6, again, 0.0)
    chances: Floats = np.clip(weights + shift, low, high)
    chances[empty] = -np.inf
    return chances


def _expected_from_level(log_chance: Floats, cost: Floats, used: Bools, lower: Floats, upper: Floats) -> Floats:
    """`sum_y p c` of rows `[n, y]` of a box, taken from the cost that the entries between their bounds share.

    A row sums to 1 up to rounding, and what is missing falls to entries between their bounds, or to those that are just
    about to leave one. Counted from their cost the rounding has no weight; counted from 0 the costs multiply it.
    """
    with np.errstate(divide="ignore"):
        above, below = used & (log_chance > np.log(lower)), used & (log_chance < np.log(upper))
    chance, inside = np.exp(log_chance), above & below
    level = np.where(inside, chance, -1.0).argmax(axis=-1)[:, None]
    rising = np.where(below, cost, np.inf).argmin(axis=-1)[:, None]
    falling = np.where(above, cost, -np.inf).argmax(axis=-1)[:, None]
    turning = np.where(chance.sum(axis=-1, keepdims=True) < 1.0, rising, falling)
    level = np.where(inside.any(axis=-1, keepdims=True), level, turning)
    shared = np.take_along_axis(cost, level, axis=-1)
    result: Floats = shared[:, 0] + np.where(used, chance * (cost - shared), 0.0).sum(axis=-1)
    return result


def _gap(log_chance: Floats, excess: Floats) -> float:
    """`sum d (exp(r) - 1 - r)`; where `r` is large, `d exp(r)` may be a number though `exp(r)` is none."""
    chance = np.exp(log_chance)
    small = np.where(np.abs(excess) < 1.0, excess, 0.0)
    with np.errstate(over="ignore"):
        large = np.exp(log_chance + excess) - chance * (1.0 + excess)
    return float(np.where(np.abs(excess) < 1.0, chance * (np.expm1(small) - small), large).sum())


def _occupied(domain: MarkovPolicies, weights: Floats, prices: Floats) -> tuple[Floats, Floats, Floats]:
    """The measure that prices stand for, its state chances and the totals `L[h, s]`, all as logarithms."""
    steps, states, _ = domain.shape
    log_policy, log_total, moved = _backward(moves(domain), weights, prices)
    log_chance = np.full((steps, states), -np.inf)
    log_chance[0, domain.initial] = 0.0
    log_measure = np.full(weights.shape, -np.inf)
    for h in range(steps):
        pairs = log_chance[h][:, None] + log_policy[h]
        row, column, log_move = moved[h]
        mass = pairs.reshape(-1)[row] + log_move
        if h < steps - 1:
            log_chance[h + 1] = _grouped_log_sum(column, mass, states)
        if weights.ndim == 3:
            log_measure[h] = pairs
        else:
            log_measure[h].reshape(-1, states)[row, column] = mass
    return log_measure, log_chance, log_total


def _backward(rule: Moves, weights: Floats, prices: Floats) -> tuple[Floats, Floats, list[Entries]]:
    """Policy `[h, s, a]` and total `L[h, s]`, both as logarithms, and the moves of each step."""
    steps, states, actions = weights.shape[:3]
    log_policy = np.full((steps, states, actions), -np.inf)
    log_total = np.full((steps, states), -np.inf)
    moved: list[Entries] = []
    for h in reversed(range(steps)):
        last = h == steps - 1
        phi, entries = _relax(rule, h, weights[h], np.zeros(states) if last else prices[h + 1], last=last)
        least = phi.min(axis=-1, keepdims=True)
        least[np.isinf(least)] = 0.0  # no action: every share is zero
        shares = log_sum(least - phi)
        log_total[h] = shares - least[:, 0]
        log_policy[h] = least - phi - np.where(np.isneginf(shares), 0.0, shares)[:, None]
        moved.insert(0, entries)
    return log_policy, log_total, moved


def _relax(rule: Moves, h: int, weights: Floats, prices: Floats, *, last: bool) -> tuple[Floats, Entries]:
    if not last:
        return rule.relax(h, weights, prices)
    pairs = weights if weights.ndim == 2 else weights[..., 0]
    rows = np.arange(pairs.size)
    return -pairs, (rows, np.zeros_like(rows), np.zeros(len(rows)))


def _grouped_log_sum(group: Positions, values: Floats, size: int) -> Floats:
    """`log sum exp` of the values of each group."""
    top = np.full(size, -np.inf)
    np.maximum.at(top, group, values)
    shift = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        result: Floats = np.log(np.bincount(group, np.exp(values - shift[group]), size)) + shift
    return result
