"""Algorithms 5 and 6 by plain loops over lists: policy switching, and FTPL in epochs of an infinite horizon.

Written from the pseudo-code alone, with the conventions of `reference.py`.
"""

from dataclasses import dataclass, field
from itertools import product
from math import inf

import numpy as np

from amdp.verification.reference import Path, Row, Table, perturbed, picked


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
        self.policies = [list(policy) for policy in product(range(actions), repeat=states)]
        self.laws = [self._law(policy) for policy in self.policies]  # [policy][t][s], beyond the last step as well
        self._find_routes()
        self.begin()

    def begin(self) -> None:
        """Put the stream back to its initial state, with nothing learned."""
        self.time, self.state, self.followed = 0, self.initial, None
        self.estimates = np.zeros((self.steps, len(self.rows), len(self.rows[0]))).tolist()

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
        most = int(2.0 * max(max(to_target) for to_target in times))
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
