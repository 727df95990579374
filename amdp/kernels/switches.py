"""Switches to policies, compiled: within one epoch, or step by step behind a leader; and laws from step to step.

How far a switch has come, step by step, is a list of three: whether the policy is entered, the target of the attempt,
and the steps of the attempt that are left.
"""

import numpy as np

from amdp.kernels.blocks import ARENA, LEARN
from amdp.kernels.clock import nanoseconds
from amdp.kernels.compiling import entry, inner
from amdp.kernels.copies import copy
from amdp.kernels.episodes import _lap
from amdp.kernels.paths import _pick, move
from amdp.kernels.philox import fill_step
from amdp.kernels.walks import walk_on

ENTERED, GOAL, LEFT = 0, 1, 2

_entry = entry()
_inner = inner()


@_entry
def forward(chains, laws):
    """Fill laws `[n, m, s]` from their first entries on, each along its chain `[s, y]`."""
    n, m, states = laws.shape
    for i in range(n):
        for t in range(1, m):
            for y in range(states):
                laws[i, t, y] = 0.0
            for s in range(states):
                mass = laws[i, t - 1, s]
                if mass > 0.0:
                    for y in range(states):
                        laws[i, t, y] += mass * chains[i, s, y]


@_entry
def epoch(rows, policy, targets, home, parked, wait, routes, odds, state, entered, uniforms, states, actions):
    """Walk one epoch from `state`; where it ends, and how many steps went into entering the policy `[s, a]`.

    `targets[i]` is the law of the target of an attempt that starts in step `i`. `routes[g, r, s]` leads to `g` with
    `r + 1` steps left; who arrives is accepted with chance `odds[g]`. `home[s]` leads to the state `parked`, where
    the action `wait` stays. `uniforms[i]` decide action or target, move, and acceptance.
    """
    m = states.size
    n_actions = policy.shape[1]
    length = routes.shape[1]
    s = state
    goal = 0
    left = -1  # steps of an attempt still to go; -1: not in an attempt
    spent = 0 if entered else m
    for i in range(m):
        if i < spent and left == 0:
            left = -1
            if s == goal and uniforms[i, 2] < odds[goal]:
                spent = i
        # An attempt that would end after the epoch is not made: it is better to wait where the next one starts.
        if i < spent and left < 0 and s == parked and i + length < m:
            goal = _pick(np.cumsum(targets[i]), uniforms[i, 0])
            left = length
        if i >= spent:
            a = _pick(np.cumsum(policy[s]), uniforms[i, 0])
        elif left > 0:
            left -= 1
            a = np.int64(routes[goal, left, s])
        elif s == parked:
            a = wait
        else:
            a = np.int64(home[s])
        states[i] = s
        actions[i] = a
        s = move(rows, 0, s * n_actions + a, uniforms[i, 1])
    return s, spent


# --- step by step -----------------------------------------------------------------------------------------------------


@_entry
def law_at(rows, policy, initial, time, law):
    """The law of the state at a step, if a policy `[s]` was followed from `initial`: by squares of its chain."""
    states = law.size
    power, square, new = np.empty((states, states)), np.empty((states, states)), np.empty(states)
    for s in range(states):
        law[s] = 0.0
        for y in range(states):
            power[s, y] = rows[s, policy[s], y]
    law[initial] = 1.0
    while time > 0:
        if time & 1:
            for y in range(states):
                new[y] = 0.0
            for s in range(states):
                for y in range(states):
                    new[y] += law[s] * power[s, y]
            for y in range(states):
                law[y] = new[y]
        time >>= 1
        if time > 0:
            for s in range(states):
                for y in range(states):
                    square[s, y] = 0.0
                for m in range(states):
                    for y in range(states):
                        square[s, y] += power[s, m] * power[m, y]
            power, square = square, power


@_entry
def begin(switch, policy, time, state, key, come):
    """A new switch; at the parked state an attempt starts, whose target the first random number of the step draws."""
    come[ENTERED], come[GOAL], come[LEFT] = 0, -1, 0
    if state == switch.parked:
        law, luck = np.empty(switch.rows.shape[0]), np.empty(1)
        law_at(switch.rows, policy, switch.initial, time + switch.ahead, law)
        fill_step(key, time, luck)
        come[GOAL] = _pick(np.cumsum(law[: switch.inside]), luck[0])
        come[LEFT] = switch.routes.shape[1]


