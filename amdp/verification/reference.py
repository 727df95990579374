"""The paper's algorithms by plain loops over lists, to compare the library with.

Written from the pseudo-code alone: no learner, oracle, estimator, confidence set or compiled code of the library is
used here, and nothing is fast. Where the printed text cannot be run as it stands, it is read as docs/paper-and-code.md
lists under errata: noise is fresh in every round, a visit at step `h` takes `h - 1` moves, the rows of the last step
are never counted, feedback without delay is used in its own round, trials belong to the round that was played, and an
empty intersection of confidence sets starts again from the newest interval.

Steps, states and actions count from 0. A table is `table[h][s][a]`, a kernel `rows[h][s][a][y]`, a policy
`policy[h][s]` (stationary: `policy[s]`), and a path a list of pairs `(s, a)`.
"""

from dataclasses import dataclass, field
from math import inf, log, sqrt

import numpy as np

Row = list[float]
Table = list[list[Row]]
Rows = list[list[list[Row]]]
Policy = list[list[int]]
Path = list[tuple[int, int]]

ROUNDING = 1e-11  # of a sum of chances


def perturbed(table: Table, rate: float, rng: np.random.Generator) -> Table:
    """The table plus independent noise of density `rate/2 exp(-rate |z|)`."""
    noise = rng.laplace(0.0, 1.0 / rate, (len(table), len(table[0]), len(table[0][0]))).tolist()
    return [
        [[x + z for x, z in zip(*pair, strict=True)] for pair in zip(*step, strict=True)]
        for step in zip(table, noise, strict=True)
    ]


def picked(chances: Row, rng: np.random.Generator) -> int:
    """An index with these chances."""
    threshold, last = rng.random() * sum(chances), 0
    for i, chance in enumerate(chances):
        if chance > 0.0:
            last = i
            threshold -= chance
            if threshold < 0.0:
                break
    return last


# --- kernels between lower and upper ends; one known kernel is both ---------------------------------------------------


def least_expectation(lower: Row, upper: Row, values: Row) -> float:
    """The least `sum_y p(y) values[y]` with `lower <= p <= upper`: what is left of 1 goes to the least value first."""
    left = 1.0 - sum(lower)
    total = 0.0
    for y in sorted(range(len(values)), key=values.__getitem__):
        more = max(0.0, min(upper[y] - lower[y], left))
        total += (lower[y] + more) * values[y]
        left -= more
    return total


def leader(lower: Rows, upper: Rows, costs: Table) -> Policy:
    """The policy of `argmin over (pi, P) of V(pi; costs, P)`: extended value iteration."""
    steps, states, actions = len(costs), len(costs[0]), len(costs[0][0])
    policy = [[0] * states for _ in range(steps)]
    ahead = [0.0] * states
    for h in reversed(range(steps)):
        now = [0.0] * states
        for s in range(states):
            best = inf
            for a in range(actions):
                worth = costs[h][s][a]
                if h < steps - 1:
                    worth += least_expectation(lower[h][s][a], upper[h][s][a], ahead)
                if worth < best:
                    best, policy[h][s] = worth, a
            now[s] = best
        ahead = now
    return policy


def greatest_chance(lower: Rows, upper: Rows, policy: Policy, initial: int, h: int, s: int) -> float:
    """The greatest chance over the kernels that the policy is in state `s` at step `h`: Comp-UOB."""
    reach = [1.0 if x == s else 0.0 for x in range(len(lower[0]))]
    for step in reversed(range(h)):
        negative = [-chance for chance in reach]
        reach = [
            -least_expectation(lower[step][x][policy[step][x]], upper[step][x][policy[step][x]], negative)
            for x in range(len(reach))
        ]
    return reach[initial]


def walked(rows: Rows, policy: Policy, initial: int, rng: np.random.Generator, steps: int | None = None) -> Path:
    """The pairs that a policy meets in its first `steps` steps; all if None."""
    path, s = [], initial
    for h in range(len(policy) if steps is None else steps):
        a = policy[h][s]
        path.append((s, a))
        s = picked(rows[h][s][a], rng)
    return path


def value(rows: Rows, policy: Policy, initial: int, table: Table) -> float:
    """`V(pi; table)`: what a policy pays in expectation."""
    states = len(table[0])
    ahead = [0.0] * states
    for h in reversed(range(len(table))):
        now = []
        for s in range(states):
            a = policy[h][s]
            more = sum(rows[h][s][a][y] * ahead[y] for y in range(states)) if h < len(table) - 1 else 0.0
            now.append(table[h][s][a] + more)
        ahead = now
    return ahead[initial]


