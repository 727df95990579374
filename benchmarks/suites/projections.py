"""Projections, other regularizers, and learners on them: Newton against cvxpy, DO-REPS against PyNOL."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, cycle
from time import process_time

import numpy as np

import amdp
from amdp import Kernel, MarkovPolicies, Projector
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import FullInformation
from amdp.algorithms.occupancy import moving
from amdp.algorithms.occupancy.moving import FixedShare
from amdp.arrays import Floats
from amdp.model.segments import NOWHERE, Shape
from amdp.oracles.projection.certificate import box_residual, flow_residual, objective
from benchmarks import episodes, worlds
from benchmarks.peers_projections import Configuration, Ensemble, Project, RegularizedWriter
from benchmarks.processes import run_fresh
from benchmarks.results import Row, at_least, faster
from benchmarks.timing import Call, Effort, side_by_side

Rows = Iterator[Row]

SEED = 20_260
RATE = 0.1
KERNELS: tuple[tuple[Shape, float], ...] = (((5, 5, 3), 120.0), ((10, 10, 4), 80.0), ((20, 30, 4), 40.0))
BOXES: tuple[tuple[Shape, float], ...] = (((5, 5, 3), 120.0), ((10, 10, 4), 300.0), ((10, 20, 4), 500.0))
LARGE: Shape = (20, 100, 4)
EXACT = 1e-8
REGULARIZERS: dict[str, amdp.Regularizer] = {
    "Tsallis entropy": amdp.Tsallis(1.0),
    "log-barrier": amdp.LogBarrier(1.0),
    "Tsallis entropy and log-barrier": amdp.Tsallis(1.0) + amdp.LogBarrier(0.1),
    "entropy and log-barrier": amdp.NegativeEntropy(1.0) + amdp.LogBarrier(0.1),
}
WAYS = [
    Configuration("entr", "Clarabel, tight"),
    Configuration("kl_div", "Clarabel, tight"),
    Configuration("entr", "Clarabel"),
    Configuration("kl_div", "Clarabel"),
    Configuration("kl_div", "Clarabel", anew=True),
    Configuration("kl_div", "Clarabel, tight", anew=True),
    Configuration("kl_div", "SCS"),
]


def kernels(effort: Effort) -> Rows:
    """Steps of O-REPS, known kernel: the next point is the last measure after one more loss."""
    for shape, goal in KERNELS:
        yield from _against_cvxpy("newton, kernel", MarkovPolicies(_kernel(shape)), goal, effort)


def boxes(effort: Effort) -> Rows:
    """Steps of UOB-REPS over a box of about a hundred visits a row."""
    for shape, goal in BOXES:
        yield from _against_cvxpy("newton, box", MarkovPolicies(worlds.box(_kernel(shape))), goal, effort)


def large(effort: Effort) -> Rows:
    """A hundred states: one call of cvxpy, whose first call includes the compilation of its problem."""
    shape = LARGE if effort.seconds else (5, 20, 4)
    domain = MarkovPolicies(_kernel(shape))
    projector, points = amdp.bind_projection("newton", domain), _points(domain, 6)
    times = side_by_side({"newton": _walking(projector.project, points)}, effort)
    way = Configuration("entr", "Clarabel, tight")
    theirs, seconds = _once(way.bind(domain), points[0])
    note = f"one call; {_errors(domain, projector, points[0], theirs)}"
    ours = times.median("newton")
    sizes, goal = _sizes(shape), at_least(50.0)
    yield Row("newton, kernel", str(way), ours, seconds, "s", sizes, seconds / ours, "theirs / ours", None, goal, note)


def memory(effort: Effort) -> Rows:
    """The peak of a fresh process that projects, beside a dense matrix over all prices, which is never made."""
    shape = LARGE if effort.seconds else (5, 20, 4)
    _, printed = run_fresh(_PEAK.format(shape=shape, seed=SEED))
    before, peak = (1024.0 * float(figure) for figure in printed.split())
    steps, states, _ = shape
    dense = 8.0 * (steps * states) ** 2
    note = f"beyond the {before / 1e6:.0f} MB that the process held with the kernel and the compiled code"
    yield Row(
        "newton, memory", "a dense (HS)x(HS) matrix", max(0.0, peak - before), dense, "B", _sizes(shape), note=note
    )


def sparse(effort: Effort) -> Rows:
    """Sparse kernels of many states: no peer takes part."""
    for states in (1000, 5000) if effort.seconds else (200,):
        rng = np.random.default_rng(SEED)
        matrix = worlds.sparse_rows(states, 4, 4, rng)
        domain = MarkovPolicies(amdp.SparseKernel.homogeneous(matrix, 10))
        projector = amdp.bind_projection("newton", domain)
        times = side_by_side({"newton": _walking(projector.project, _points(domain, 4))}, effort)
        took = times.median("newton")
        yield Row("newton, sparse kernel", "itself", took, took, sizes=_sizes(domain.shape), note="4 successors a row")


def grid(effort: Effort) -> Rows:
    """The loop-free 10x10 grid of PyNOL's experiment: a new problem each round, and no occupancy below 1e-3."""
    domain = MarkovPolicies(_loop_free_grid(10, 0.9))
    projector, points = amdp.bind_projection("newton", domain), _points(domain, 6)
    way = Configuration("kl_div", "Clarabel", anew=True, floor=1e-3)
    project = way.bind(domain)
    calls: dict[str, Call] = {"newton": _walking(projector.project, points), str(way): _walking(project, points)}
    times = side_by_side(calls, effort)
    note = f"as PyNOL writes it, floor 1e-3; {_errors(domain, projector, points[0], project(points[0]))}"
    yield faster("newton, loop-free grid", _sizes(domain.shape), times, "newton", str(way), at_least(100.0), note)