@_entry
def go_on(switch, policy, time, state, key, come):
    """The switch one step later; the second random number of the step decides whether an arrival is accepted."""
    if come[ENTERED] == 1:
        return
    if come[LEFT] > 1:
        come[LEFT] -= 1
        return
    if come[LEFT] == 1 and state == come[GOAL]:
        luck = np.empty(2)
        fill_step(key, time, luck)
        if luck[1] < switch.odds[state]:
            come[ENTERED], come[GOAL], come[LEFT] = 1, -1, 0
            return
    begin(switch, policy, time, state, key, come)


@_entry
def action(switch, policy, state, come):
    """The action of a switch in a state."""
    if come[ENTERED] == 1:
        return np.int64(policy[state])
    if come[LEFT] > 0:
        return np.int64(switch.routes[come[GOAL], come[LEFT] - 1, state])
    return np.int64(switch.home[state])


@_inner
def _differ(switch, policy, other):
    """Whether two policies differ in a state that can be visited again."""
    for s in range(switch.inside):
        if policy[s] != other[s]:
            return True
    return False


@_inner
def _follow(block, k, switch, policy, time, state, key, come, played):
    """Step `k` of a block, at `time`, on the way into a policy or under it; the state that it leads to."""
    a = action(switch, policy, state, come)
    played.states[k, 0] = state
    played.actions[k, 0] = a
    reached = move(block.paths, 0, state * switch.rows.shape[1] + a, block.luck[k, 0, 1])
    go_on(switch, policy, time + 1, reached, key, come)
    return reached


@_inner
def _least(paid):
    """The first of the policies that paid least."""
    best = 0
    for i in range(1, paid.size):
        if paid[i] < paid[best]:
            best = i
    return best


@_entry
def follow_least(block, switch, listed, rows, at, paid, leader, headed, time, key, come, played):
    """Steps behind the policy that paid least, noise included: where they end, the leader and the policy headed for.

    `at` `[n, s]` and `paid` `[n]` are those of all policies `[n, s]` over `rows`, and move on.
    """
    state, moved = block.initial, np.empty_like(at)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(played.states.shape[0]):
        state = _follow(block, k, switch, listed[headed], time + k, state, key, come, played)
        now = _lap(clock, now, played.spent, ARENA)
        walk_on(listed, rows, block.tables[k, 0], at, paid, moved, paid)
        copy(moved, at)
        best = _least(paid)
        if _differ(switch, listed[best], listed[leader]):
            headed = best
            begin(switch, listed[best], time + k + 1, state, key, come)
        leader = best
        now = _lap(clock, now, played.spent, LEARN)
    return state, leader, headed


@_entry
def watch(listed, rows, table, leader, at, paid, moved):
    """Move all policies on by a step, and tell whether the leader had to pay in it."""
    due = 0.0
    for s in range(at.shape[1]):
        due += at[leader, s] * table[s, listed[leader, s]]
    walk_on(listed, rows, table, at, paid, moved, paid)
    return due > 0.0


@_entry
def is_ahead(paid, leader, margin):
    """Whether all other policies paid more than the leader by more than `margin`."""
    for i in range(paid.size):
        if i != leader and not paid[leader] + margin < paid[i]:
            return False
    return margin < np.inf


@_entry
def follow_watched(block, low, switch, listed, at, paid, leader, headed, margin, time, state, key, come, played):
    """Steps from the number `low` of a block on until it is in doubt who leads: how many are played, and the state.

    `time` is that of the first step of the block. There can be doubt only after a step in which the leader had to pay.
    """
    moved = np.empty_like(at)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(low, played.states.shape[0]):
        state = _follow(block, k, switch, listed[headed], time + k, state, key, come, played)
        now = _lap(clock, now, played.spent, ARENA)
        pays = watch(listed, switch.rows, block.tables[k, 0], leader, at, paid, moved)
        copy(moved, at)
        now = _lap(clock, now, played.spent, LEARN)
        if pays and not is_ahead(paid, leader, margin):
            return k + 1, state, True
    return played.states.shape[0], state, False
