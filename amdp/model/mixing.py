"""Mixing of ergodic kernels: how fast the initial state is forgotten, least visit chances, and long-run losses.

The distance of two laws is that in total variation, half the sum of the differences; it is at most 1. A stationary
policy `pi` moves by the chain `P^pi`, whose rows are mixtures of the rows of the kernel.
"""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.spatial.distance import cdist

from amdp import kernels
from amdp.arrays import Actions, Bools, Floats, Policies, floats, refuse, require_distributions, require_whole
from amdp.errors import InvalidInput
from amdp.kernels.threads import multiply, one_thread
from amdp.model.chains import rows_of
from amdp.model.dynamics import read_only
from amdp.model.hitting import SLOWER, adopt, greedy, hitting_times
from amdp.model.transitions import SingleKernel

OVERLAP_TOLERANCE = 1e-12  # two rows that share less than this share nothing
SOLVE_TOLERANCE = 1e-9  # relative: factors that cannot prove this are replaced by an elimination
LEAST_CONDITION = 1e-14  # a system with a smaller reciprocal condition number is singular to rounding
GREATEST_NORM = 3.0  # of `Z`, the largest sum of a row, at most


# --- how fast ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mixing:
    """`|x P^pi - y P^pi| <= contraction |x - y|` for all laws `x`, `y` and all stationary policies, and no less."""

    contraction: float  # the greatest distance of the rows (s, a) and (y, b) of two states
    apart: tuple[tuple[int, int], tuple[int, int]] | None  # two pairs that attain it; None: there is one state only
    influence: float  # the greatest distance of two rows of one state: what a choice can change

    @property
    def time(self) -> float:
        """`tau` of `contraction = exp(-1 / tau)`."""
        if self.contraction <= 0.0:
            return 0.0
        return -1.0 / log(self.contraction) if self.contraction < 1.0 else inf

    @property
    def memory(self) -> float:
        """`1 + contraction + contraction^2 + ...`, at most `tau + 1`: the most that an initial state can cost."""
        return 1.0 / (1.0 - self.contraction) if self.contraction < 1.0 else inf

    def __str__(self) -> str:
        return f"contraction {self.contraction:.6g} a step, mixing time {self.time:.6g}"


def mixing(kernel: SingleKernel) -> Mixing:
    """The distances of all rows, exactly: mixtures of rows are never further apart than the rows."""
    rows = _distributions(kernel)
    states, actions, _ = rows.shape
    flat = rows.reshape(-1, states)
    contraction, influence = 0.0, 0.0
    apart = ((0, 0), (1, 0)) if states > 1 else None
    for s in range(states):
        distances = np.minimum(cdist(rows[s], flat[s * actions :], "cityblock") / 2.0, 1.0)  # [a, later pairs]
        influence = max(influence, float(distances[:, :actions].max()))
        others = distances[:, actions:]
        if others.size and others.max() > contraction:
            contraction = float(others.max())
            a, pair = np.unravel_index(int(others.argmax()), others.shape)
            y, b = divmod(int(pair), actions)
            apart = (s, int(a)), (s + 1 + y, b)
    return Mixing(contraction, apart, influence)


def require_mixing(kernel: SingleKernel) -> Mixing:
    """The mixing of a kernel in which any two rows overlap; refuse others, naming two that do not."""
    measured = mixing(kernel)
    if measured.contraction >= 1.0 - OVERLAP_TOLERANCE:
        assert measured.apart is not None
        (s, a), (y, b) = measured.apart
        raise InvalidInput(
            f"the rows p[s={s}, a={a}] and p[s={y}, a={b}] do not overlap, so some policy may never forget where it "
            "started (mixing time inf); give all rows a state in common, or use a learner for communicating worlds: "
            "ftpl-infinite"
        )
    return measured


# --- where all policies come by ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LeastVisits:
    """`value = min_pi min_s d_pi(s)`, with `d_pi` the stationary law of a policy; 0 if some policy avoids a state."""

    value: float
    state: int  # the one that is visited least
    actions: Actions = field(repr=False)  # [s], a policy that visits it least, or stays away from `home` on
    home: int | None  # a state from which this policy never comes to `state`; None if there is none
    each: Floats = field(repr=False)  # [s], the least for each state

    def __str__(self) -> str:
        return f"every policy is in state {self.state} for {self.value:.6g} of the steps or more"


