"""The contestants that amdp is measured against: other packages, and numpy written with care.

Each function prepares what may be prepared and returns the call that is timed.
"""

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any
from warnings import catch_warnings, simplefilter

import highspy
import mdptoolbox.mdp
import numpy as np
from scipy.optimize import linprog

from amdp import BernsteinBox, Kernel
from amdp.arrays import Costs, Floats, Policies
from amdp.model.domains import MarkovPolicies
from amdp.model.dynamics import next_state_first
from amdp.oracles.polytope import polytope


def dgemm(kernel: Kernel, n: int, rng: np.random.Generator) -> Callable[[], Floats]:
    """The matrix products of a batched sweep and nothing else."""
    chances = next_state_first(kernel.p)
    values = rng.random((n, kernel.shape[1]))
    product = np.empty((n, chances.shape[2]))

    def run() -> Floats:
        for h in range(kernel.shape[0] - 1):
            np.dot(values, chances[h], out=product)
        return product

    return run


def quantecon(rows: Floats, cost: Floats, steps: int) -> Callable[[], Floats]:
    """Backward induction over a stationary problem, prebuilt; the values `[s]` of the first step."""
    from quantecon.markov import DiscreteDP
    from quantecon.markov.ddp import backward_induction

    with catch_warnings():
        simplefilter("ignore")  # without a discount its infinite-horizon methods are off
        problem = DiscreteDP(-cost, rows, 1.0)

    def run() -> Floats:
        values: Floats = backward_induction(problem, steps)[0][0]
        return -values

    return run


def toolbox(rows: Floats, cost: Floats, steps: int) -> Callable[[], Floats]:
    """The same in pymdptoolbox, whose constructor checks the problem and runs each time."""
    by_action = np.ascontiguousarray(rows.transpose(1, 0, 2))
    reward = -cost

    def run() -> Floats:
        with redirect_stdout(StringIO()):
            problem = mdptoolbox.mdp.FiniteHorizon(by_action, reward, 1.0, steps)
            problem.run()
        values: Floats = problem.V[:, 0]
        return -values

    return run


def toolbox_run(rows: Floats, cost: Floats, steps: int) -> Callable[[], Floats]:
    """Only `run` of pymdptoolbox, on a problem that was constructed before."""
    with redirect_stdout(StringIO()):
        problem = mdptoolbox.mdp.FiniteHorizon(np.ascontiguousarray(rows.transpose(1, 0, 2)), -cost, 1.0, steps)

    def run() -> Floats:
        problem.run()
        values: Floats = problem.V[:, 0]
        return -values

    return run


def quantecon_endless(rows: Floats, cost: Floats, discount: float) -> Callable[[], Floats]:
    """Policy iteration of discounted costs, prebuilt; the values `[s]`."""
    from quantecon.markov import DiscreteDP

    problem = DiscreteDP(-cost, rows, discount)

    def run() -> Floats:
        values: Floats = problem.solve(method="policy_iteration").v
        return -values

    return run


def toolbox_endless(rows: Floats, cost: Floats, discount: float) -> Callable[[], Floats]:
    """The same in pymdptoolbox, whose constructor checks the problem and chooses the first policy each time."""
    by_action = np.ascontiguousarray(rows.transpose(1, 0, 2))

    def run() -> Floats:
        with redirect_stdout(StringIO()):
            problem = mdptoolbox.mdp.PolicyIteration(by_action, -cost, discount)
            problem.run()
        return -np.array(problem.V)

    return run


def toolbox_average(rows: Floats, cost: Floats, accuracy: float) -> Callable[[], float]:
    """Relative value iteration of pymdptoolbox, to within an accuracy; the least average cost."""
    by_action = np.ascontiguousarray(rows.transpose(1, 0, 2))

    def run() -> float:
        with redirect_stdout(StringIO()):
            problem = mdptoolbox.mdp.RelativeValueIteration(by_action, -cost, accuracy, max_iter=100_000)
            problem.run()
        return -float(problem.average_reward)

    return run


def csr_sweep(matrix: Any, costs: Costs) -> Callable[[], Floats]:
    """A batched sweep with scipy's CSR product, the batch last in memory; values `[n, s]` of the first step."""
    n, steps, states, actions = costs.shape
    batch_last = np.ascontiguousarray(costs.transpose(1, 2, 3, 0))  # [h, s, a, n]
    values = np.empty((steps, states, n))
    chosen = np.empty((steps, states, n), dtype=np.int32)

    def choose(q: Floats, best: Floats, action: Any) -> None:
        best[...] = q[:, 0]
        action[...] = 0
        for a in range(1, actions):
            better = q[:, a] < best
            np.copyto(best, q[:, a], where=better)
            np.copyto(action, a, where=better)

    def run() -> Floats:
        choose(batch_last[-1], values[-1], chosen[-1])
        for h in range(steps - 2, -1, -1):
            q = (matrix @ values[h + 1]).reshape(states, actions, n)
            q += batch_last[h]
            choose(q, values[h], chosen[h])
        first: Floats = values[0].T
        return first

    return run


