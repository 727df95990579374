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
from itertools import product
from math import inf, log, sqrt

import numpy as np

Row = list[float]
Table = list[list[Row]]
Rows = list[list[list[Row]]]
Policy = list[list[int]]
Path = list[tuple[int, int]]

ROUNDING = 1e-11  # of a sum of chances


def zeros(steps: int, states: int, actions: int) -> Table:
    """A table of zeros."""
    return [[[0.0] * actions for _ in range(states)] for _ in range(steps)]


def perturbed(table: Table, rate: float, rng: np.random.Generator) -> Table:
    """The table plus independent noise of density `rate/2 exp(-rate |z|)`."""
    noise = rng.laplace(0.0, 1.0 / rate, (len(table), len(table[0]), len(table[0][0]))).tolist()
    return [
        [[x + z for x, z in zip(*pair, strict=True)] for pair in zip(*step, strict=True)]
        for step in zip(table, noise, strict=True)
    ]


def picked(chances: Row, rng: np.random.Generator) -> int:
    """An index with these chances."""
    luck, last = rng.random() * sum(chances), 0
    for i, chance in enumerate(chances):
        if chance > 0.0:
            last = i
            luck -= chance
            if luck < 0.0:
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

    Over a known kernel `lower` and `upper` are that kernel and `log_term` is 0. Trials over confidence sets succeed
    with the greatest chance that the set allows, which is the law of simulating the policy under the maximizer.
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
        self.estimates = zeros(steps, states, actions)
        self.visits = [[[[0.0] * states for _ in range(actions)] for _ in range(states)] for _ in range(steps)]

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


def over_a_kernel(rows: Rows, initial: int, rate: float, limit: int) -> Episodes:
    """Algorithm 1."""
    return Episodes(rows, rows, initial, rate, limit)


def over_sets(
    shape: tuple[int, int, int], initial: int, rate: float, limit: int, rounds: int, delta: float, scale: float
) -> Episodes:
    """Algorithm 3, and with feedback that waits Algorithm 4: every kernel is possible at first."""
    steps, states, actions = shape

    def filled(entry: float) -> Rows:
        return [[[[entry] * states for _ in range(actions)] for _ in range(states)] for _ in range(steps)]

    log_term = log(10.0 * steps * states * actions * rounds / delta)
    return Episodes(filled(0.0), filled(1.0), initial, rate, limit, log_term, scale)


# --- Algorithms 5 and 6: an unbroken stream ---------------------------------------------------------------------------