def least_visits(kernel: SingleKernel) -> LeastVisits:
    """The least share of steps in each state, exactly.

    In the long run `d_pi(s)` is one over the mean time of return to `s`. If no policy can stay away from `s`, the
    slowest policy is found by policy iteration on `T[s] = 0`, `T[x] = 1 + max_a sum_y P(y|x,a) T[y]`, and the
    longest return is `max_a 1 + sum_y P(y|s,a) T[y]`. Nothing cancels, so small shares keep their digits.
    """
    rows = _distributions(kernel)
    away, actions = _avoided(rows)
    each = np.zeros(len(rows))
    surely = np.flatnonzero(~away.any(axis=1))
    if len(surely):
        times, slow = _slowest(rows, surely)
        ahead = 1.0 + np.einsum("nay,ny->na", rows[surely], times)
        each[surely] = 1.0 / ahead.max(axis=1)
        actions[surely] = slow
        actions[surely, surely] = ahead.argmax(axis=1)
    state = int(each.argmin())
    home = int(away[state].argmax()) if away[state].any() else None
    return LeastVisits(float(each[state]), state, actions[state], home, each)


def require_visits(kernel: SingleKernel) -> None:
    """Refuse a kernel in which some policy avoids a state, naming the state."""
    away, actions = _avoided(_distributions(kernel))
    if away.any():
        state, home = (int(i) for i in np.unravel_index(int(np.argmax(away)), away.shape))
        raise InvalidInput(
            f"state {state} can be avoided: from state {home} the policy {actions[state].tolist()} never comes there, "
            "and what is never met cannot be estimated; lead there with some chance from everywhere, or use a learner "
            "for communicating worlds: ftpl-infinite"
        )


def least_arrival(kernel: SingleKernel, steps: int) -> float:
    """The least chance of being at a state after `steps` moves, over all states, starts and policies, Markov too."""
    require_whole("steps", steps, 1)
    rows = _distributions(kernel)
    chance = np.eye(len(rows))  # [y, s], of being at y
    with one_thread(rows.size):
        for _ in range(steps):
            chance = (chance @ rows.transpose(0, 2, 1)).min(axis=2).T  # [s, y, a] -> [y, s]
    return float(chance.min())


def _avoided(rows: Floats) -> tuple[Bools, Actions]:
    """From where some policy never comes to each target `[y, s]`, and one such policy."""
    away = ~np.eye(len(rows), dtype=bool)
    while True:
        with one_thread(rows.size * len(rows)):
            risk = np.einsum("say,ny->nsa", rows, ~away, optimize=True)
        staying = away & (risk == 0.0).any(axis=2)
        if np.array_equal(staying, away):
            return away, (risk == 0.0).argmax(axis=2).astype(np.int32)
        away = staying


def _slowest(rows: Floats, targets: NDArray[np.intp]) -> tuple[Floats, Actions]:
    """The longest expected times `[n, s]` until targets that every policy reaches, and policies that take them."""
    improved = np.arange(len(targets))
    actions = np.zeros((len(targets), len(rows)), dtype=np.int32)
    actions[improved, targets] = -1

    def measure(numbers: NDArray[np.intp], policies: Actions) -> Floats:
        return _times(rows, targets[numbers], policies)

    times = measure(improved, actions)
    while len(improved):
        ahead = 1.0 + multiply(times[improved], rows.reshape(-1, len(rows)).T).reshape(-1, *rows.shape[:2])
        improved = adopt(times, actions, improved, greedy(-ahead, actions[improved], SLOWER), measure, -1.0)
    return times, actions


def _times(rows: Floats, targets: NDArray[np.intp], actions: Actions) -> Floats:
    """Expected steps `[n, s]` until the targets: by factors, and where these prove too little, by elimination."""
    times = np.empty(actions.shape)
    weak = [n for n, target in enumerate(targets) if not _solved(rows, target, actions[n], times[n]) <= SOLVE_TOLERANCE]
    if weak:
        times[weak] = hitting_times(rows.reshape(-1, len(rows)), targets[weak], actions[weak])
    return times


def _solved(rows: Floats, target: np.intp, policy: Actions, times: Floats) -> float:
    """Fill `times` `[s]`; the share by which they may be wrong: their residual, and the rounding in it."""
    moves = rows[np.arange(len(rows)), policy]
    moves[target] = 0.0
    try:
        with one_thread(moves.size):
            times[:] = np.linalg.solve(np.eye(len(rows)) - moves, policy >= 0)
    except np.linalg.LinAlgError:  # singular to rounding
        return inf
    rounding = np.finfo(np.float64).eps * (2 + len(rows))
    return float(np.abs(times - (policy >= 0) - multiply(moves, times)).max() + rounding * np.abs(times).max())


