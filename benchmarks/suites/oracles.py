"""Planning oracles: backward induction, linear programs, boxes of kernels; time, memory, imports, compilation."""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import amdp
from amdp import Kernel, MarkovPolicies, Pairs, SparseKernel, one_hot
from amdp.arrays import Costs, Floats
from amdp.model.segments import Shape
from amdp.oracles.markov.cvxpy_program import CvxpyProgram
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.oracles.markov.pulp_program import PulpProgram
from amdp.oracles.solving import SolverPlanner
from benchmarks import peers, worlds
from benchmarks.processes import run_fresh
from benchmarks.results import Goal, Row, as_long, at_least, at_most, faster
from benchmarks.timing import Call, Effort, side_by_side

Rows = Iterator[Row]
Solve = Callable[[Costs], Any]

SEED = 20_260
SMALL: Shape = (10, 10, 4)  # steps, states, actions
MIDDLE: Shape = (20, 30, 4)
HEAVY = ("cvxpy", "pulp", "matplotlib", "pandas")


def batched(effort: Effort) -> Rows:
    """A batch of backward inductions against nothing but its matrix products."""
    for shape, ceiling in ((SMALL, 1.5), ((20, 50, 4), 1.15), ((50, 200, 5), 1.15)):
        rng = np.random.default_rng(SEED)
        kernel = worlds.kernel(shape, rng)
        planner = amdp.bind("dp", MarkovPolicies(kernel))
        for n in (64, 256):
            costs = worlds.by_step(n, shape, rng)
            contestants: dict[str, Call] = {
                "step-major": partial(planner.minimize, costs),
                "C order": partial(planner.minimize, np.ascontiguousarray(costs)),
                "dgemm": peers.dgemm(kernel, n, rng),
            }
            times = side_by_side(contestants, effort)
            sizes = _sizes(shape, n)
            yield as_long("dp, batch, step-major", sizes, times, "step-major", "dgemm", at_most(ceiling))
            yield as_long("dp, batch, C order", sizes, times, "C order", "dgemm")


def single(effort: Effort) -> Rows:
    """One backward induction with the same rows and costs in each step, as the peers ask for."""
    for shape in ((5, 3, 2), SMALL, (20, 50, 4), (50, 200, 5)):
        steps, states, actions = shape
        rng = np.random.default_rng(SEED)
        rows, cost = worlds.rows(states, actions, rng), rng.random((states, actions))
        costs = np.array(np.broadcast_to(cost, (1, *shape)))
        planner = amdp.bind("dp", MarkovPolicies(Kernel.homogeneous(rows, steps)))
        others = {
            "QuantEcon, prebuilt": peers.quantecon(rows, cost, steps),
            "pymdptoolbox, run only": peers.toolbox_run(rows, cost, steps),
            "pymdptoolbox": peers.toolbox(rows, cost, steps),
        }
        for other in others.values():
            _agree(planner.minimize(costs).values[0, 0], other())
        ours: dict[str, Call] = {"dp": partial(planner.minimize, costs), "anew": _anew(rows, costs)}
        times = side_by_side({**ours, **others}, effort)
        for name in others:
            yield faster("dp, one solve", _sizes(shape), times, "dp", name, at_least(1.0))
        yield faster("Kernel, bind and dp, one solve", _sizes(shape), times, "anew", "pymdptoolbox")


def sparse(effort: Effort) -> Rows:
    """A batch over sparse kernels against the same sweep with scipy's CSR product."""
    shape, n = (5, 10_000, 4), 64
    rng = np.random.default_rng(SEED)
    for kind, matrix in (("anywhere", worlds.sparse_rows(10_000, 4, 4, rng)), ("grid", worlds.grid_rows(100, rng))):
        planner = amdp.bind("dp", MarkovPolicies(SparseKernel.homogeneous(matrix, shape[0])))
        costs = worlds.by_step(n, shape, rng)
        by_csr = peers.csr_sweep(matrix, costs)
        _agree(planner.minimize(costs).values[:, 0], by_csr())
        contestants: dict[str, Call] = {
            "step-major": partial(planner.minimize, costs),
            "C order": partial(planner.minimize, np.ascontiguousarray(costs)),
            "scipy CSR": by_csr,
        }
        times = side_by_side(contestants, effort)
        for layout in ("step-major", "C order"):
            name = f"dp, sparse, {layout}"
            note = f"4 successors a row: {kind}"
            yield faster(name, _sizes(shape, n), times, layout, "scipy CSR", at_least(2.0), note)