def regularized(effort: Effort) -> Rows:
    """Rounds of leaders with other regularizers than entropy: one more loss each time, no warm start.

    SCS takes longer than Clarabel here and is less exact at its own tolerances, and has no part in it.
    """
    shape = (10, 10, 4) if effort.seconds else (3, 3, 2)
    domain = MarkovPolicies(_kernel(shape))
    rng = np.random.default_rng(SEED + 2)
    costs = list(np.cumsum(rng.random((6, *shape)), axis=0))
    for words, chosen in REGULARIZERS.items():
        solver = amdp.bind_regularized("newton", domain)
        peers = {way: RegularizedWriter(domain, chosen.weights, way) for way in ("Clarabel", "Clarabel, tight")}
        best = min(peers, key=lambda way: _seconds_if_exact(peers[way], costs, solver, chosen))
        found, theirs = solver.minimize(costs[0], chosen), peers[best].minimize(costs[0])
        off = abs(_regularized_cost(costs[0], chosen, theirs) - found.objective)
        calls: dict[str, Call] = {
            "newton": _walking(partial(solver.minimize, regularizer=chosen), costs),
            f"cvxpy, {best}": _walking(peers[best].minimize, costs),
        }
        note = f"the quickest that is exact to 1e-8; theirs: objective off {off:.0e}; ours: gap {found.gap:.0e}"
        times = side_by_side(calls, effort)
        ours, other = calls
        yield faster(f"newton, {words}", _sizes(shape), times, ours, other, at_least(50.0), note)


def _seconds_if_exact(
    peer: RegularizedWriter, costs: list[Floats], solver: amdp.RegularizedSolver, chosen: amdp.Regularizer
) -> float:
    """The time of a second round of calls; infinite where objectives are not right to 1e-8."""
    for cost in costs:
        ours = solver.minimize(cost, chosen).objective
        if not abs(_regularized_cost(cost, chosen, peer.minimize(cost)) - ours) <= EXACT * max(1.0, abs(ours)):
            return np.inf
    return sum(_once(peer.minimize, cost)[1] for cost in costs)


def _regularized_cost(cost: Floats, chosen: amdp.Regularizer, measure: Floats) -> float:
    return float((cost * measure).sum() + chosen.values(measure[measure > 0.0]).sum())


