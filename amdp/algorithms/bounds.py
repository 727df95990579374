"""What theory says of learners in episodes: explicit bounds on expected regret, orders of growth; and checks.

`H` steps, `S` states, `A` actions, `K` rounds, `D` total delay. The tags say where a formula comes from: [confirmed] it
agrees with a public text of its source, [from memory] of the source, [derived] from first principles or by inverting a
bound, so that constants may differ from the source.
"""

from dataclasses import dataclass, fields
from math import e, log, sqrt

import numpy as np

from amdp.arrays import require_positive, require_whole
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.segments import Shape

MOST_EXPLORATION = 0.5  # the share of choices that tunings spread evenly


@dataclass(frozen=True)
class RegretBound:
    """A bound on expected regret: the sum of the terms that a subclass names. It holds for any learning rate."""

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return float(sum(getattr(self, term.name) for term in fields(self)))


@dataclass(frozen=True)
class Bound(RegretBound):
    """A bound for learners in episodes: exponential weights, mirror descent, policy optimization."""

    penalty: float  # the distance of the first distribution from the best policy, over the rate
    stability: float  # what the changes of the distribution cost
    bias: float = 0.0  # of estimates that are too small
    waiting: float = 0.0  # for delayed feedback


@dataclass(frozen=True)
class EnsembleBound(RegretBound):
    """A bound for exponential weights over learners: that of the best of them, and what the choice costs."""

    penalty: float
    stability: float
    bias: float
    choosing: float


@dataclass(frozen=True)
class FtplBound(RegretBound):
    """A bound for FTPL with known transitions, as the paper proves its Theorem 4.

    With delays the paper's Lemma 26 has `5K + D` where `3K + D` stands here [derived: see docs/ftpl.md].
    """

    resampling: float  # HSAK / (e L)
    error: float  # 2 H (1 + ln SA) / rate
    stability: float  # rate H^2 SA (3K + D)


@dataclass(frozen=True)
class AdaptiveBound(RegretBound):
    """A bound for a leader whose rate tunes itself (see `amdp.algorithms.rates`): twice the sum of its gaps.

    FTPL pays for the sum `1 + c` times, and for the first `c` times: see `adaptive_ftpl`.
    """

    first: float  # the least sum of gaps that the rate assumes
    largest: float  # twice the largest gap of a round; FTPL needs none
    stability: float  # twice the root of the regularizer's range times the second moments of the estimates
    bias: float = 0.0  # of estimates that are too small


def ftpl_bound(shape: Shape, rounds: int, rate: float, limit: int, total_delay: int = 0) -> FtplBound:
    """The bound for any rate and limit, known transitions."""
    if not rate > 0 or not limit >= 1 or rounds < 0 or total_delay < 0:
        raise InvalidInput(
            f"rate = {rate}, limit = {limit}, rounds = {rounds}, total_delay = {total_delay}; "
            "the rate must be above 0, the limit at least 1, the others not negative"
        )
    steps, states, actions = shape
    pairs = states * actions
    return FtplBound(
        steps * pairs * rounds / (e * limit),
        2.0 * steps * (1.0 + log(pairs)) / rate,
        rate * steps**2 * pairs * (3.0 * rounds + total_delay),
    )


# --- explicit bounds --------------------------------------------------------------------------------------------------


def o_reps_full(shape: Shape, rounds: int, rate: float) -> Bound:
    """`H ln(SA) / rate + rate HK`; at the tuned rate `2 H sqrt(K ln SA)` [confirmed: Zimin and Neu 2013]."""
    steps, states, actions = shape
    return Bound(over(steps * log(states * actions), rate), rate * steps * rounds)


def fixed_share(shape: Shape, rounds: int, rate: float, share: float, changes: int = 0) -> Bound:
    """`H [(m+1) ln(SA) + m ln(1/share) + K ln(1/(1-share))] / rate + rate HK / 2 + share HK`, against `m` changes.

    Full information [derived: docs/moving-losses.md].
    """
    steps, states, actions = shape
    if share == 0.0 and changes > 0:
        return Bound(np.inf, rate * steps * rounds / 2.0)
    come_back = changes * log(1.0 / share) if changes else 0.0
    distance = (changes + 1) * log(states * actions) + come_back + rounds * log(1.0 / (1.0 - share))
    return Bound(over(steps * distance, rate), rate * steps * rounds / 2.0, share * steps * rounds)