def hot_lp(effort: Effort) -> Rows:
    """The occupancy program after a small change of costs, against those who begin anew or write it anew."""
    ours = "lp, hot, small change"
    goals = {"lp, cold": 8.0, "HiGHS defaults, cold": 8.0, "linprog": 8.0, "cvxpy HIGHS": 20.0, "cvxpy CLARABEL": 20.0}
    for shape in (SMALL, MIDDLE):
        rng = np.random.default_rng(SEED)
        domain = MarkovPolicies(worlds.kernel(shape, rng))
        costs = worlds.drifting(shape, 60, rng)
        solves: dict[str, Solve] = {
            ours: amdp.bind("lp", domain).minimize,
            "lp, cold": _cold(domain),
            "HiGHS defaults, cold": peers.highs_cold(domain),
            "linprog": peers.scipy_linprog(domain),
            "cvxpy HIGHS": CvxpyProgram("HIGHS").bind(domain).minimize,
            "cvxpy CLARABEL": CvxpyProgram("CLARABEL").bind(domain).minimize,
        }
        if shape == SMALL:
            solves["PuLP, written anew"] = _rewritten(domain)
        for solve in solves.values():
            _agree(_objective(solve(costs[0])), _objective(amdp.bind("dp", domain).minimize(costs[0])))
        times = side_by_side({name: _walking(solve, costs) for name, solve in solves.items()}, effort)
        best = min(("cvxpy HIGHS", "cvxpy CLARABEL"), key=times.median)
        for peer in list(solves)[1:]:
            promised = shape == MIDDLE or not peer.endswith("cold")
            goal = at_least(goals.get(peer, 100.0)) if promised else None
            note = "the faster of cvxpy's two" if peer == best else ""
            yield faster(ours, _sizes(shape), times, ours, peer, goal, note)


def fresh_lp(effort: Effort) -> Rows:
    """The same when all costs change: no promise."""
    ours = "lp, hot, full change"
    for shape in (SMALL, MIDDLE):
        rng = np.random.default_rng(SEED)
        domain = MarkovPolicies(worlds.kernel(shape, rng))
        costs = worlds.fresh(shape, 30, rng)
        solves: dict[str, Solve] = {
            ours: amdp.bind("lp", domain).minimize,
            "lp, cold": _cold(domain),
            "HiGHS defaults, cold": peers.highs_cold(domain),
            "dp": amdp.bind("dp", domain).minimize,
        }
        times = side_by_side({name: _walking(solve, costs) for name, solve in solves.items()}, effort)
        for peer in ("lp, cold", "HiGHS defaults, cold"):
            yield faster(ours, _sizes(shape), times, ours, peer)
        yield as_long(ours, _sizes(shape), times, ours, "dp")


def box(effort: Effort) -> Rows:
    """Extended value iteration against the known kernel, numpy, and the linear program over the box."""
    for shape, floor in ((SMALL, 20.0), ((20, 50, 4), 8.0), ((20, 100, 4), None)):
        rng = np.random.default_rng(SEED)
        kernel = worlds.kernel(shape, rng)
        around = worlds.box(kernel)
        costs = worlds.drifting(shape, 20, rng)
        solves: dict[str, Solve] = {
            "box": amdp.bind("dp", MarkovPolicies(around)).minimize,
            "dp, known kernel": amdp.bind("dp", MarkovPolicies(kernel)).minimize,
        }
        if shape == SMALL:
            solves["lp over the box, hot"] = amdp.bind("lp", MarkovPolicies(around)).minimize
            _agree(*(_objective(solves[name](costs[0])) for name in ("box", "lp over the box, hot")))
        calls = {name: _walking(solve, costs) for name, solve in solves.items()}
        calls["numpy"] = peers.numpy_evi(around, costs[0][0])
        _agree(solves["box"](costs[0]).values[0], calls["numpy"]())
        times = side_by_side(calls, effort)
        sizes = _sizes(shape)
        yield as_long("dp over a box", sizes, times, "box", "dp, known kernel", at_most(5.0))
        yield faster("dp over a box", sizes, times, "box", "numpy", None if floor is None else at_least(floor))
        if shape == SMALL:
            yield faster("dp over a box", sizes, times, "box", "lp over the box, hot", at_least(300.0))


