"""Policy switching (Dai, Luo and Chen 2022, Algorithm 5, after Chandrasekaran and Tewari 2021).

In a stream the state is never put back to the initial one, so a new policy `pi` begins in a wrong state. To be at step
`t` where `pi` would have been, distributed as `mu_pi^t`, if it had been followed from the beginning:

1. go to the parking state `s*` by the policy of least expected time;
2. draw a target `g` from the state marginal of `mu_pi^{t + l*}`, the law at the time of arrival;
3. follow for `l*` steps the policy that is most likely to be at `g` then; its chance is `p_g`, and `p* = min_g p_g`;
4. if the state is `g`, accept with chance `p* / p_g`; otherwise start again at 1.

An attempt succeeds with chance `p*` whatever `g` is, so the law at the end is `mu_pi^t` and says nothing about when
it came. `l*` minimizes `(l + D*) / p*` with `D*` the longest way to `s*`. docs/infinite-horizon.md has the proofs, and
where the printed text differs.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from amdp import kernels
from amdp.arrays import Actions, Bools, Floats, Policies, one_hot, require_index
from amdp.errors import InvalidInput
from amdp.kernels import blas
from amdp.kernels.threads import one_thread
from amdp.model.chains import chains, laws, rows_of
from amdp.model.connectivity import Diameter, communication, diameter, parking_pairs
from amdp.model.segments import Place, Segment, Visit
from amdp.model.transitions import SingleKernel


@dataclass(frozen=True, eq=False)
class Epoch(Segment):
    """The steps of an epoch in which its policy was followed: from when it was entered to the end."""

    began: Place = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Routes:
    """How to leave the parking state: within a fixed number of steps to each target, as surely as can be."""

    parked: int
    wait: int  # the action that stays there
    actions: Actions = field(repr=False)  # [g, r, s], with r + 1 steps left
    arrival: Floats = field(repr=False)  # [g], the chance p_g of being at g at the end
    bound: float  # on the expected length of a switch

    @property
    def length(self) -> int:
        """The steps `l*` of an attempt."""
        return int(self.actions.shape[1])

    @property
    def success(self) -> float:
        """The chance `p*` that an attempt succeeds."""
        return float(self.arrival.min())


@dataclass(frozen=True, eq=False)
class PolicySwitching:
    """Enter a policy when it is another one than before, over a communicating kernel with a parking pair."""

    kernel: SingleKernel
    initial: int = 0
    renews: ClassVar[bool] = False  # whether a policy that stays is entered anew, on which the regret bounds rest

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, SingleKernel):
            raise InvalidInput(f"kernel is {type(self.kernel).__name__}; it must be a Kernel or a SparseKernel")
        require_index("initial", self.initial, self.kernel.shape[1])
        connected = communication(self.kernel)
        if connected.unreachable_pair:
            s, y = connected.unreachable_pair
            raise InvalidInput(f"policies cannot be switched: state {s} never leads to state {y}; see communication")
        if not parking_pairs(self.kernel):
            raise InvalidInput("policies cannot be switched: no parking pair; P(s|s,a) = 1 must hold for some (s, a)")

    @cached_property
    def diameter(self) -> Diameter:
        """The least expected times between states."""
        return diameter(self.kernel)

    @cached_property
    def routes(self) -> Routes:
        """The best parking pair and length of attempts."""
        return best_routes(self.kernel, self.diameter)

    @property
    def attempt_length(self) -> int:
        """The steps `l*` of one attempt."""
        return self.routes.length

    @property
    def expected_length(self) -> float:
        """A bound on the expected length of a switch, at most `12 D^2` if `S > 1` and `T > 2D`."""
        return self.routes.bound

    def follows(self, place: Place, policies: Policies) -> Bools:
        """Which of the policies `[n, s, a]` need no entry there."""
        if place.time == 0:  # the initial state is where every policy would be
            return np.ones(len(policies), dtype=bool)
        if place.policy is None:
            return np.zeros(len(policies), dtype=bool)
        same: Bools = (policies == place.policy).all(axis=(1, 2))
        return same

    def walk(self, place: Place, policy: Policies, stop: int, rng: np.random.Generator) -> Visit:
        """Play a policy `[s, a]` until step `stop`; three uniform numbers a step, whatever happens."""
        size = stop - place.time
        states, actions = np.empty(size, np.int64), np.empty(size, np.int64)
        entered = bool(self.follows(place, policy[None])[0])
        routes = self.routes
        targets = np.empty((0, len(policy))) if entered else self._targets(place, policy, stop)
        state, spent = kernels.switches.epoch(
            self.kernel.paths,
            np.ascontiguousarray(policy),
            targets,
            self._home,
            routes.parked,
            routes.wait,
            routes.actions,
            routes.success / routes.arrival,
            place.state,
            entered,
            rng.random((size, 3)),
            states,
            actions,
        )
        entering = Segment(states[:spent], actions[:spent], place.time)
        segment = Epoch(states[spent:], actions[spent:], place.time + spent, began=place)
        return Visit(entering, segment, Place(stop, state, policy if spent < size else None))

    def visits(self, seen: Epoch, actions: Actions) -> Floats:
        """The chance `[n, m]` that each of the policies `[n, s]`, played instead in that epoch, follows each pair."""
        place, count = seen.began, len(seen.states)
        policies = one_hot(actions, self.kernel.shape[2])
        moves = chains(self._rows, policies)
        at = np.empty((len(actions), count, len(self._rows)))
        followed = self.follows(place, policies)
        if followed.any():
            at[followed] = laws(moves[followed], place.state, seen.start - place.time, seen.stop - place.time)
        if not followed.all():
            entered = self.finished(moves[~followed], place, seen.stop)[:, seen.start - place.time :]
            at[~followed] = laws(moves[~followed], self.initial, seen.start, seen.stop) * entered[:, :, None]
        there: Floats = at[:, np.arange(count), seen.states] * (actions[:, seen.states] == seen.actions)
        return there

    def finished(self, moves: Floats, place: Place, stop: int) -> Floats:
        """The chance `[n, m]` that a switch to each chain `[s, y]` is over, in each step until `stop`."""
        routes, length, size = self.routes, self.routes.length, stop - place.time
        goals = laws(moves, self.initial, place.time + length, stop)
        waiting = np.zeros((len(moves), len(self._rows)))  # on the way to the parking state, or there
        waiting[:, place.state] = 1.0
        failed = np.zeros((len(moves), size, len(self._rows)))
        over = np.zeros((len(moves), size))
        with one_thread(waiting.size * len(self._rows), blas.LARGE_OF_MATRICES):
            for i in range(size):
                waiting += failed[:, i]
                if i + length < size:
                    tried, aim = waiting[:, routes.parked].copy(), goals[:, i]
                    waiting[:, routes.parked] = 0.0
                    over[:, i + length] = routes.success * tried
                    failed[:, i + length] = tried[:, None] * (aim @ self._ends - routes.success * aim)
                waiting = waiting @ self._homeward
        return np.cumsum(over, axis=1)

    def _targets(self, place: Place, policy: Policies, stop: int) -> Floats:
        """The law `[m, s]` of the target of an attempt that starts in each step: the policy's own, `l*` steps later."""
        ahead = self.routes.length
        moves = chains(self._rows, policy[None])
        targets: Floats = laws(moves, self.initial, place.time + ahead, stop + ahead)[0]
        return targets

    @cached_property
    def _rows(self) -> Floats:
        return rows_of(self.kernel)

    @cached_property
    def _home(self) -> Actions:
        """The way `[s]` to the parking state, and the action that waits there."""
        home: Actions = self.diameter.actions[self.routes.parked].copy()
        home[self.routes.parked] = self.routes.wait
        return home

    @cached_property
    def _homeward(self) -> Floats:
        return self._rows[np.arange(len(self._home)), self._home]

    @cached_property
    def _ends(self) -> Floats:
        """The law `[g, y]` of the state at the end of an attempt at each target."""
        routes, states = self.routes, np.arange(len(self._rows))
        law = np.tile(np.eye(len(states))[routes.parked], (len(states), 1))
        for left in reversed(range(routes.length)):
            law = np.einsum("gs,gsy->gy", law, self._rows[states, routes.actions[:, left]])
        return law