def ensemble(shape: Shape, rounds: int, rate: float, members: int, best: Bound) -> EnsembleBound:
    """The bound of the best member, and `ln N / rate + rate H^2 K / 8` for the choice of it [derived: Hoeffding]."""
    choosing = over(log(members), rate) + rate * shape[0] ** 2 * rounds / 8.0
    return EnsembleBound(best.penalty, best.stability, best.bias, choosing)


def o_reps(shape: Shape, rounds: int, rate: float, gamma: float = 0.0) -> Bound:
    """`H ln(SA) / rate + rate HSAK`; at the tuned rate `2 H sqrt(SAK ln SA)` [confirmed: Zimin and Neu 2013].

    Implicit exploration adds `gamma HSAK` [derived]: a pair's estimate falls short by at most `gamma / (u + gamma)`.
    """
    steps, states, actions = shape
    pairs = steps * states * actions
    return Bound(over(steps * log(states * actions), rate), rate * pairs * rounds, gamma * pairs * rounds)


def o_reps_aggregate(shape: Shape, rounds: int, rate: float, least: float) -> Bound | None:
    """Total losses: `H ln(SA) / rate + rate H^3 S(A-1) K`, tuned `2 H^2 sqrt(S(A-1)K ln SA)`; None if `rate H > least`.

    [derived: docs/aggregate-feedback.md]. `least` is the least chance that a policy is in a state that can be reached.
    Estimates are at least `-H / least`, and `exp(-x) <= 1 - x + x^2` asks for `x >= -1`.
    """
    steps, states, actions = shape
    if rate * steps > least:
        return None
    moments = steps**3 * states * (actions - 1)
    return Bound(over(steps * log(states * actions), rate), rate * moments * rounds)


def hedge(shape: Shape, rounds: int, rate: float, n_policies: int, gamma: float = 0.0, waited: int = 0) -> Bound:
    """Known transitions: `ln N / rate + rate H^2 SAK / 2 + gamma HSAK + rate H^2 D` [derived].

    The second moment of a policy's estimate, averaged over policies, is at most `H` times the sum over the pairs of
    `q u / u^2 <= 1`. A round that waits for `j` pays `rate E[L_j L_k] <= rate H^2`, as both are unbiased or less.
    """
    steps, states, actions = shape
    pairs = steps * states * actions
    return Bound(
        over(log(n_policies), rate),
        rate * steps * pairs * rounds / 2.0,
        gamma * pairs * rounds,
        rate * steps**2 * waited,
    )


def soft_leader(shape: Shape, rounds: int, rate: float, gamma: float = 0.0, waited: int = 0) -> Bound:
    """Known transitions: `H ln A / rate + (rate/2) H^2 [SAK + (H+1)D] + gamma HSAK` [derived: docs/soft-leader.md]."""
    steps, states, actions = shape
    pairs = states * actions
    return Bound(
        over(steps * log(actions), rate),
        rate * steps**2 * pairs * rounds / 2.0,
        gamma * steps * pairs * rounds,
        rate * steps**2 * (steps + 1) * waited / 2.0,
    )


def soft_leader_full(shape: Shape, rounds: int, rate: float, waited: int = 0) -> Bound:
    """Full information: `H ln A / rate + (rate/2) H^2 [K + (H+1)D]` [derived: docs/soft-leader.md]."""
    steps, _, actions = shape
    return Bound(
        over(steps * log(actions), rate),
        rate * steps**2 * rounds / 2.0,
        waiting=rate * steps**2 * (steps + 1) * waited / 2.0,
    )


def soft_leader_aggregate(shape: Shape, rounds: int, rate: float, least: float) -> Bound | None:
    """Total losses: `H ln A / rate + rate H^4 S(A-1) K`; None if `rate H^2 > least` [derived], as `o_reps_aggregate`.

    The soft value adds up the estimates along a trajectory, `-H^2 / least` at least, and one more `H` in their squares.
    """
    steps, states, actions = shape
    if rate * steps**2 > least:
        return None
    return Bound(over(steps * log(actions), rate), rate * steps**4 * states * (actions - 1) * rounds)