def best_in_hindsight(rows: Rows, initial: int, table: Table) -> float:
    """`min over pi of V(pi; table)`."""
    return value(rows, leader(rows, rows, table), initial, table)


# --- Algorithms 1, 3 and 4: episodes ----------------------------------------------------------------------------------


@dataclass
class Episodes:
    """FTPL before a round: the kernels that are possible, the visits so far and the sum of the estimates that came.

    Over a known kernel (Algorithm 1) `lower` and `upper` are that kernel and `log_term` is 0. Trials over confidence
    sets succeed with the greatest chance that the set allows, the law of simulating the policy under the maximizer.
    """

    lower: Rows
    upper: Rows
    initial: int
    rate: float
    limit: int
    log_term: float = 0.0  # ln(10 HSAK / delta)
    scale: float = 1.0  # of the radius
    estimates: Table = field(init=False)
    visits: Rows = field(init=False)  # [h][s][a][y]

    def __post_init__(self) -> None:
        steps, states, actions = len(self.lower), len(self.lower[0]), len(self.lower[0][0])
        self.estimates = np.zeros((steps, states, actions)).tolist()
        self.visits = np.zeros((steps, states, actions, states)).tolist()

    def drawn(self, rng: np.random.Generator) -> Policy:
        """The policy that is cheapest for the estimates plus fresh noise."""
        return leader(self.lower, self.upper, perturbed(self.estimates, self.rate, rng))

    def counted(self, path: Path, h: int, rng: np.random.Generator) -> int:
        """`M^h`: trials until one visits the pair of step `h`, at most `limit`."""
        for trials in range(1, self.limit + 1):
            if self._visits_again(path[h], h, rng):
                return trials
        return self.limit

    def _visits_again(self, pair: tuple[int, int], h: int, rng: np.random.Generator) -> bool:
        policy = self.drawn(rng)
        if self.log_term == 0.0:
            return walked(self.lower, policy, self.initial, rng, h + 1)[h] == pair
        s, a = pair
        chance = greatest_chance(self.lower, self.upper, policy, self.initial, h, s)
        return policy[h][s] == a and bool(rng.random() < chance)

    def learn(self, path: Path, weights: list[float], table: Table) -> None:
        """Feedback arrives: weight times loss at the pairs that were met."""
        for h, (s, a) in enumerate(path):
            self.estimates[h][s][a] += weights[h] * table[h][s][a]

    def observe(self, path: Path) -> None:
        """Intersect the rows that were met with the newest intervals around their means."""
        if self.log_term == 0.0:
            return
        for h in range(len(path) - 1):
            s, a = path[h]
            self.visits[h][s][a][path[h + 1][0]] += 1.0
            lower, upper = self._interval(self.visits[h][s][a])
            low = [max(pair) for pair in zip(self.lower[h][s][a], lower, strict=True)]
            high = [min(pair) for pair in zip(self.upper[h][s][a], upper, strict=True)]
            crossed = any(x > y for x, y in zip(low, high, strict=True))
            if crossed or sum(low) > 1.0 + ROUNDING or sum(high) < 1.0 - ROUNDING:
                low, high = lower, upper
            self.lower[h][s][a], self.upper[h][s][a] = low, high

    def _interval(self, counts: Row) -> tuple[Row, Row]:
        """`mean -+ 4 sqrt(mean ln(10HSAK/delta) / n) + 10 ln(10HSAK/delta) / n`, within 0 and 1."""
        n = sum(counts)
        lower, upper = [], []
        for count in counts:
            mean = count / n
            width = self.scale * (4.0 * sqrt(mean * self.log_term / n) + 10.0 * self.log_term / n)
            lower.append(max(0.0, mean - width))
            upper.append(min(1.0, mean + width))
        return lower, upper


def over_sets(
    shape: tuple[int, int, int], initial: int, rate: float, limit: int, rounds: int, delta: float, scale: float
) -> Episodes:
    """Algorithm 3, and with feedback that waits Algorithm 4: every kernel is possible at first."""
    steps, states, actions = shape
    lower, upper = np.zeros((*shape, states)).tolist(), np.ones((*shape, states)).tolist()
    log_term = log(10.0 * steps * states * actions * rounds / delta)
    return Episodes(lower, upper, initial, rate, limit, log_term, scale)
