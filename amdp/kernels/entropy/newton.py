"""Feasible Newton steps on the prices, and dual ones where these do not help."""

import numpy as np

from amdp.kernels.copies import copy
from amdp.kernels.entropy import box
from amdp.kernels.entropy.common import ROUNDING, SMALLEST_LOG, TINY, entry, inner
from amdp.kernels.entropy.dynamics import carry, flow_rows
from amdp.kernels.entropy.evaluation import evaluate
from amdp.kernels.entropy.linear_algebra import exact_step, iterated_step, primal_right_side
from amdp.kernels.rows import BOX, Iterate

GOOD_START_GAP = 0.1  # a start with a smaller gap is taken as it is
GOOD_START_EXCESS = 1.0  # and so is one with no larger excess
RARE_STATE_EXCESS = 1e-6  # that states without a share in the gap may keep
SHORTEST_PRIMAL = 0.1  # of a feasible step that may be halved once more
SHORTEST_RARE = 0.3  # the same where only rare states are left
SHORTEST_DUAL = 1e-9
DUAL_RISE = 1e-4  # share of the slope by which the dual value must rise
DUAL_REDUCTION = 0.01  # factor of the gap at which dual steps end
MOST_PRODUCTS = 400  # that conjugate gradients may take for one step
MOST_DUAL_FACTORED = 400  # states up to which dual steps, which are rare, are taken by factors