def adaptive_soft_leader(shape: Shape, rounds: int, first: float, gamma: float = 0.0) -> AdaptiveBound:
    """Known transitions, no delay: `2H + first + 2 sqrt(H^3 SAK ln A) + gamma HSAK` [derived: docs/soft-leader.md]."""
    steps, states, actions = shape
    pairs = states * actions
    stability = 2.0 * sqrt(steps**3 * pairs * rounds * log(actions))
    return AdaptiveBound(first, 2.0 * steps, stability, gamma * steps * pairs * rounds)


def adaptive_soft_leader_full(shape: Shape, rounds: int, first: float) -> AdaptiveBound:
    """Full information, no delay: `2H + first + 2 sqrt(H^3 K ln A)` [derived: docs/soft-leader.md]."""
    steps, _, actions = shape
    return AdaptiveBound(first, 2.0 * steps, 2.0 * sqrt(steps**3 * rounds * log(actions)))


def adaptive_ftpl(shape: Shape, rounds: int, range_: float, first: float, plans: int) -> AdaptiveBound:
    """Known transitions, no delay, limits from `sqrt(SAk/H)` on, gaps by `B` plans [derived: docs/learning-rates.md].

    With `beta = H(1 + ln SA)` and `c = max(1, beta/range)`:
    `c first + (1+c) H sqrt((2 SA range + 2 + 2 SA/B) K) + (2/e) H^1.5 sqrt(SAK)`.
    """
    steps, states, actions = shape
    pairs = states * actions
    share = max(1.0, steps * (1.0 + log(pairs)) / range_)
    gaps = steps * sqrt((2.0 * pairs * range_ + 2.0 + 2.0 * pairs / plans) * rounds)
    return AdaptiveBound(share * first, 0.0, (1.0 + share) * gaps, 2.0 / e * steps**1.5 * sqrt(pairs * rounds))


def adaptive_o_reps(shape: Shape, rounds: int, first: float, gamma: float = 0.0) -> AdaptiveBound:
    """Known transitions, no delay: `2H + first + 2H sqrt(SAK ln SA) + gamma HSAK` [derived: docs/learning-rates.md]."""
    steps, states, actions = shape
    pairs = states * actions
    stability = 2.0 * steps * sqrt(pairs * rounds * log(pairs))
    return AdaptiveBound(first, 2.0 * steps, stability, gamma * steps * pairs * rounds)


def adaptive_o_reps_full(shape: Shape, rounds: int, first: float) -> AdaptiveBound:
    """Full information, no delay: `2H + first + 2H sqrt(K ln SA)` [derived: docs/learning-rates.md]."""
    steps, states, actions = shape
    return AdaptiveBound(first, 2.0 * steps, 2.0 * steps * sqrt(rounds * log(states * actions)))


# --- rates `c / sqrt(k)`: the sum of the gaps, each at most half its rate times `v`, plus the range over the last rate


def _falling(range_: float, moments: float, rounds: int, scale: float, bias: float = 0.0) -> Bound:
    """`range sqrt(K) / c + c v sqrt(K)` [derived: docs/learning-rates.md], since `sum 1/sqrt(k) <= 2 sqrt(K)`."""
    root = sqrt(rounds)
    return Bound(over(range_, scale) * root, scale * moments * root, bias)


def anytime_o_reps(shape: Shape, rounds: int, scale: float, gamma: float = 0.0) -> Bound:
    """Known transitions, no delay: `(H ln(SA) / c + c HSA + 2 gamma HSA) sqrt(K)` [derived]; gamma falls too."""
    steps, states, actions = shape
    pairs = steps * states * actions
    bias = 2.0 * gamma * pairs * sqrt(rounds)
    return _falling(steps * log(states * actions), pairs, rounds, scale, bias)


def anytime_o_reps_full(shape: Shape, rounds: int, scale: float) -> Bound:
    """Full information, no delay: `(H ln(SA) / c + c H) sqrt(K)` [derived]."""
    steps, states, actions = shape
    return _falling(steps * log(states * actions), steps, rounds, scale)


