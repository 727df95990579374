"""The best stationary policy as a mixed-integer program over phases: runs of steps whose costs stay the same.

While costs stay the same, what a policy pays depends on how long it is at each pair, and not on when. So the steps of
a phase leave the program. Let `n_i` be their number, `c_i` their costs, and `K` the rows of the rounded model. Then

    min  sum_i <c_i, x_i>
    s.t. sum_a x_i[y,a] - sum_{s,a} K(y | s,a) x_i[s,a] = b_i[y] - b_{i+1}[y]      balance[i,y]
         sum_a x_i[s,a] >= b_i[s], with equality if the phase is a single step     begins[i,s]
         sum_{s,a} x_i[s,a] = n_i                                                  length[i], n_i > 1
         x_i[s,a] <= M_i[s,a] choice[s,a]                                          only_chosen[i,s,a]
         sum_a choice[s,a] = 1                                                     one_action[s]

where `x_i[s,a]` stands for the expected number of steps at a pair, and `b_i[s]` for the chance of a state when phase
`i` begins, of which the first is given. `M_i[s,a]` is at least the expected number of steps at `s` in the phase under
any policy that always takes `a` there, whatever it does elsewhere.

The laws of every policy satisfy this: `balance` is the sum of `mu[t+1] = K_pi' mu[t]` over the phase, and the first of
its steps has the law `b_i`. So the optimum is a bound. It is a relaxation, since the chosen policy need not lead from
`b_i` to `b_{i+1}`; after a phase of one step it must, and if all phases are single steps, nothing is relaxed.

A run of equal costs may be cut at will. It pays to keep its last steps one by one: whatever law they begin with, the
chosen policy then moves it towards the law at which it would be. Single steps at the beginning of a phase do not
help as much, since the law at its end stays free.

Where chances were removed from `K`, mass is lost. Then `length` is a range with room for what may be lost, and a phase
has the least costs that any of its steps is charged.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Floats, one_hot, require_room
from amdp.oracles.model_files import grid, listed
from amdp.oracles.stationary.chains import ROW_SUM_ROUNDING, Policy
from amdp.oracles.stationary.formulations import LEAST_CAP, Formulation, Rounded

RELAXED = "a program over phases, which leaves free when a policy is where"
Steps = NDArray[np.int64]

CAP_PRECISION = 1e-3  # of the length of a phase: a cap that is too large by no more is not worth further sweeps


class Cut(NamedTuple):
    """Steps cut into phases."""

    lengths: Steps  # [i]
    starts: Steps  # [i]

    @classmethod
    def of(cls, runs: Steps, last_steps: int) -> "Cut":
        """Each run of equal costs is a phase, and its last steps are phases of their own.

        `runs` `[t]` has the first later step with other costs.
        """
        lengths, t = list[int](), 0
        while t < len(runs):
            n = int(runs[t]) - t
            single = min(last_steps, n - 1)
            lengths += [n - single, *[1] * single]
            t += n
        sizes = np.array(lengths)
        return cls(sizes, np.cumsum(sizes) - sizes)


def phases(model: Rounded, start: Policy, last_steps: int = 0) -> Formulation:
    """The formulation over phases, with so many last steps of each run of equal costs one by one."""
    _, states, actions = model.shape
    cut = Cut.of(model.runs, last_steps)
    n, pairs = len(cut.lengths), states * actions
    caps = np.maximum(LEAST_CAP, greatest_times(model, cut))
    low, high = lasting_mass(model)
    long = np.flatnonzero(cut.lengths > 1)

    each = scipy.sparse.eye_array(n, format="csr")
    own = scipy.sparse.kron(scipy.sparse.eye_array(states), np.ones((1, actions)))
    now, then = (
        scipy.sparse.kron(scipy.sparse.eye_array(n, n + 1, k=k), scipy.sparse.eye_array(states)) for k in (0, 1)
    )
    capped = scipy.sparse.vstack([scipy.sparse.diags_array(cap) for cap in caps])
    blocks: list[list[Any]] = [
        [scipy.sparse.kron(each, own - model.moves.T), then - now, None],
        [scipy.sparse.kron(each, own), -now, None],
        [scipy.sparse.kron(each[long], np.ones((1, pairs))), None, None],
        [scipy.sparse.eye_array(n * pairs), None, -capped],
        [None, None, own],
    ]
    matrix: Any = scipy.sparse.block_array(blocks)
    balanced, only_chosen = np.zeros(n * states), np.full(n * pairs, -np.inf)
    later_steps = np.repeat(np.where(cut.lengths > 1, np.inf, 0.0), states)
    total = cut.lengths[long]
    first = one_hot(np.array([model.initial]), states)[0]
    return Formulation(
        matrix.tocsc(),
        np.concatenate([balanced, balanced, low * total, only_chosen, np.ones(states)]),
        np.concatenate([balanced, later_steps, high * total, np.zeros(n * pairs), np.ones(states)]),
        np.concatenate([_by_phase(np.minimum, model.cost, cut), np.zeros((n + 1) * states + pairs)]),
        np.concatenate([np.zeros(n * pairs), first, np.zeros(n * states + pairs)]),
        np.concatenate([high * np.repeat(cut.lengths, pairs), first, np.full(n * states, high), np.ones(pairs)]),
        pairs,
        laws(model, start, cut),
        (grid("x", n, states, actions), grid("start", n + 1, states), grid("choice", states, actions)),
        (
            grid("balance", n, states),
            grid("begins", n, states),
            listed("length", long.tolist()),
            grid("only_chosen", n, states, actions),
            grid("one_action", states),
        ),
    )


def lasting_mass(model: Rounded) -> tuple[float, float]:
    """The least and the greatest mass that laws of the model can have at any step, for they begin with 1."""
    sums = model.moves.sum(axis=1)
    sums = np.where(np.abs(sums - 1.0) <= ROW_SUM_ROUNDING, 1.0, sums)[sums > 0.0]
    steps = float(model.shape[0])
    return min(1.0, float(sums.min())) ** steps, max(1.0, float(sums.max())) ** steps


def greatest_times(model: Rounded, cut: Cut) -> Floats:
    """At least the expected number of steps `[i, s * a]` at a state in a phase, if a pair is always taken there.

    Backward sweeps for all pairs side by side, which phases of one length share: through the phase, with a reward of 1
    for each step at the state of the pair, and then to the first step.
    """
    _, states, actions = model.shape
    pairs = states * actions
    require_room("the steps at each pair after each other pair", (pairs, pairs), 3, "auto needs none")
    sums = model.moves.sum(axis=1)
    rows = scipy.sparse.diags_array(1.0 / np.where(sums > 0.0, sums, 1.0)) @ model.moves
    pair = np.arange(pairs)
    state, action = np.divmod(pair, actions)

    def before(ahead: Floats) -> Floats:
        """From what is ahead of each state `[s, pair]` to one move before."""
        after = (rows @ ahead).reshape(states, actions, pairs)
        most: Floats = after.max(axis=1)
        most[state, pair] = after[state, action, pair]
        return most

    there = one_hot(state, states).T
    times: Floats = np.empty((len(cut.lengths), pairs))
    for n in np.unique(cut.lengths):
        same = np.flatnonzero(cut.lengths == n)
        ahead = _through_phase(before, there, int(n))
        times[same] = _from_first_step(before, ahead, cut.starts[same], CAP_PRECISION * n, model.initial)
    return times * lasting_mass(model)[1]


Sweep = Callable[[Floats], Floats]


def _through_phase(before: Sweep, reward: Floats, n: int) -> Floats:
    """The greatest sums of `n` rewards, one a step, from each state.

    A sweep is monotone and adds constants through. So each further step adds no more than the last one at its best
    state, and the sweeps end when this is nearly the same at all states.
    """
    ahead, done = reward, 1
    while done < n:
        longer = before(ahead) + reward
        added = longer - ahead
        ahead, done = longer, done + 1
        if (n - done) * np.ptp(added, axis=0).max() <= CAP_PRECISION * n:
            ahead = ahead + (n - done) * added.max(axis=0)
            break
    return ahead


def _from_first_step(before: Sweep, ahead: Floats, starts: Steps, precision: float, initial: int) -> Floats:
    """The greatest sums `[start, pair]` from `initial`; those of the best state once all have nearly the same."""
    sums, done = np.empty((len(starts), ahead.shape[1])), 0
    for i, start in enumerate(starts):
        while done < start and np.ptp(ahead, axis=0).max() > precision:
            ahead, done = before(ahead), done + 1
        sums[i] = ahead[initial] if done == start else ahead.max(axis=0)
    return sums


def _by_phase(merge: np.ufunc, each_step: Floats, cut: Cut) -> Floats:
    """What is given for each step `[t, s, a]`, merged over the steps of each phase."""
    merged: Floats = merge.reduceat(each_step, cut.starts, axis=0).reshape(-1)
    return merged


def laws(model: Rounded, policy: Policy, cut: Cut) -> Floats:
    """A policy as a feasible point: its times at pairs, its laws, and its choices."""
    visits = model.chances(policy)
    last = model.moves.T @ visits[-1].reshape(-1)
    at_starts = visits[cut.starts].sum(axis=2).reshape(-1)
    choices = one_hot(policy, model.shape[2]).reshape(-1)
    return np.concatenate([_by_phase(np.add, visits, cut), at_starts, last, choices])
