"""Several models as one mixed-integer program: an occupancy measure for each model, and choices that they share.

    min sum_m w_m <c_m, x_m>   over occupancy measures x_m of the models, with
    x_m[h, s, a] <= M_m[h, s] choice[d(h, s), a],   sum_a choice[d, a] = 1,   choice in {0, 1},

where `M_m[h, s]` is the greatest chance of a state in model `m`, and `d(h, s)` the decision made there. What a solver
claims about it is examined: its policy is evaluated, and its bound counts if branch and bound confirms it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
import scipy

from amdp.arrays import Floats, one_hot
from amdp.model.domains import MarkovPolicies
from amdp.model.several_models import MultiModel
from amdp.model.transitions import SingleKernel
from amdp.oracles.multi_model.branch_and_bound import TreeSearch, split
from amdp.oracles.multi_model.planning import Choices, Found, Problem, descended
from amdp.oracles.polytope import polytope
from amdp.oracles.stationary.formulations import LEAST_CAP, Formulation
from amdp.oracles.subprocesses import SubprocessEnded, run_in_subprocess

SOLVER_TIME = 0.9  # share of the time for the solver; the rest is to examine what it claims
GRACE_SECONDS = 1.0  # after its limit, until a solver in another process is ended
REJECTION_TOLERANCE = 1e-9  # of the size of a problem: a bound that exceeds the cost of a policy by less is cut
CONFIRMATION_TOLERANCE = 1e-11  # of the same
EXAMINED_NODES = 20_000


@dataclass(frozen=True, eq=False)
class ProgramSearch:
    """One program for each problem, solved in another process by `solve`, for as long as `seconds`."""

    solve: Callable[..., Any]  # of a formulation, settings, whether someone listens, seconds, and a function to tell
    settings: Any  # of the solver

    def __call__(self, problem: Problem, end: float) -> Found:
        """The policy of the solver or of a descent, whichever is cheaper, and a bound that was examined."""
        incumbent, value = descended(problem, split(problem, problem.undecided).policy, end)
        left = end - perf_counter()
        if left <= 0:
            return Found(incumbent, problem.relaxed, note="stopped at its limit of time")
        try:
            asked = program(problem, incumbent), self.settings, False, SOLVER_TIME * left
            answer = run_in_subprocess(self.solve, *asked, seconds=left + GRACE_SECONDS)
        except SubprocessEnded:
            return Found(incumbent, problem.relaxed, note="HiGHS ended without an answer")
        if answer.choices is not None:
            chosen = problem.undecided.copy()
            chosen[chosen < 0] = answer.choices.reshape(-1, problem.domain.shape[2]).argmax(axis=1)
            incumbent = chosen if problem.values(chosen[None])[0] < value else incumbent
        note = "stopped at its limit of time" if answer.note is None else answer.note
        return examined(problem, Found(incumbent, answer.bound, answer.nodes, note), end)


def examined(problem: Problem, claim: Found, end: float) -> Found:
    """The cheapest policy known, and the claimed bound if it is confirmed; otherwise one that is proved here."""
    if claim.bound <= problem.relaxed:
        return claim._replace(bound=problem.relaxed)
    other = TreeSearch(EXAMINED_NODES, known=claim.choices)(problem, end)
    cost = float(problem.values(other.choices[None])[0])  # at most that of the claimed policy, from which it began
    if claim.bound > cost + REJECTION_TOLERANCE * problem.size:
        note = f"rejected the bound of HiGHS: it claims {claim.bound:.10g} (scaled), and a policy costs {cost:.10g}"
        return claim._replace(choices=other.choices, bound=other.bound, note=note)
    bound = min(claim.bound, cost)
    if other.bound >= bound - CONFIRMATION_TOLERANCE * problem.size:
        return claim._replace(choices=other.choices, bound=bound)
    doubt = f"the bound of HiGHS was not confirmed in {other.nodes} nodes"
    return claim._replace(choices=other.choices, bound=other.bound, note=claim.note or doubt)


def program(problem: Problem, start: Choices) -> Formulation:
    """The program of a problem; it begins at a policy."""
    domain, decisions = problem.domain, problem.domain.open_decisions
    actions, n_choices = domain.shape[2], len(decisions) * domain.shape[2]
    models = list(zip(domain.kernels, domain.models, strict=True))
    measures = [polytope(MarkovPolicies(kernel, model.initial)) for kernel, model in models]
    caps = [_caps(domain, greatest_chances(kernel, model.initial)) for kernel, model in models]
    balance = scipy.sparse.block_diag([measure.matrix for measure in measures])
    n_mass = balance.shape[1]
    one_action = scipy.sparse.kron(scipy.sparse.eye_array(len(decisions)), np.ones((1, actions)))
    matrix = scipy.sparse.block_array(
        [
            [balance, None],
            [scipy.sparse.eye_array(n_mass), -scipy.sparse.vstack(caps)],
            [None, one_action],
        ]
    )
    flow = np.concatenate([measure.row_lower for measure in measures])
    own_costs = [weight * cost.reshape(-1) for weight, cost in zip(problem.weights, problem.costs, strict=True)]
    policy = one_hot(domain.by_place(start[None]), actions)
    masses = [kernel.occupancy(policy, model.initial).reshape(-1) for kernel, model in models]
    return Formulation(
        scipy.sparse.csc_array(matrix),
        np.concatenate([flow, np.full(n_mass, -inf), np.ones(len(decisions))]),
        np.concatenate([flow, np.zeros(n_mass), np.ones(len(decisions))]),
        np.concatenate([*own_costs, np.zeros(n_choices)]),
        np.zeros(n_mass + n_choices),
        np.concatenate([np.full(n_mass, inf), np.ones(n_choices)]),
        n_choices,
        np.concatenate([*masses, one_hot(start[decisions], actions).reshape(-1)]),
        (),  # nobody exports it: no names
        (),
    )


def greatest_chances(kernel: SingleKernel, initial: int) -> Floats:
    """The greatest chance `[h, s]`, over all policies, of being in a state at a step."""
    steps, states, _ = kernel.shape
    chances = np.empty((steps, states))
    for step in range(steps):
        missed = -np.eye(states)  # [target, state]: minus the chance to be at the target
        for h in reversed(range(step)):
            missed = kernel.least_expectation(h, missed).min(axis=-1)
        chances[step] = -missed[:, initial]
    return chances


def _caps(domain: MultiModel, chances: Floats) -> Any:
    """`M[h, s]` at the choice of each pair, `[hsa, choice]`; a cap larger than needed is told from 0 by solvers."""
    actions, decisions = domain.shape[2], domain.open_decisions
    places = np.flatnonzero(np.isin(domain.decisions.reshape(-1), decisions))
    column = np.searchsorted(decisions, domain.decisions.reshape(-1)[places])
    cap = np.clip(chances.reshape(-1)[places], LEAST_CAP, 1.0)
    at_place = scipy.sparse.csr_array((cap, (places, column)), shape=(chances.size, len(decisions)))
    return scipy.sparse.kron(at_place, scipy.sparse.eye_array(actions))