def anytime_hedge(shape: Shape, rounds: int, scale: float, n_policies: int, gamma: float = 0.0) -> Bound:
    """Known transitions, no delay: `(ln N / c + c H^2 SA + 2 gamma HSA) sqrt(K)` [derived]; gamma falls as the rate."""
    steps, states, actions = shape
    pairs = steps * states * actions
    return _falling(log(n_policies), steps * pairs, rounds, scale, 2.0 * gamma * pairs * sqrt(rounds))


def anytime_policy_full(shape: Shape, rounds: int, scale: float, exploration: float = 0.0) -> Bound:
    """Full information, no delay: `(H ln A / c + c sum_n n^2) sqrt(K)` [derived], as `policy_full` below."""
    steps, _, actions = shape
    squares = steps * (steps + 1) * (2 * steps + 1) / 6.0
    unlearned = exploration * rounds * steps * (steps + 1) / 2.0
    return _falling(steps * log(actions), squares, rounds, scale, unlearned)


def best_of_both(shape: Shape, rounds: int, rate: float, barrier: float) -> Bound:
    """`H sqrt(SAK) / g + H + b HSA ln K + 4 g H sqrt(SAK)`, the adversarial bound of `bobw` [derived].

    Rate `g / sqrt(k)`, log-barrier `b`: docs/regularizers.md. The order is that of Jin, Huang and Luo 2021 [confirmed].
    """
    steps, states, actions = shape
    root = steps * sqrt(states * actions * rounds)
    stay = steps + barrier * steps * states * actions * log(max(1, rounds))
    return Bound(over(root, rate) + stay, 4.0 * rate * root)


# --- policy optimization over a kernel: one identity for the values `V` of the estimates ------------------------------
#
#     V_k^{pi_k} - V_k^{pi*} = sum_h E_{pi*}[ <pi_k - pi*, Q_k>(h, s_h) ]   for any policy `pi*`,
#
# so that exponential weights in every `(h, s)` pay `ln A / rate + rate/2 sum_k <pi_k, Q_k^2>` there. A round that waits
# for `j` pays `rate <pi_k, Q_j Q_k>`. With `n` steps to go `Q <= n`, hence the sums over `n = 1 .. H` [derived].


def policy_full(shape: Shape, rounds: int, rate: float, exploration: float = 0.0, waited: int = 0) -> Bound:
    """`H ln A / rate + rate K c / 2 + rate D c`, `c = sum_n n^2`: with full information [derived].

    Choices that are even with chance `exploration` add `exploration K sum_n n`, here and below.
    """
    steps, _, actions = shape
    squares = steps * (steps + 1) * (2 * steps + 1) / 6.0
    unlearned = exploration * rounds * steps * (steps + 1) / 2.0
    return Bound(over(steps * log(actions), rate), rate * rounds * squares / 2.0, unlearned, rate * waited * squares)


def policy_implicit(
    shape: Shape, rounds: int, rate: float, gamma: float, exploration: float = 0.0, waited: int = 0
) -> Bound | None:
    """`H ln A / rate + rate K c / (2 gamma) + gamma HSAK + rate D c`, `c = sum_n n^2` [derived]; None if gamma is 0.

    An estimate is at most `1 / gamma` at one pair a step, so `E[Q^2] <= n^2 / gamma`. The estimates of two rounds that
    do not know of each other are unbiased or less each, so that waiting costs no `1 / gamma`.
    """
    if gamma == 0.0:
        return None
    steps, states, actions = shape
    exact = policy_full(shape, rounds, rate, exploration, waited)
    biased = gamma * steps * states * actions * rounds
    return Bound(exact.penalty, exact.stability / gamma, exact.bias + biased, exact.waiting)


def policy_importance(shape: Shape, rounds: int, rate: float, least: float, exploration: float = 0.0) -> Bound | None:
    """`H ln A / rate + rate K / (2 alpha) sum_n n (A + n - 1) + exploration K sum_n n` [derived]; None if alpha is 0.

    `alpha = least` is the least chance that a policy is where it can be. With `n` steps to go, Cauchy's inequality
    gives `E <pi_k, Q^2> <= n (A/alpha + (n-1)/alpha)`: `A/alpha` for the pair itself, `1/alpha` for each later step.
    """
    if least == 0.0:
        return None
    steps, _, actions = shape
    second_moments = sum(n * (actions + n - 1) for n in range(1, steps + 1)) / least
    exact = policy_full(shape, rounds, rate, exploration)
    return Bound(exact.penalty, rate * rounds * second_moments / 2.0, exact.bias)


