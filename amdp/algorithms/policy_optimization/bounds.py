"""Explicit bounds on the expected regret of policy optimization over a kernel.

`H` steps, `S` states, `A` actions, `K` rounds, `D` total delay; tags as in `amdp.algorithms.bounds`.

All bounds rest on one identity, for the values `V` of the estimates and any policy `pi*`:

    V_k^{pi_k} - V_k^{pi*} = sum_h E_{pi*}[ <pi_k - pi*, Q_k>(h, s_h) ]

so that exponential weights in every `(h, s)` pay `ln A / rate + rate/2 sum_k <pi_k, Q_k^2>` there. A round that waits
for `j` pays `rate <pi_k, Q_j Q_k>`. With `n` steps to go `Q <= n`, hence the sums over `n = 1 .. H` [derived].
"""

from math import log

from amdp.algorithms.bounds import Bound, over
from amdp.model.segments import Shape


def full(shape: Shape, rounds: int, rate: float, exploration: float = 0.0, waited: int = 0) -> Bound:
    """`H ln A / rate + rate K c / 2 + rate D c`, `c = sum_n n^2`: with full information [derived].

    Choices that are even with chance `exploration` add `exploration K sum_n n`, here and below.
    """
    steps, _, actions = shape
    squares = steps * (steps + 1) * (2 * steps + 1) / 6.0
    unlearned = exploration * rounds * steps * (steps + 1) / 2.0
    return Bound(over(steps * log(actions), rate), rate * rounds * squares / 2.0, unlearned, rate * waited * squares)


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
    exact = full(shape, rounds, rate, exploration)
    return Bound(exact.penalty, rate * rounds * second_moments / 2.0, exact.bias)