def do_reps(effort: Effort) -> Rows:
    """A round of DO-REPS on that grid, with PyNOL's losses and its six rates: ours mixes, theirs keeps a floor."""
    domain, rounds = MarkovPolicies(_loop_free_grid(10, 0.9)), 1000
    rates = [rounds**-0.5 * 2.0**i for i in range(6)]
    way = Configuration("kl_div", "Clarabel", anew=True, floor=1e-3)
    peer = Ensemble(way, domain, rates, rounds**-0.5)
    tables = _changing(domain.shape, 20)
    shares = tuple(FixedShare(rate, WholeTable(), share=1.0 / (rounds + 1)) for rate in rates)
    calls: dict[str, Call] = {
        "do-reps": _rounds(moving.Ensemble(shares, rounds**-0.5), domain, tables),
        f"PyNOL's way: {way}": _walking(peer.round, tables),
    }
    times = side_by_side(calls, effort)
    ours, theirs = calls
    yield faster("do-reps, loop-free grid", _sizes(domain.shape), times, ours, theirs, at_least(50.0), "a whole round")


CASES: dict[str, Callable[[Effort], Rows]] = {
    "kernels": kernels,
    "boxes": boxes,
    "large": large,
    "memory": memory,
    "sparse": sparse,
    "grid": grid,
    "regularized": regularized,
    "do-reps": do_reps,
    "episodes": episodes.known,
    "episodes-in-blocks": episodes.in_blocks,
    "episodes-unknown": episodes.unknown,
}
BY_NAME_ONLY = ("episodes", "episodes-in-blocks", "episodes-unknown")  # minutes; their page is docs/ftpl-or-omd.md

_PEAK = """
import pathlib
import numpy as np
import amdp
from benchmarks import episodes, worlds

def resident(key):
    status = pathlib.Path("/proc/self/status").read_text()
    return next(line.split()[1] for line in status.splitlines() if line.startswith(key))

shape, rng = {shape}, np.random.default_rng({seed})
small = amdp.MarkovPolicies(worlds.kernel((2, 3, 2), rng))
amdp.bind_projection("newton", small).project(np.zeros((2, 3, 2)))
domain = amdp.MarkovPolicies(worlds.kernel(shape, rng))
projector = amdp.bind_projection("newton", domain)
before = resident("VmRSS")
projector.project(-rng.random(shape))
print(before, resident("VmHWM"))
"""


def _against_cvxpy(name: str, domain: MarkovPolicies, goal: float, effort: Effort) -> Rows:
    """Every configuration once for its accuracy; then the best of them, and the quickest of all, against Newton."""
    projector, points = amdp.bind_projection("newton", domain), _points(domain, 6)
    tried = [way for way in WAYS if _is_worth_a_try(way, domain)] if effort.seconds else WAYS[:1]
    bound = {way: way.bind(domain) for way in tried}
    exact, seconds = {}, {}
    for way, project in bound.items():
        project(points[0])
        measure, seconds[way] = _once(project, points[1])
        exact[way] = _is_exact(domain, projector, points[1], measure)
    quickest = min(tried, key=seconds.__getitem__)
    best = min([way for way in tried if exact[way]] or [quickest], key=seconds.__getitem__)
    calls: dict[str, Call] = {"newton": _walking(projector.project, points)}
    calls.update({str(way): _walking(bound[way], points) for way in {best, quickest}})
    times = side_by_side(calls, effort)
    for way in dict.fromkeys((best, quickest)):
        found = _errors(domain, projector, points[1], bound[way](points[1]))
        role = "the quickest that is exact to 1e-8" if way is best and exact[way] else "the quickest, less exact"
        promised = at_least(goal) if way is best else None
        yield faster(name, _sizes(domain.shape), times, "newton", str(way), promised, f"{role}; {found}")


def _is_worth_a_try(way: Configuration, domain: MarkovPolicies) -> bool:
    """With many states SCS takes seconds, and to write a problem over a box takes longer than to solve it."""
    writes_flows = way.anew and isinstance(domain.dynamics, amdp.BernsteinBox)
    return domain.shape[1] <= 10 or not (way.solver == "SCS" or writes_flows)