def visits(effort: Effort) -> Rows:
    """Greatest visits (Comp-UOB) of a deterministic policy, one pair and all pairs."""
    for shape in (SMALL, (10, 20, 4)):
        steps, states, actions = shape
        rng = np.random.default_rng(SEED)
        around = worlds.box(worlds.kernel(shape, rng))
        policies = one_hot(rng.integers(actions, size=(1, steps, states)), actions)
        last = Pairs(np.array([steps - 1]), np.array([0]), policies[0, -1, 0].argmax(keepdims=True))
        contestants: dict[str, Call] = {
            "one": partial(around.greatest_visits, policies, 0, last),
            "numpy, one": partial(peers.numpy_reach(around, policies[0], 0, steps - 1), 0),
            "all": partial(around.greatest_visits, policies, 0, Pairs.all(shape)),
            "numpy, all": peers.numpy_reach_all(around, policies[0], 0),
        }
        _agree(contestants["one"](), contestants["numpy, one"]())
        _agree(contestants["all"](), contestants["numpy, all"]())
        times = side_by_side(contestants, effort)
        yield faster("greatest visits, one pair", _sizes(shape), times, "one", "numpy, one")
        yield faster("greatest visits, all pairs", _sizes(shape), times, "all", "numpy, all")


def imports(effort: Effort) -> Rows:
    """`import amdp` in a fresh interpreter, and which heavy packages came with it."""
    _, loaded = run_fresh(f"import sys, amdp; print(*(name for name in {HEAVY} if name in sys.modules))")
    rounds = [(run_fresh("import amdp")[0], run_fresh("pass")[0]) for _ in range(effort.rounds)]
    ours, bare = (median(seconds) for seconds in zip(*rounds, strict=True))
    note = f"wall, whole process; of {', '.join(HEAVY)} it loads {loaded or 'none'}"
    yield Row("import amdp", "an empty interpreter", ours, bare, goal=Goal("at most", 0.4, " s"), note=note)


def memory(effort: Effort) -> Rows:
    """The peak of a fresh process that solves a large sparse batch, beside what it must hold anyway."""
    n, shape = (64, (50, 10_000, 4)) if effort.seconds else (4, (5, 1_000, 4))
    steps, states, actions = shape
    _, printed = run_fresh(_PEAK.format(n=n, shape=shape, seed=SEED))
    before, peak = (1024.0 * float(figure) for figure in printed.split())
    held = float(n * steps * states * (8 * actions + 8 + 4))
    sizes = _sizes(shape, n)
    note = f"peak of the process; it stood at {before / 1e6:.0f} MB before the costs were made"
    name, ratio = "dp, sparse, memory", peak / held
    yield Row(name, "costs, values, actions", peak, held, "B", sizes, ratio, "ours / theirs", note=note)
    beyond, dense = max(0.0, peak - before - held), 8.0 * states * actions * states
    note = "what the solve took beyond these, and what one dense array [s, a, y] would take"
    yield Row(name, "a dense kernel", beyond, dense, "B", sizes, note=note)


def compilation(effort: Effort) -> Rows:
    """First calls of the compiled kernels in a fresh process, with an empty cache (theirs) and with a filled one."""
    for name, code in (("first dp over a kernel", _FIRST_SOLVE), ("first calls of all kernels", _FIRST_CALLS)):
        with TemporaryDirectory() as folder:
            empty, filled = (float(run_fresh(code, {"NUMBA_CACHE_DIR": folder})[1]) for _ in range(2))
        note = "processor seconds; theirs: compiled anew, ours: read from the cache"
        yield Row(name, "an empty cache", filled, empty, ratio=empty / filled, ratio_of="theirs / ours", note=note)