class RenewedSwitching(PolicySwitching):
    """Enter the policy anew in every epoch but the first, even if it stays the same: the pseudo-code to the letter.

    After a new entry the law is `mu_pi^t` whatever the learner saw before, at the price of one more switch.
    """

    renews: ClassVar[bool] = True

    def follows(self, place: Place, policies: Policies) -> Bools:
        """All policies in the first epoch, none later: they are entered anew."""
        return np.full(len(policies), place.time == 0)


def best_routes(kernel: SingleKernel, times: Diameter) -> Routes:
    """The parking pair and the length `l*` with the least bound `(l + D*) / p*` on the expected length of a switch."""
    rows = rows_of(kernel)
    states = len(rows)
    pairs = dict(reversed(parking_pairs(kernel)))  # the first action of each state
    parked = np.array(sorted(pairs))
    ways = times.times[parked].max(axis=1)  # D*
    reach = np.eye(states)  # [g, s], the best chance of being at g after some steps
    history: list[Actions] = []
    best, chosen = np.inf, (0, 0, reach)
    for length in range(1, max(1, min(int(2.0 * times.value), kernel.shape[0] - 1)) + 1):
        if length + ways.min() >= best:
            break
        ahead = np.einsum("say,gy->gsa", rows, reach)
        reach = ahead.max(axis=2)
        history.append(ahead.argmax(axis=2).astype(np.int32))
        with np.errstate(divide="ignore"):
            bounds = (length + ways) / reach[:, parked].min(axis=0)
        if bounds.min() < best:
            best, chosen = float(bounds.min()), (length, int(bounds.argmin()), reach)
    if best == np.inf:
        s, y = times.pair
        raise InvalidInput(
            f"the diameter {times.value:.6g}, from state {s} to state {y}, is too large for {kernel.shape[0]} steps: "
            "no switch can end within them"
        )
    length, which, reach = chosen
    state = int(parked[which])
    return Routes(state, pairs[state], np.stack(history[:length], axis=1), reach[:, state].copy(), best)