# --- the long run -----------------------------------------------------------------------------------------------------


class LongRun(NamedTuple):
    """The long-run loss of a policy: `bias + mean = losses of pi + P^pi bias`, and `<law, bias> = 0`."""

    mean: float  # a step
    bias: Floats  # [s], how much more in all if it starts there
    ahead: Floats  # [s, a], `losses - mean + P bias`: the same after one other choice


@dataclass(frozen=True, eq=False)
class Chain:
    """One stationary policy `[s, a]` over rows `[s, a, y]`, neither of them checked again.

    With `u` the uniform law and `Z = I - P^pi + 1 u^T` the stationary law solves `Z^T d = u`, and `Z V = l_pi` gives
    the mean `<u, V>` and, up to a constant, the bias: one factorization for both. `Z` is singular if and only if the
    chain has two closed classes.
    """

    rows: Floats = field(repr=False)
    policy: Policies = field(repr=False)

    @cached_property
    def moves(self) -> Floats:
        """The transition matrix `P^pi` `[s, y]` of the policy."""
        mixed = np.empty((len(self.rows), len(self.rows)))
        kernels.ergodic.mix(self.rows, self.policy, mixed)
        return mixed

    @cached_property
    def law(self) -> Floats:
        """The stationary law `[s]`."""
        factors, pivots = self._factors
        with one_thread(factors.size):
            law: Floats = lapack.dgetrs(factors, pivots, _uniform(len(factors)))[0]
        return law

    def long_run(self, losses: Floats) -> LongRun:
        """The mean loss, bias and action values of the policy for losses `[s, a]`."""
        bias, ahead = np.empty(len(self.rows)), np.empty(self.policy.shape)
        mean = float(kernels.ergodic.long_run(self.rows, self.policy, self.moves, losses, bias, ahead))
        return LongRun(mean, bias, ahead)

    @property
    def condition(self) -> float:
        """About one over the condition number of `Z`: near 0, there may be several stationary laws."""
        factors, _ = self._factors
        with one_thread(factors.size):
            return float(lapack.dgecon(factors, GREATEST_NORM)[0])

    @cached_property
    def _factors(self) -> tuple[Floats, NDArray[np.int32]]:
        """The LU factors of `Z^T`, which lies in memory as LAPACK reads it."""
        system = _identity_and_average(len(self.moves)) - self.moves
        with one_thread(system.size):
            factors, pivots, _ = lapack.dgetrf(system.T, overwrite_a=True)
        return factors, pivots


def long_run(kernel: SingleKernel, policy: Policies, losses: Floats) -> LongRun:
    """What one stationary policy `[s, a]` pays for losses `[s, a]`, step by step and by where it starts."""
    rows = _distributions(kernel)
    played, paid = floats("policy", policy, "sa"), floats("losses", losses, "sa")
    for name, array in (("policy", played), ("losses", paid)):
        if array.shape != rows.shape[:2]:
            raise InvalidInput(f"{name} has shape {array.shape}; the kernel asks for {rows.shape[:2]}")
    require_distributions("policy", played, "sa")
    refuse("policy", played, (played.sum(axis=1) == 0.0)[:, None], "sa", "begins a row of zeros; a chain needs actions")
    chain = Chain(rows, played)
    if chain.condition < LEAST_CONDITION:
        raise InvalidInput("the policy has no single stationary law: its chain has two classes that it never leaves")
    return chain.long_run(paid)


@lru_cache
def _uniform(states: int) -> Floats:
    return read_only(np.full(states, 1.0 / states))


@lru_cache
def _identity_and_average(states: int) -> Floats:
    return read_only(np.eye(states) + 1.0 / states)


def _distributions(kernel: SingleKernel) -> Floats:
    """The rows `[s, a, y]` of a homogeneous kernel, all of them distributions."""
    if not getattr(kernel, "is_homogeneous", False):
        raise InvalidInput(f"{kernel!r} is not a homogeneous kernel; see Kernel.homogeneous, SparseKernel.homogeneous")
    empty = kernel.empty_rows(0)
    if empty.any():
        s, a = np.unravel_index(int(np.argmax(empty)), empty.shape)
        raise InvalidInput(f"p[s={s}, a={a}] is all zero; a chain without end asks for a way on from everywhere")
    return rows_of(kernel)