CASES: dict[str, Callable[[Effort], Rows]] = {
    "batched": batched,
    "single": single,
    "sparse": sparse,
    "hot-lp": hot_lp,
    "fresh-lp": fresh_lp,
    "box": box,
    "visits": visits,
    "imports": imports,
    "memory": memory,
    "compilation": compilation,
}

# `getrusage` begins with the peak of the parent that started the process; the status file knows this process alone.
_PEAK = """
import pathlib
import resource
import numpy as np
import amdp
from benchmarks import worlds

def resident(key):
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return next(line.split()[1] for line in status.read_text().splitlines() if line.startswith(key))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

n, shape, rng = {n}, {shape}, np.random.default_rng({seed})
matrix = worlds.sparse_rows(shape[1], shape[2], 4, rng)
planner = amdp.bind("dp", amdp.MarkovPolicies(amdp.SparseKernel.homogeneous(matrix, shape[0])))
planner.minimize(np.zeros((2, *shape)))
before = resident("VmRSS")
costs = amdp.step_major(n, shape)
costs[...] = 0.5
plans = planner.minimize(costs)
print(before, resident("VmHWM"))
"""

_FIRST_SOLVE = """
import time
import numpy as np
import amdp

began = time.process_time()
kernel = amdp.Kernel(np.full((3, 4, 2, 4), 0.25))
amdp.bind("dp", amdp.MarkovPolicies(kernel)).minimize(np.zeros((2, 3, 4, 2)))
print(time.process_time() - began)
"""

_FIRST_CALLS = """
import time
import numpy as np
import amdp
from benchmarks import worlds

began = time.process_time()
rng = np.random.default_rng(0)
shape = (3, 4, 2)
kernel = worlds.kernel(shape, rng)
sparse = amdp.SparseKernel([kernel.matrix(h) for h in range(3)])
box = worlds.box(kernel)
costs = rng.random((2, *shape))
for dynamics in (kernel, sparse, box):
    plans = amdp.bind("dp", amdp.MarkovPolicies(dynamics)).minimize(costs)
    amdp.evaluate(amdp.MarkovPolicies(dynamics), plans.actions, costs)
    dynamics.least_expectation(0, rng.random((2, 4)))
box.greatest_visits(amdp.one_hot(plans.actions, 2), 0, amdp.Pairs.all(shape))
print(time.process_time() - began)
"""


def _sizes(shape: Shape, n: int | None = None) -> dict[str, int]:
    steps, states, actions = shape
    sizes = {"S": states, "A": actions, "H": steps}
    return sizes if n is None else {**sizes, "n": n}


def _agree(ours: object, theirs: object) -> None:
    """Whoever is timed must have answered the same question."""
    np.testing.assert_allclose(np.ravel(np.asarray(ours)), np.ravel(np.asarray(theirs)), rtol=1e-6, atol=1e-12)


def _walking(solve: Solve, costs: list[Costs]) -> Call:
    """A call that solves for the next costs each time."""
    path = worlds.there_and_back(costs)
    return lambda: solve(next(path))


def _objective(answer: Any) -> float:
    return float(answer.objective[0]) if isinstance(answer, amdp.Plans) else float(answer)


def _anew(rows: Floats, costs: Costs) -> Call:
    steps = costs.shape[1]
    return lambda: BackwardInduction().bind(MarkovPolicies(Kernel.homogeneous(rows, steps))).minimize(costs)


def _cold(domain: MarkovPolicies) -> Callable[[Costs], amdp.Plans]:
    planner = amdp.bind("lp", domain)
    assert isinstance(planner, SolverPlanner)

    def solve(costs: Costs) -> amdp.Plans:
        planner.solver.restart()
        return planner.minimize(costs)

    return solve


def _rewritten(domain: MarkovPolicies) -> Callable[[Costs], amdp.Plans]:
    return lambda costs: PulpProgram().bind(domain).minimize(costs)
