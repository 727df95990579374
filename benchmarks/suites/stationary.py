"""Exact stationary oracles: against HiGHS and against plain bounds, how far they go, and many solves of one kernel."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from statistics import median, quantiles
from time import process_time
from typing import Any, ClassVar, NamedTuple

import numpy as np
from highspy import HighsModelStatus
from numpy.typing import NDArray

import amdp
from amdp import Plan, Planner, Plans, SparseKernel, StationaryPolicies, Status, instances, kernels
from amdp.algorithms.streams.epochs import FtplTuning
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import Costs, Floats
from amdp.game.arenas import Continuing
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.domains import Domain
from amdp.model.segments import Shape
from amdp.oracles.highs import run
from amdp.oracles.stationary.branch_and_bound import BranchAndBound, TreeSearch
from amdp.oracles.stationary.chains import Chains, scaled_problems
from amdp.oracles.stationary.formulations import Rounded
from amdp.oracles.stationary.milp import MixedProgram, loaded
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import SearchClock
from benchmarks.results import Goal, Row, at_least, faster
from benchmarks.stationary_worlds import world
from benchmarks.timing import Call, Effort, Times, side_by_side

Rows = Iterator[Row]
Worlds = Iterator[tuple[StationaryPolicies, Floats]]

SEED = 20_265
INSTANCES = 11  # a row; with `--quick` two
HARD_INSTANCES = 3  # a row against peers that take seconds
FRONTIER_SEEDS = (101, 102, 103)  # one instance each; with `--quick` the first
FRONTIER_THREADS = 2
MEASURED = ("noise", "ftpl", "adversarial")  # kinds of losses
WAITED = 4.0  # times that by the clock, where other work takes the processor
PATIENCE = 5.0  # seconds that HiGHS may take
PLAIN = np.zeros(1)  # the only scale of averaging: none


def milp(effort: Effort) -> Rows:
    """`auto` against HiGHS alone with the best of three formulations, on sizes that it solves within its time."""
    cases = (
        ("dense", "noise", (50, 4, 2)),
        ("dense", "adversarial", (50, 6, 2)),
        ("sparse", "adversarial", (50, 6, 2)),
        ("grid", "noise", (50, 4, 2)),
        ("river", "ftpl", (50, 6, 2)),
        ("deterministic", "noise", (50, 6, 2)),
    )
    forms = ("occupancy", "aggregated", "value")
    patience = PATIENCE if effort.seconds else 1.0
    for family, losses, shape in cases:
        ratios, ours, theirs, unsolved = [], [], [], 0
        for domain, cost in islice(_instances(family, losses, shape, effort), HARD_INSTANCES):
            mine, plan = _timed("auto", domain, cost, repeats=20)
            claims = [_in_highs(MixedProgram(form), domain, cost, plan, patience) for form in forms]
            seconds = [claim.seconds for claim in claims if claim.is_done]
            if not seconds:
                unsolved += 1
                continue
            assert all(abs(claim.gap) <= 1e-4 for claim in claims if claim.is_done)
            ours.append(mine)
            theirs.append(min(seconds))
            ratios.append(theirs[-1] / mine)
        if not ratios:
            continue
        note = f"{losses}; HiGHS solved {len(ratios)} of {len(ratios) + unsolved} in {patience:g} s"
        yield Row(
            f"auto, {family}",
            "the fastest of three in HiGHS",
            median(ours),
            median(theirs),
            "s",
            _sizes(shape),
            median(ratios),
            "theirs / ours",
            _middle(ratios),
            at_least(100.0),
            note,
        )


def phases(effort: Effort) -> Rows:
    """How far below the best policy HiGHS proves that there is none, for costs in five phases; limit: a minute."""
    patience = 60.0 if effort.seconds else 1.0
    whole, kept = MixedProgram("phases"), MixedProgram("phases", last_steps=2)
    every_step = (MixedProgram(form) for form in ("occupancy", "aggregated", "value"))
    cases: list[tuple[str, Shape, tuple[MixedProgram, ...]]] = [
        (family, (5000, states, actions), (whole, kept) if states == 6 else (whole,))
        for states in (6, 9, 12)
        for family, actions in (("sparse", 3), ("grid", 4))
    ]
    cases.append(("grid", (200, 6, 4), (whole, kept, *every_step)))
    for family, shape, programs in cases:
        worlds = list(islice(_instances(family, "adversarial", shape, effort), HARD_INSTANCES))
        plans = [amdp.plan("auto", domain, cost) for domain, cost in worlds]
        for program in programs:
            yield _claims(program, family, shape, worlds, plans, patience)


def relaxation(effort: Effort) -> Rows:
    """The linear relaxation over phases, and the first bound of branch-and-bound, with some states decided."""
    for states in (15, 25):
        worlds = islice(_instances("grid", "adversarial", (5000, states, 4), effort), 2)
        for domain, cost in worlds:
            best = amdp.plan("local-search", domain, cost)
            for share in (0.0, 0.5):
                fixed = np.random.default_rng(SEED).permutation(states)[: int(share * states)]
                node = _decided(domain, fixed, best), _as_decided(cost, fixed, best)
                chains = Chains.of(node[0])
                program = MixedProgram("phases", options={"solve_relaxation": True})  # type: ignore[arg-type]
                highs = loaded(program.formulate(Rounded.of(chains, node[1]), best.actions.astype(np.int64)), program)
                run(highs, 1)
                relaxed = highs.getInfo().objective_function_value / best.objective
                first = amdp.plan(amdp.oracle("branch-and-bound", nodes=1), *node).bound / best.objective
                name, peer = f"relaxation over phases, {share:.0%} decided", "first bound of branch-and-bound"
                note = "adversarial; parts of what the best known policy costs"
                yield Row(name, peer, relaxed, first, "", _sizes((5000, states, 4)), note=note)


def dense(effort: Effort) -> Rows:
    """Fast mixing: optimal and proved."""
    cases = [((steps, 20, 4), losses) for steps in (1000, 5000) for losses in MEASURED]
    cases += [((5000, 30, 3), losses) for losses in MEASURED]
    cases += [((200, 15, 3), losses) for losses in MEASURED] + [((50, 15, 3), losses) for losses in MEASURED]
    for shape, losses in cases:
        found = _instances("dense", losses, shape, effort)
        yield _proofs("auto", "dense", losses, shape, effort, found, 60.0, all_must=True)


def deterministic(effort: Effort) -> Rows:
    """Paths that end in a cycle."""
    for shape in ((1000, 10, 3), (5000, 12, 3), (1000, 20, 2), (1000, 20, 3)):
        found = _instances("deterministic", "noise", shape, effort)
        yield _proofs("auto", "deterministic", "noise", shape, effort, found, 60.0, all_must=True)


def mixing(effort: Effort) -> Rows:
    """The tree with the mixing bound against the same tree with backward induction alone as its bound."""
    shape = (1000, 10, 3)
    ratios, ours, theirs = [], [], []
    for domain, cost in islice(_instances("dense", "noise", shape, effort), HARD_INSTANCES):
        mine, plan = _timed("branch-and-bound", domain, cost)
        plain = _plain_tree(domain)
        began = process_time()
        found = plain.minimize(cost[None])[0]
        theirs.append(process_time() - began)
        _agree(plan, found)
        ours.append(mine)
        ratios.append(theirs[-1] / mine)
    name = "branch-and-bound, dense"
    peer = "with the bound of backward induction alone, one policy at a time"
    yield Row(
        name,
        peer,
        median(ours),
        median(theirs),
        "s",
        _sizes(shape),
        median(ratios),
        "theirs / ours",
        _middle(ratios),
        at_least(500.0),
        "noise",
    )


def table(effort: Effort) -> Rows:
    """Many solves over one kernel: one policy at a time, all side by side, by the table, and a batch by the table."""
    for family, shape in (("dense", (5000, 8, 3)), ("sparse", (1000, 7, 3)), ("grid", (1000, 6, 4))):
        rng = np.random.default_rng(SEED)
        domain, _ = world(family, "noise", shape, rng)
        batch = rng.laplace(size=(20, *shape))
        anew = _planner(amdp.oracle("enumeration", table=0), domain)
        stored = _planner(amdp.oracle("enumeration", table=2**30), domain)
        first, second = anew.minimize(batch[:1]), stored.minimize(batch)
        assert abs(first.objective[0] - second.objective[0]) < 1e-9
        contestants: dict[str, Call] = {
            "tail enumeration, policy by policy from Python": partial(_one_at_a_time, anew, batch[0]),
            "enumeration, side by side": partial(_searched, anew, batch[:1]),
            "table": partial(_searched, stored, batch[:1]),
            "table, batch of 20": partial(_searched, stored, batch),
        }
        rounds = side_by_side(contestants, Effort(min(effort.rounds, 5), 0.0, 0.0)).rounds
        single = {name: [one / (20 if "batch" in name else 1) for one in found] for name, found in rounds.items()}
        times, sizes = Times(single), _sizes(shape)
        plain, lanes, by_table, in_batch = contestants
        note = f"{family}; the search alone"
        yield faster("table", sizes, times, by_table, plain, at_least(5.0), note)
        yield faster("table, batch of 20", sizes, times, in_batch, by_table, at_least(2.0), note)
        yield faster("table, batch of 20", sizes, times, in_batch, lanes, None, note)


def frontier(effort: Effort) -> Rows:
    """Slow mixing, within a minute: how far exactness goes. Processor seconds of all threads together."""
    cases = (
        ("sparse", "adversarial", (5000, 15, 3)),
        ("sparse", "ftpl", (5000, 15, 3)),
        ("sparse", "adversarial", (5000, 20, 3)),
        ("sparse", "ftpl", (5000, 20, 3)),
        ("grid", "adversarial", (5000, 12, 4)),
        ("grid", "adversarial", (5000, 15, 4)),
        ("grid", "adversarial", (5000, 16, 4)),
        ("grid", "adversarial", (5000, 25, 4)),
    )
    for family, losses, shape in cases:
        found = _seeded(family, losses, shape, effort)
        yield _proofs("auto", family, losses, shape, effort, found, 60.0, all_must=False, threads=FRONTIER_THREADS)


def ftpl_run(effort: Effort) -> Rows:
    """A whole run of FTPL over stationary policies: seconds, and how much of them the oracle took."""
    steps = 20_000 if effort.seconds else 600
    rng = np.random.default_rng(SEED)
    played = instances.random_parked(steps, 6, 3, rng)
    entry = PolicySwitching(played.kernel, played.initial)
    tuning = FtplTuning.practical(entry)
    clock = Clocked()
    learner = tuning.learner(clock)
    tables = np.random.default_rng(SEED).random((steps, 1, 6, 3))
    game = ArenaGame(Continuing(entry, tuning.length), FixedLosses(tables), feedback=learner.feedback)
    began = process_time()
    rounds = list(play_rounds(game, learner, game.arena.domain, Streams.from_seed(1)))
    seconds = process_time() - began
    trials = sum(one.trials for one in rounds)
    note = f"{len(rounds)} epochs, {trials} trials, {sum(clock.spent) / seconds:.0%} of the time in the oracle"
    yield Row("FTPL, shared trials", "", seconds, seconds / steps, "s", {"S": 6, "A": 3, "T": steps}, note=note)


@dataclass(frozen=True)
class Clocked:
    """`auto`, with the seconds of its solves."""

    spent: list[float] = field(default_factory=list, compare=False)
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        """What `auto` supports."""
        return amdp.oracle("auto").supports(domain)

    def bind(self, domain: Domain) -> Planner:
        """Its planner, under the clock."""
        return _ClockedPlanner(self, domain)


class _ClockedPlanner(Planner):
    def __init__(self, oracle: Clocked, domain: Domain) -> None:
        super().__init__(oracle, domain)
        self._inside, self._spent = amdp.bind("auto", domain), oracle.spent

    def minimize(self, costs: Costs) -> Plans:
        began = process_time()
        plans = self._inside.minimize(costs)
        self._spent.append(process_time() - began)
        return plans


CASES = {
    "milp": milp,
    "phases": phases,
    "relaxation": relaxation,
    "dense": dense,
    "deterministic": deterministic,
    "mixing": mixing,
    "table": table,
    "frontier": frontier,
    "ftpl-run": ftpl_run,
}
BY_NAME_ONLY = ("phases", "relaxation", "frontier")  # up to a minute an instance; see docs/stationary-oracles.md


def _proofs(
    name: str,
    family: str,
    losses: str,
    shape: Shape,
    effort: Effort,
    found: Worlds,
    limit: float,
    all_must: bool,
    threads: int = 1,
) -> Row:
    """Seconds until the proof, median; how many of the worlds were proved within the limit; the gaps of the others."""
    seconds, gaps, count = [], [], 0
    allowed = limit if effort.seconds else 1.0
    for domain, cost in found:
        taken, plan = _timed(amdp.oracle(name, seconds=allowed, threads=threads), domain, cost)
        seconds.append(taken)
        count += plan.status is Status.OPTIMAL
        if plan.status is not Status.OPTIMAL:
            gaps.append(plan.gap / abs(plan.objective))
    note = f"{losses}; proved {count} of {len(seconds)} in {allowed:g} s"
    if gaps:
        note += f"; gaps at the end {', '.join(f'{gap:.1%}' for gap in gaps)} of the value"
    if not all_must:
        note += f"; {', '.join(f'{taken:.1f}' for taken in seconds)} s on {threads} threads"
    goal = Goal("at most", limit, " s") if all_must else None
    peer = "the slowest instance"
    return Row(f"{name}, {family}", peer, median(seconds), max(seconds), "s", _sizes(shape), goal=goal, note=note)


def _decided(domain: StationaryPolicies, states: NDArray[np.int64], plan: Plan) -> StationaryPolicies:
    """A world in which all actions do, at some states, what a plan does there."""
    kernel = domain.dynamics
    assert isinstance(kernel, SparseKernel)
    steps, n_states, actions = kernel.shape
    rows = kernel.matrices[0].toarray().reshape(n_states, actions, n_states)
    rows[states] = rows[states, plan.actions[states]][:, None]
    return StationaryPolicies(SparseKernel.homogeneous(rows.reshape(-1, n_states), steps), domain.initial)


def _as_decided(cost: Floats, states: NDArray[np.int64], plan: Plan) -> Floats:
    """The costs of that world."""
    same = cost.copy()
    same[:, states] = cost[:, states, plan.actions[states]][..., None]
    return same


class Claim(NamedTuple):
    """What HiGHS claims about one world."""

    seconds: float  # of a processor, with those for making the program
    gap: float  # of the claimed bound below the cost of the best policy, as a part of that
    is_done: bool


def _in_highs(program: MixedProgram, domain: StationaryPolicies, cost: Floats, best: Plan, patience: float) -> Claim:
    """HiGHS in this process, begun at the best policy, until it has used its seconds of the processor."""
    began = process_time()
    highs = loaded(program.formulate(Rounded.of(Chains.of(domain), cost), best.actions.astype(np.int64)), program)

    def look(event: Any) -> None:
        if process_time() - began > patience:
            event.interrupt()

    highs.cbMipInterrupt += look
    highs.setOptionValue("time_limit", WAITED * patience)  # HiGHS does not look in its first relaxation
    run(highs, 1)
    bound = max(float(highs.getInfo().mip_dual_bound), Chains.of(domain).markov_bound(cost))
    is_done = highs.getModelStatus() == HighsModelStatus.kOptimal
    return Claim(process_time() - began, (best.objective - bound) / abs(best.objective), is_done)


def _claims(
    program: MixedProgram,
    family: str,
    shape: Shape,
    worlds: list[tuple[StationaryPolicies, Floats]],
    plans: list[Plan],
    patience: float,
) -> Row:
    """Seconds of one program, median and longest, and how far below the best policy its bounds are."""
    claims = [_in_highs(program, *one, plan, patience) for one, plan in zip(worlds, plans, strict=True)]
    seconds = [claim.seconds for claim in claims]
    done = sum(claim.is_done for claim in claims)
    gaps = ", ".join(f"{claim.gap:.2%}" for claim in claims)
    note = f"HiGHS was done with {done} of {len(claims)} in {patience:g} s; bounds are {gaps} below the value"
    last = f", last steps {program.last_steps}" if program.last_steps else ""
    name = f"{program.formulation}{last}, {family}"
    return Row(name, "the slowest instance", median(seconds), max(seconds), "s", _sizes(shape), note=note)


def _instances(family: str, losses: str, shape: Shape, effort: Effort) -> Worlds:
    rng = np.random.default_rng(SEED)
    warm, cost = world(family, losses, (5, 9, 3), rng)
    amdp.bind("auto", warm).minimize(cost[None])  # nothing is compiled while the clock runs
    for _ in range(INSTANCES if effort.seconds else 2):
        yield world(family, losses, shape, rng)


def _seeded(family: str, losses: str, shape: Shape, effort: Effort) -> Worlds:
    """The instances of the frontier, each drawn from a seed of its own."""
    warm, cost = world(family, losses, (40, 7, shape[2]), np.random.default_rng(SEED))
    amdp.bind(amdp.oracle("branch-and-bound", threads=FRONTIER_THREADS), warm).minimize(cost[None])
    for seed in FRONTIER_SEEDS if effort.seconds else FRONTIER_SEEDS[:1]:
        yield world(family, losses, shape, np.random.default_rng(seed))


def _timed(
    oracle: str | amdp.PlanningOracle, domain: StationaryPolicies, cost: Floats, repeats: int = 1
) -> tuple[float, Plan]:
    """Processor seconds of binding and solving, and the plan; nothing is kept from one repetition to the next."""
    chosen = amdp.oracle(oracle) if isinstance(oracle, str) else oracle  # looking up a name takes milliseconds
    unseen = [StationaryPolicies(copy(domain.dynamics), domain.initial) for _ in range(repeats)]
    began = process_time()
    for one in unseen:
        plan = chosen.bind(one).minimize(cost[None])[0]
    return (process_time() - began) / repeats, plan


def _plain_tree(domain: StationaryPolicies) -> StationaryPlanner:
    settings = BranchAndBound(seconds=120.0)
    return StationaryPlanner(
        settings, domain, lambda chains: TreeSearch(chains, settings, PLAIN, 1, -np.inf), 1e-9, 120.0
    )


def _planner(oracle: amdp.PlanningOracle, domain: StationaryPolicies) -> StationaryPlanner:
    planner = oracle.bind(domain)
    assert isinstance(planner, StationaryPlanner)
    return planner


def _searched(planner: StationaryPlanner, batch: Floats) -> object:
    """The search without the evaluation of what it found."""
    clock = SearchClock(np.inf, None)
    horizon = planner.search.horizon(len(batch), clock)
    problems = scaled_problems(planner.chains.initial, batch, horizon, clock.halt).problems
    return planner.search.solve(problems, clock)


def _one_at_a_time(planner: StationaryPlanner, cost: Floats) -> float:
    chains = planner.chains
    _, states, actions = chains.shape
    policies = np.indices((actions,) * states).reshape(states, -1).T.copy()
    problem = chains.pose(cost / 64.0)
    return float(min(kernels.search.chains.value(chains.rows, problem, policy) for policy in policies))


def _middle(ratios: list[float]) -> tuple[float, float]:
    low, _, high = quantiles(ratios, n=4, method="inclusive")
    return low, high


def _agree(plan: Plan, *others: Plan) -> None:
    """Whoever is timed must have answered the same question."""
    for other in others:
        if other.status is Status.OPTIMAL:
            assert abs(plan.objective - other.objective) <= 1e-6 * max(1.0, abs(plan.objective))


def _sizes(shape: Shape) -> dict[str, int]:
    steps, states, actions = shape
    return {"S": states, "A": actions, "T": steps}
