"""What theory gives policy optimization: learning rates and explicit bounds on expected regret over a kernel.

`H` steps, `S` states, `A` actions, `K` rounds, `D` total delay; tags as in `amdp.algorithms.bounds`.

All bounds rest on one identity, for the values `V` of the estimates and any policy `pi*`:

    V_k^{pi_k} - V_k^{pi*} = sum_h E_{pi*}[ <pi_k - pi*, Q_k>(h, s_h) ]

so that exponential weights in every `(h, s)` pay `ln A / rate + rate/2 sum_k <pi_k, Q_k^2>` there. A round that waits
for `j` pays `rate <pi_k, Q_j Q_k>`. With `n` steps to go `Q <= n`, hence the sums over `n = 1 .. H` [derived].
"""

from math import log, sqrt

from amdp.algorithms.bounds import MOST_EXPLORATION, Bound, over, require_delay, require_rounds
from amdp.model.segments import Shape

# --- explicit bounds over a kernel ------------------------------------------------------------------------------------


def full(shape: Shape, rounds: int, rate: float, exploration: float = 0.0, waited: int = 0) -> Bound:
    """`H ln A / rate + rate K c / 2 + rate D c`, `c = sum_n n^2`: with full information [derived].

    Choices that are even with chance `exploration` add `exploration K sum_n n`, here and below.
    """
    squares = _sum_of_squares(shape[0])
    return Bound(
        _penalty(shape, rate),
        rate * rounds * squares / 2.0,
        _unlearned(shape, rounds, exploration),
        rate * waited * squares,
    )


def implicit(
    shape: Shape, rounds: int, rate: float, gamma: float, exploration: float = 0.0, waited: int = 0
) -> Bound | None:
    """`H ln A / rate + rate K c / (2 gamma) + gamma HSAK + rate D c`, `c = sum_n n^2` [derived]; None if gamma is 0.

    An estimate is at most `1 / gamma` at one pair a step, so `E[Q^2] <= n^2 / gamma`. The estimates of two rounds that
    do not know of each other are unbiased or less each, so that waiting costs no `1 / gamma`.
    """
    if gamma == 0.0:
        return None
    steps, states, actions = shape
    exact = full(shape, rounds, rate, exploration, waited)
    biased = gamma * steps * states * actions * rounds
    return Bound(exact.penalty, exact.stability / gamma, exact.bias + biased, exact.waiting)


def importance(shape: Shape, rounds: int, rate: float, least: float, exploration: float = 0.0) -> Bound | None:
    """`H ln A / rate + rate K / (2 alpha) sum_n n (A + n - 1) + exploration K sum_n n` [derived]; None if alpha is 0.

    `alpha = least` is the least chance that a policy is where it can be. With `n` steps to go, Cauchy's inequality
    gives `E <pi_k, Q^2> <= n (A/alpha + (n-1)/alpha)`: `A/alpha` for the pair itself, `1/alpha` for each later step.
    """
    if least == 0.0:
        return None
    steps, _, actions = shape
    second_moments = sum(n * (actions + n - 1) for n in range(1, steps + 1)) / least
    return Bound(_penalty(shape, rate), rate * rounds * second_moments / 2.0, _unlearned(shape, rounds, exploration))


# --- parameters -------------------------------------------------------------------------------------------------------


def pomd(shape: Shape, rounds: int) -> tuple[float, float]:
    """Rate `1 / (H K^(2/3))` and gamma `1 / (sqrt(A) K^(1/3))` [from memory]: the terms of the bound balance."""
    steps, _, actions = shape
    third = require_rounds(rounds) ** (1 / 3)
    return 1.0 / (steps * third**2), 1.0 / (sqrt(actions) * third)


def delayed_oppo(shape: Shape, rounds: int, total_delay: int = 0) -> tuple[float, float]:
    """Rate `sqrt(gamma ln A / (H^2 (K + D)))` and gamma `min(1, (H sqrt(K + D) / (SAK))^(2/3))`.

    They balance `H ln A / rate + rate H^3 (K + D) / gamma + gamma HSAK` [derived].
    """
    steps, states, actions = shape
    longer = require_rounds(rounds) + require_delay(total_delay)
    gamma = min(1.0, (steps * sqrt(longer) / (states * actions * rounds)) ** (2 / 3))
    return sqrt(gamma) * delayed_oppo_full(shape, rounds, total_delay), gamma


def delayed_oppo_full(shape: Shape, rounds: int, total_delay: int = 0) -> float:
    """Rate `sqrt(ln A / (H^2 (K + D)))`: balances `H ln A / rate + rate H^3 (K + D)` [derived]."""
    steps, _, actions = shape
    return sqrt(log(actions) / (steps**2 * (require_rounds(rounds) + require_delay(total_delay))))


def dilated_bonus(shape: Shape, rounds: int) -> float:
    """Rate `min(1 / (24 H^3), 1 / (H sqrt(SAK)))` [confirmed by public code, whose slip `1/24*H**3` is mended]."""
    steps, states, actions = shape
    return min(1.0 / (24.0 * steps**3), 1.0 / (steps * sqrt(states * actions * require_rounds(rounds))))


def o_ssp(shape: Shape, rounds: int, least: float, multiplier: float = 1.0) -> float:
    """Rate `sqrt(alpha ln A / (H^2 AK))`, scaled, but at most what an exploration of one half allows [derived]."""
    steps, _, actions = shape
    wanted = multiplier * sqrt(least * log(actions) / (steps**2 * actions * require_rounds(rounds)))
    return min(wanted, MOST_EXPLORATION * least / (steps * actions))


def o_ssp_exploration(shape: Shape, rate: float, least: float) -> float:
    """`rate HA / alpha`, at most one half: then no estimate moves a weight by more than a factor `e` [derived]."""
    steps, _, actions = shape
    return min(MOST_EXPLORATION, rate * steps * actions / least)


def _penalty(shape: Shape, rate: float) -> float:
    return over(shape[0] * log(shape[2]), rate)


def _unlearned(shape: Shape, rounds: int, exploration: float) -> float:
    steps = shape[0]
    return exploration * rounds * steps * (steps + 1) / 2.0


def _sum_of_squares(steps: int) -> float:
    return steps * (steps + 1) * (2 * steps + 1) / 6.0