@dataclass
class Stream:
    """FTPL over stationary policies before an epoch: where the stream is, what is followed, and the estimates so far.

    `rows[s][a][y]` is the same in all steps. A policy that goes on needs no switch, nor does the first one. A trial
    goes through the switch as well, from where the epoch began: it counts at step `t` only if it is over by then.
    """

    rows: Table
    initial: int
    steps: int
    rate: float
    limit: int
    time: int = field(init=False)
    state: int = field(init=False)  # at the start of the epoch
    followed: list[int] | None = field(init=False)
    estimates: Table = field(init=False)

    def __post_init__(self) -> None:
        states, actions = len(self.rows), len(self.rows[0])
        self.policies = [list(one) for one in product(range(actions), repeat=states)]
        self.laws = [self._law(policy) for policy in self.policies]  # [policy][t][s], beyond the last step as well
        self._find_routes()
        self.begin()

    def begin(self) -> None:
        """Before the first epoch."""
        self.time, self.state, self.followed = 0, self.initial, None
        self.estimates = zeros(self.steps, len(self.rows), len(self.rows[0]))

    def _law(self, policy: list[int]) -> list[Row]:
        """`mu_pi^t` of the states, from the initial state at step 0."""
        states = len(self.rows)
        law = [[1.0 if s == self.initial else 0.0 for s in range(states)]]
        for _ in range(2 * self.steps):
            now = law[-1]
            law.append([sum(now[s] * self.rows[s][policy[s]][y] for s in range(states)) for y in range(states)])
        return law

    def pays(self, policy: int, table: Table) -> float:
        """`sum over t of <mu_pi^t, table^t>`."""
        chosen, law = self.policies[policy], self.laws[policy]
        return sum(law[t][s] * table[t][s][chosen[s]] for t in range(self.steps) for s in range(len(chosen)))

    def drawn(self, rng: np.random.Generator) -> list[int]:
        """The policy that is cheapest for the estimates plus fresh noise at all steps."""
        costs = perturbed(self.estimates, self.rate, rng)
        return self.policies[min(range(len(self.policies)), key=lambda i: self.pays(i, costs))]

    def best_in_hindsight(self, table: Table) -> float:
        """`min over pi`, by trying all."""
        return min(self.pays(i, table) for i in range(len(self.policies)))

    def _find_routes(self) -> None:
        """The parking state, the length `l*` and the ways to each target that make switches short."""
        states, actions = range(len(self.rows)), range(len(self.rows[0]))
        times = [self._least_times(y) for y in states]  # [y][s]
        parked = [s for s in states if any(self.rows[s][a][s] == 1.0 for a in actions)]
        most = int(2.0 * max(max(one) for one in times))
        reach = [[1.0 if s == g else 0.0 for s in states] for g in states]  # [g][s], with no step left
        ways: list[list[list[int]]] = []  # [steps left - 1][g][s]
        best = inf
        for length in range(1, most + 1):
            ahead = [
                [[sum(self.rows[s][a][y] * reach[g][y] for y in states) for a in actions] for s in states]
                for g in states
            ]
            ways.append([[max(actions, key=ahead[g][s].__getitem__) for s in states] for g in states])
            reach = [[max(ahead[g][s]) for s in states] for g in states]
            for s in parked:
                success = min(reach[g][s] for g in states)
                bound = (length + max(times[s])) / success if success > 0.0 else inf
                if bound < best:
                    best, self.parked, self.length = bound, s, length
                    self.arrival = [reach[g][s] for g in states]
        self.ways = ways[: self.length]
        self.wait = next(a for a in actions if self.rows[self.parked][a][self.parked] == 1.0)
        self.home = [
            min(actions, key=lambda a: sum(self.rows[s][a][y] * times[self.parked][y] for y in states)) for s in states
        ]
        self.home[self.parked] = self.wait

    def _least_times(self, target: int) -> Row:
        """The least expected steps to a state, by value iteration."""
        states, actions = range(len(self.rows)), range(len(self.rows[0]))
        times = [0.0 for _ in states]
        for _ in range(10_000):
            ahead = [
                0.0 if s == target else 1.0 + min(sum(self.rows[s][a][y] * times[y] for y in states) for a in actions)
                for s in states
            ]
            if max(abs(x - y) for x, y in zip(ahead, times, strict=True)) < 1e-12:
                break
            times = ahead
        return times

    def epoch(self, policy: list[int], stop: int, rng: np.random.Generator) -> tuple[Path, Path, int]:
        """Play until step `stop`: the way into the policy, the steps that followed it, and the state after them."""
        entering: Path = []
        s, t, law = self.state, self.time, self.laws[self.policies.index(policy)]
        entered = self.time == 0 or policy == self.followed
        while not entered and t < stop:
            if s != self.parked or t + self.length >= stop:  # no attempt that would end after the epoch
                entering.append((s, self.home[s]))
                s, t = picked(self.rows[s][self.home[s]], rng), t + 1
                continue
            goal = picked(law[t + self.length], rng)
            for left in reversed(range(self.length)):
                entering.append((s, self.ways[left][goal][s]))
                s, t = picked(self.rows[s][entering[-1][1]], rng), t + 1
            entered = s == goal and bool(rng.random() < min(self.arrival) / self.arrival[goal])
        path: Path = []
        while t < stop:
            path.append((s, policy[s]))
            s, t = picked(self.rows[s][policy[s]], rng), t + 1
        return entering, path, s

    def entered(self, policy: list[int], stop: int) -> Row:
        """The chance that a switch from here is over before each of the steps from now to `stop`."""
        states, size = range(len(self.rows)), stop - self.time
        law, success = self.laws[self.policies.index(policy)], min(self.arrival)
        ends = [self._end_of_attempt(g) for g in states]
        waiting = [1.0 if s == self.state else 0.0 for s in states]  # on the way to the parking state, or there
        failed = [[0.0 for _ in states] for _ in range(size)]
        over = [0.0] * size
        for i in range(size):
            waiting = [waiting[s] + failed[i][s] for s in states]
            if i + self.length < size:
                tried, waiting[self.parked] = waiting[self.parked], 0.0
                over[i + self.length] = success * tried
                for g in states:
                    aimed = tried * law[self.time + i + self.length][g]
                    for y in states:
                        failed[i + self.length][y] += aimed * (ends[g][y] - (success if y == g else 0.0))
            waiting = [sum(waiting[s] * self.rows[s][self.home[s]][y] for s in states) for y in states]
        return [sum(over[: i + 1]) for i in range(size)]

    def _end_of_attempt(self, goal: int) -> Row:
        """The law of the state after `l*` steps towards a target."""
        states = range(len(self.rows))
        law = [1.0 if s == self.parked else 0.0 for s in states]
        for left in reversed(range(self.length)):
            law = [sum(law[s] * self.rows[s][self.ways[left][goal][s]][y] for s in states) for y in states]
        return law

    def counted(self, path: Path, stop: int, i: int, rng: np.random.Generator) -> int:
        """`M^t` of the `i`-th pair of the followed steps, which end at `stop`."""
        for trials in range(1, self.limit + 1):
            _, again, _ = self.epoch(self.drawn(rng), stop, rng)
            before_end = len(path) - i
            if len(again) >= before_end and again[-before_end] == path[i]:
                return trials
        return self.limit

    def learn(self, path: Path, stop: int, weights: list[float], table: Table) -> None:
        """Weight times loss at the pairs that were followed."""
        for i, (s, a) in enumerate(path):
            t = stop - len(path) + i
            self.estimates[t][s][a] += weights[i] * table[t][s][a]

    def move_on(self, policy: list[int], path: Path, stop: int) -> None:
        """The next epoch begins; a policy that was never entered is not followed."""
        self.time = stop
        self.followed = policy if path else None