def numpy_evi(box: BernsteinBox, cost: Floats) -> Callable[[], Floats]:
    """Extended value iteration: one sort a step, then cumulative sums over all rows; the values `[h, s]`."""
    steps, states, actions = box.shape
    lower, width = next_state_first(box.lower), next_state_first(box.upper - box.lower)
    budget = (1.0 - box.lower.sum(axis=-1)).reshape(steps, -1)
    values = np.empty((steps, states))
    chosen = np.empty((steps, states), dtype=np.int64)

    def run() -> Floats:
        q = cost[-1]
        for h in range(steps - 1, -1, -1):
            chosen[h] = q.argmin(axis=1)
            values[h] = q.min(axis=1)
            if h > 0:
                later = _least(lower[h - 1], width[h - 1], budget[h - 1], values[h])
                q = cost[h - 1] + later.reshape(states, actions)
        return values

    return run


def numpy_reach(box: BernsteinBox, policy: Policies, initial: int, step: int) -> Callable[[int], float]:
    """Comp-UOB for one state of a step."""
    lower, width = next_state_first(box.lower), next_state_first(box.upper - box.lower)
    budget = (1.0 - box.lower.sum(axis=-1)).reshape(len(lower), -1)

    def run(state: int) -> float:
        reach = np.zeros(box.shape[1])
        reach[state] = 1.0
        for h in range(step - 1, -1, -1):
            expected = -_least(lower[h], width[h], budget[h], -reach)
            reach = np.einsum("sa,sa->s", policy[h], expected.reshape(policy[h].shape))
        return float(reach[initial])

    return run


def numpy_reach_all(box: BernsteinBox, policy: Policies, initial: int) -> Callable[[], Floats]:
    """Comp-UOB for all pairs `[h, s, a]`: the states of one step are swept together."""
    steps, states, actions = box.shape
    lower, width = next_state_first(box.lower), next_state_first(box.upper - box.lower)
    budget = (1.0 - box.lower.sum(axis=-1)).reshape(steps, -1)

    def back(h: int, reach: Floats) -> Floats:
        order = np.argsort(-reach, axis=1)  # [target, y]
        room = width[h][order]  # [target, y, s*a]
        spent_before = np.cumsum(room, axis=1) - room
        spent = np.clip(budget[h] - spent_before, 0.0, room)
        ranked = np.take_along_axis(reach, order, axis=1)
        expected = reach @ lower[h] + (ranked[:, None, :] @ spent)[:, 0]
        before: Floats = np.einsum("sa,msa->ms", policy[h], expected.reshape(-1, states, actions))
        return before

    def run() -> Floats:
        visits = np.empty(box.shape)
        for step in range(steps):
            reach = np.eye(states)
            for h in range(step - 1, -1, -1):
                reach = back(h, reach)
            visits[step] = policy[step] * reach[:, initial, None]
        return visits

    return run


def scipy_linprog(domain: MarkovPolicies) -> Callable[[Costs], float]:
    """The occupancy program by `scipy.optimize.linprog`, its rows prepared."""
    rows = polytope(domain)

    def run(costs: Costs) -> float:
        solved = linprog(costs.reshape(-1), A_eq=rows.matrix, b_eq=rows.row_lower, method="highs")
        assert solved.fun is not None
        return float(solved.fun)

    return run


def highs_cold(domain: MarkovPolicies) -> Callable[[Costs], float]:
    """The occupancy program in HiGHS with its default settings; the model stays, the basis goes."""
    rows = polytope(domain)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows.matrix.shape
    model.col_cost_, model.col_lower_ = np.zeros(model.num_col_), np.zeros(model.num_col_)
    model.col_upper_ = np.full(model.num_col_, highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = rows.row_lower, rows.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = rows.matrix.indptr, rows.matrix.indices
    model.a_matrix_.value_ = rows.matrix.data
    highs.passModel(model)
    columns = np.arange(rows.n_pairs, dtype=np.int32)

    def run(costs: Costs) -> float:
        highs.clearSolver()
        highs.changeColsCost(rows.n_pairs, columns, costs.reshape(-1))
        highs.run()
        np.asarray(highs.getSolution().col_value)
        return float(highs.getInfo().objective_function_value)

    return run


def _least(lower: Floats, width: Floats, budget: Floats, values: Floats) -> Floats:
    """Least expectation `[s*a]` over rows `[y, s*a]`."""
    order = np.argsort(values)
    room = width[order]
    spent = np.cumsum(room, axis=0)
    spent -= room
    np.subtract(budget, spent, out=spent)
    np.clip(spent, 0.0, room, out=spent)
    return values @ lower + values[order] @ spent