@entry
def project(given_rows, pairs, initial, reached, closed, starts, tolerance, enough, limit, exact, prices, log_measure):
    """Solve, and write the measure `[h, s*a, 1]` over a kernel, `[h, s*a, y]` over a box; gap, steps and dual steps.

    Unless pairs without weight are `closed`, `reached` taking account of them, nothing is done where there is one, and
    the steps are -1. This is what Python calls; it takes `FlowRows` as plain tuples, which numba recognizes ten
    times faster.
    """
    rows = flow_rows(given_rows)
    steps, states = prices.shape
    actions = pairs.shape[1] // states
    if not closed and _has_holes(pairs, reached, actions):
        return np.inf, -1, 0
    by_pair, by_state = pairs.shape, prices.shape
    policies = np.empty(by_pair), np.empty(by_pair), np.empty(by_pair)
    now = Iterate(*policies, np.empty(by_state), np.empty(by_state), np.empty(by_state), np.empty(by_state))
    prices[:] = 0.0
    log_measure[:] = -np.inf
    gap, iterations, dual_steps = solve(
        rows, pairs, initial, reached, starts, tolerance, enough, limit, exact, prices, now
    )
    for h in range(steps):
        for s in range(states):
            if not reached[h, s]:
                prices[h, s] = 0.0
        for row in range(pairs.shape[1]):
            pair = now.log_chance[h, row // actions] + now.log_policy[h, row]
            log_measure[h, row, 0] = pair
            if rows.kind == BOX and h < steps - 1 and pair > -np.inf:
                box.write_row(rows.box, h, row, pair, prices[h + 1], log_measure[h, row])
    return gap, iterations, dual_steps


@inner
def _has_holes(pairs, reached, actions):
    """Whether a pair of a reached state has no weight."""
    for h in range(pairs.shape[0]):
        for row in range(pairs.shape[1]):
            if pairs[h, row] == -np.inf and reached[h, row // actions]:
                return True
    return False


@inner
def solve(rows, pairs, initial, reached, starts, tolerance, enough, limit, exact, prices, now):
    """Newton steps until the gap is below `tolerance`, or below `enough` and no step lowers it.

    Returns the gap, the number of steps, and how many of them were dual steps.

    A feasible step is one of the primal problem, at the occupancy that prices stand for; it is taken if the gap falls.
    It is exact where all excess is small, but far from there the gap may rise along it: states of chance 1e-12 whose
    prices are wrong by 30 do not count in the gap, and do after the step. A dual step is one of the dual problem, at
    what leaves the states. The dual value is concave and rises along it, so a line search that asks for a share of the
    slope leads to the optimum from anywhere (Boyd and Vandenberghe 2004, section 9.5).

    Where no feasible step helps, dual steps take over, at first from the prices at which all states of a step are met
    alike: there the matrix is well conditioned, and the dual value is within `H (1 + log S)` of its greatest. They end
    when the gap has fallen to a hundredth, or when the dual value can rise by rounding only. Rare states have no share
    in the gap: for them there are more steps at the end, as long as these help.

    There is one place that evaluates prices, for starts and steps alike: it is most of what has to be compiled.
    """
    steps, states = prices.shape
    alike, newton = starts.shape[0] + 1, starts.shape[0] + 3  # stages, see `_propose`
    trial = np.zeros(prices.shape)
    u = np.zeros(prices.shape)
    entering = np.zeros(prices.shape)
    factored = exact or states <= MOST_DUAL_FACTORED
    blocks = np.empty((steps if factored else 0, states, states))
    couplings = np.empty((steps if factored else 0, states, states))
    scratch = np.empty((max(2, states) if factored else 1, pairs.shape[1]))
    gap = np.inf
    dual = -np.inf
    slope = 0.0
    worst = np.inf
    refined = exact and tolerance <= RARE_STATE_EXCESS * RARE_STATE_EXCESS  # who asks for rough answers gets them
    by_dual, turned, exhausted, stuck = False, False, False, False
    until = 0.0  # the gap at which dual steps end
    length = 0.0
    iterations, dual_steps = 0, 0
    stage = 0
    while True:
        _propose(stage, starts, reached, prices, length, u, trial, now)
        soft = newton - 2 <= stage < newton
        trial_gap = evaluate(rows, pairs, initial, reached, soft, trial, now)
        value = trial[0, initial] - steps
        if stage < newton:
            good = by_dual or trial_gap <= GOOD_START_GAP or _worst_excess(now) <= GOOD_START_EXCESS
            if good or trial_gap < gap:
                copy(trial, prices)
                gap = trial_gap
            stage = newton if good else stage + 1
            if not good:
                continue
        elif (
            length == 0.0
            or (by_dual and value >= dual + DUAL_RISE * length * slope)
            or (not by_dual and _is_better(trial_gap, gap, worst, now, length, tolerance))
        ):
            copy(trial, prices)
            gap = trial_gap
        else:
            # Without progress along the step, go back to where it began.
            length = _shortened(length, by_dual, gap > tolerance)
            stuck = length == 0.0
            continue
        worst = _worst_excess(now)
        dual = value
        settled = gap <= tolerance and (worst <= RARE_STATE_EXCESS or not refined)
        if settled or iterations == limit or (stuck and not by_dual and (exhausted or gap <= enough)):
            return gap, iterations, dual_steps
        if stuck:
            exhausted = by_dual
            by_dual = not by_dual
            until = DUAL_REDUCTION * gap
            length = 0.0
            stuck = False
            if by_dual and not turned:
                turned = True
                stage = alike
                continue
        elif gap <= until:
            by_dual = False
        if by_dual:
            _dual_right_side(rows, prices, initial, reached, now, entering, u)
        else:
            primal_right_side(rows, now, scratch[0], u)
        if exact or (by_dual and factored):
            exact_step(rows, now, blocks, couplings, scratch, u)
        else:
            relative = max(np.sqrt(0.1 * tolerance / gap), 0.1 * min(1.0, np.sqrt(gap)))
            iterated_step(rows, now, by_dual, relative, MOST_PRODUCTS, scratch[0], u)
        length = 1.0
        if by_dual:
            if not factored:
                _refuse_wild_step(prices, reached, now, entering, u)
            slope = _lengthen_dual_step(prices, reached, now, entering, u)
            stuck = not slope > ROUNDING * (steps + abs(dual))
            length = 0.0 if stuck else 1.0
            dual_steps += 1
        iterations += 1


@inner
def _propose(stage, starts, reached, prices, length, u, trial, now):
    """The next prices to try, into `trial`.

    Stages 0, 1, ...: the given starts; then zero; then the prices at which all states of a step are met alike, whose
    gap is at most `H (1 + log S)` whatever the weights; then those of the chances that these lead to; then the best
    prices so far, moved along `u`.
    """
    given = starts.shape[0]
    for h in range(trial.shape[0]):
        count = 0.0
        for s in range(trial.shape[1]):
            count += 1.0 if reached[h, s] else 0.0
        for s in range(trial.shape[1]):
            if stage < given:
                trial[h, s] = starts[stage, h, s]
            elif stage == given:
                trial[h, s] = 0.0
            elif stage == given + 1:
                now.log_chance[h, s] = -np.log(count)
            elif stage > given + 2:
                trial[h, s] = prices[h, s] + length * u[h, s] if length > 0.0 else prices[h, s]


@inner
def _is_better(trial_gap, gap, worst, now, length, tolerance):
    """Whether the prices that were tried are progress; once the gap is small, the rare states decide."""
    if gap <= tolerance:
        return trial_gap <= tolerance and _worst_excess(now) < 0.75 * worst
    return trial_gap < (1.0 - 0.1 * length) * gap


@inner
def _shortened(length, by_dual, gap_counts):
    """Half the length of a step that did not help; 0 if it is short already."""
    shortest = SHORTEST_DUAL if by_dual else (SHORTEST_PRIMAL if gap_counts else SHORTEST_RARE)
    return 0.5 * length if length > shortest else 0.0


@inner
def _worst_excess(now):
    """The largest excess of a state; it is 0 where none can be."""
    worst = 0.0
    for h in range(now.excess.shape[0]):
        for s in range(now.excess.shape[1]):
            worst = max(worst, abs(now.excess[h, s]))
    return worst


@inner
def _dual_right_side(rows, prices, initial, reached, now, entering, out):
    """Replace the occupancy by what leaves each state at its price; `out` is what enters less what leaves.

    The matrix is then the curvature of the dual value. Where more enters than leaves, its diagonal is raised to the
    logarithmic mean of both: `exp(u)` times what leaves is what enters at `u = log(entering / leaves)`, not at the far
    longer step of a linear model.
    """
    steps, states = prices.shape
    actions = now.policy.shape[1] // states
    entering[:] = 0.0
    entering[0, initial] = 1.0
    for h in range(steps):
        for s in range(states):
            leaves = np.exp(prices[h, s] + now.total[h, s]) if reached[h, s] else 0.0
            out[h, s] = entering[h, s] - leaves
            now.chance[h, s] = leaves
            if entering[h, s] > leaves > 0.0:
                ratio = np.log(entering[h, s] / leaves)
                now.chance[h, s] = out[h, s] / ratio if ratio > 1e-3 else entering[h, s]
            for row in range(s * actions, (s + 1) * actions):
                now.mass[h, row] = leaves * now.policy[h, row]
        if h < steps - 1:
            carry(rows, h, now.mass[h], entering[h + 1])


@inner
def _refuse_wild_step(prices, reached, now, entering, u):
    """Where conjugate gradients leave prices of rare states without meaning, take the safe step of all states instead.

    A price changes by about the logarithm of what enters over what leaves, and by what the next prices change.
    """
    farthest, longest = 0.0, 0.0
    for h in range(u.shape[0]):
        for s in range(u.shape[1]):
            if reached[h, s] and entering[h, s] > 0.0:
                farthest = max(farthest, abs(np.log(entering[h, s]) - prices[h, s] - now.total[h, s]))
            longest = max(longest, abs(u[h, s]))
    if longest > u.shape[0] * (1.0 + farthest):
        for h in range(u.shape[0]):
            for s in range(u.shape[1]):
                if reached[h, s] and entering[h, s] > 0.0:
                    u[h, s] = 0.25 * (np.log(entering[h, s]) - prices[h, s] - now.total[h, s])


@inner
def _lengthen_dual_step(prices, reached, now, entering, u):
    """Lower the prices of states that far more leaves than enters by more than Newton's step, 1; the slope of the step.

    By convexity `exp(u[s] - p u') <= sum_y p (exp(2 u[s]) + exp(-2 u'[y])) / 2` for all changes `u` of the prices, over
    a box for the chosen rows as well. So a quarter of `log(entering / leaving)` in every state raises the dual value,
    wherever the prices are (generalized iterative scaling, Darroch and Ratcliff 1972).
    """
    slope = 0.0
    for h in range(u.shape[0]):
        for s in range(u.shape[1]):
            if not reached[h, s]:
                u[h, s] = 0.0
                continue
            log_leaving = prices[h, s] + now.total[h, s]
            log_entering = np.log(entering[h, s]) if entering[h, s] > 0.0 else SMALLEST_LOG
            safe = 0.25 * (log_entering - log_leaving)
            if now.chance[h, s] <= TINY:
                u[h, s] = safe if entering[h, s] > 0.0 or log_leaving > SMALLEST_LOG else 0.0
            elif safe < 0.0:
                u[h, s] = min(u[h, s], safe)
            slope += (entering[h, s] - np.exp(log_leaving)) * u[h, s]
    return slope