def _points(domain: MarkovPolicies, count: int) -> list[Floats]:
    """Logarithms of the points of so many steps of mirror descent."""
    rng = np.random.default_rng(SEED + 1)
    projector = amdp.bind_projection("newton", domain)
    at = projector.project(np.zeros(projector.point_shape))
    points = []
    for _ in range(count):
        loss = RATE * rng.random(domain.shape)
        points.append(at.log_measure - (loss if at.log_measure.ndim == 3 else loss[..., None]))
        at = projector.project(points[-1])
    return points


def _walking(project: Callable[[Floats], object], points: list[Floats]) -> Call:
    """A call that projects the next point each time."""
    path = cycle(chain(points, points[-2:0:-1]))
    return lambda: project(next(path))


def _changing(shape: Shape, count: int) -> list[Floats]:
    """Losses as in PyNOL's experiment: of the two actions of a state one is free; each table comes 50 times."""
    rng = np.random.default_rng(SEED + 2)
    free = rng.integers(shape[2], size=(count, *shape[:2]))
    return [table for table in 1.0 - np.eye(shape[2])[free] for _ in range(50)]


def _rounds(player: moving.Ensemble, domain: MarkovPolicies, tables: list[Floats]) -> Call:
    """A call that plays the next round."""
    rng = np.random.default_rng(SEED)
    state, path = player.start(domain, rng), cycle(tables)

    def call() -> object:
        nonlocal state
        policy, weights = state.draw(rng), player.weigh(state, NOWHERE, rng)
        state = player.learn(player.observe(state, NOWHERE), FullInformation.reveal(next(path), NOWHERE, weights))
        return policy

    return call


def _once(project: Project, point: Floats) -> tuple[Floats, float]:
    began = process_time()
    measure = project(point)
    return measure, process_time() - began


def _is_exact(domain: MarkovPolicies, projector: Projector, point: Floats, measure: Floats) -> bool:
    """Whether objective and residuals are right to 1e-8."""
    ours = projector.project(point)
    off, residual, _ = _error(domain, ours, point, measure)
    return off <= EXACT * max(1.0, abs(ours.objective)) and residual <= EXACT


def _errors(domain: MarkovPolicies, projector: Projector, point: Floats, measure: Floats) -> str:
    ours = projector.project(point)
    off, residual, far = _error(domain, ours, point, measure)
    proved = max(ours.flow_residual, ours.box_residual)
    return (
        f"theirs: objective off {off:.0e}, residual {residual:.0e}, measure off {far:.0e}; "
        f"ours: gap {ours.gap:.0e}, residual {proved:.0e}"
    )


def _error(domain: MarkovPolicies, ours: amdp.Projection, point: Floats, measure: Floats) -> tuple[float, float, float]:
    """Objective, residuals and largest entry by which a measure is off."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(0.0, measure))
    residual = max(flow_residual(domain, logs), box_residual(domain, logs))
    return abs(objective(logs, point) - ours.objective), residual, float(np.abs(measure - ours.measure).max())


def _kernel(shape: Shape) -> Kernel:
    return worlds.kernel(shape, np.random.default_rng(SEED))


def _loop_free_grid(side: int, success: float) -> Kernel:
    """A walk from corner to corner, right or down; state `i` of step `h` is the field in row `i`, column `h - i`."""
    steps = 2 * side - 2
    p = np.zeros((steps, side, 2, side))
    for h in range(steps):
        for row in range(max(0, h - side + 1), min(side - 1, h) + 1):
            may = (h - row < side - 1, row < side - 1)
            for action in (0, 1):
                wanted = (success if action == 0 else 1.0 - success) if all(may) else float(may[0])
                p[h, row, action, row] += wanted
                p[h, row, action, min(side - 1, row + 1)] += 1.0 - wanted
    return Kernel(p)


def _sizes(shape: Shape) -> dict[str, int]:
    steps, states, actions = shape
    return {"S": states, "A": actions, "H": steps}