def policy_aggregate(shape: Shape, rounds: int, rate: float, least: float, exploration: float = 0.0) -> Bound | None:
    """`H ln A / rate + rate H^3 AK / (2 alpha) + exploration K sum_n n` [derived]; None if `alpha = least` is 0.

    Total losses. Scores are `L / q` at the pairs met, up to what is the same for all actions of a state, so that
    `E <pi_k, scores^2> <= H^2 A / q_k(h, s)`.
    """
    if least == 0.0:
        return None
    steps, _, actions = shape
    exact = policy_full(shape, rounds, rate, exploration)
    return Bound(exact.penalty, rate * steps**3 * actions * rounds / (2.0 * least), exact.bias)


# --- orders of growth: no constants, no logarithms --------------------------------------------------------------------


def delayed_ftpl_order(shape: Shape, rounds: int, total_delay: int) -> float:
    """`H^2 S sqrt(AK) + H^1.5 sqrt(SAD)` [Dai, Luo and Chen 2022]."""
    steps, states, actions = shape
    return float(steps**2 * states * sqrt(actions * rounds)) + float(steps**1.5 * sqrt(states * actions * total_delay))


def delayed_uob_reps_order(shape: Shape, rounds: int, total_delay: int) -> float:
    """`H^2 S sqrt(AK) + H^1.25 (SA)^0.25 sqrt(D)` [as Dai, Luo and Chen 2022 quote it]."""
    steps, states, actions = shape
    late = float(steps**1.25 * (states * actions) ** 0.25 * sqrt(total_delay))
    return float(steps**2 * states * sqrt(actions * rounds)) + late


# --- rates of the soft leader -----------------------------------------------------------------------------------------


def soft_leader_rate(shape: Shape, rounds: int, total_delay: int = 0) -> float:
    """`sqrt(2 ln A / (H (SAK + (H+1)D)))`: balances the bound [derived]."""
    steps, states, actions = shape
    met = states * actions * require_rounds(rounds) + (steps + 1) * require_delay(total_delay)
    return sqrt(2.0 * log(actions) / (steps * met))


def soft_leader_full_rate(shape: Shape, rounds: int, total_delay: int = 0) -> float:
    """`sqrt(2 ln A / (H (K + (H+1)D)))`: balances the bound [derived]."""
    steps, _, actions = shape
    return sqrt(2.0 * log(actions) / (steps * (require_rounds(rounds) + (steps + 1) * require_delay(total_delay))))


def soft_leader_aggregate_rate(shape: Shape, rounds: int, total_delay: int = 0) -> float:
    """`sqrt(ln A / (H^3 S(A-1) K))`: balances the bound, without delay [derived]."""
    steps, states, actions = shape
    return sqrt(log(actions) / (steps**3 * states * max(1, actions - 1) * require_rounds(rounds)))


# --- checks -----------------------------------------------------------------------------------------------------------


def require_rounds(rounds: int) -> int:
    """Refuse less than one round."""
    require_whole("rounds", rounds, 1)
    return rounds


def require_delay(total_delay: int) -> int:
    """Refuse a negative total delay."""
    require_whole("total_delay", total_delay, 0)
    return total_delay


def require_rate(rate: float) -> None:
    """Refuse a learning rate that is negative or not finite; at rate 0 nothing is learned."""
    if not 0.0 <= rate < np.inf:
        raise InvalidInput(f"{rate}; it must be finite and not negative", "rate")


def require_noise_rate(rate: object) -> None:
    """Refuse a rate of noise that is not positive and finite: the scale of the noise is `1 / rate`."""
    require_positive("rate", rate)


def require_episodes(domain: Domain, instead: str) -> None:
    """Refuse stationary policies, for which the parameters of episodes are not meant."""
    if isinstance(domain, StationaryPolicies):
        raise InvalidInput(f"these parameters are for episodes; in a stream of steps use {instead}")


def over(distance: float, rate: float) -> float:
    """`distance / rate`, what a learner pays for not knowing the best policy; infinite at rate 0."""
    if distance == 0.0:  # one policy only: the start is the best
        return 0.0
    return distance / rate if rate > 0.0 else np.inf
