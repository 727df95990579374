"""Conformance checks that authors of planning oracles, projection oracles and learners run on their own classes.

    @pytest.mark.parametrize("check", amdp.testing.oracle_checks(), ids=lambda check: check.__name__)
    def test_my_oracle(check):
        check(MyOracle())

    @pytest.mark.parametrize("check", amdp.testing.learner_checks(), ids=lambda check: check.__name__)
    def test_my_learner(check):
        check(lambda task: MyLearner.tuned(task.domain, task.rounds))

A check raises `AssertionError` with the reason. Sample domains that the oracle or the learner does not support are
skipped, but it must support at least one of them. No check judges how well a learner learns: measure its regret.
A new check is a function and an entry of its list.

A planning oracle minimizes `V(pi, c) = E[sum_h c[h, s_h, a_h]]` over the policies `pi` of a domain; over a confidence
set, over the kernels of the set as well. Without an end, costs are `[s, a]` and `V` is the discounted sum or the
average; over several models it is the weighted sum of the values in each. `V*(c)` is the least value.
A projection oracle minimizes `KL(q || w) = sum q (log q - log w) - q + w` over the occupancy measures `q` of a domain,
for weights `w = exp(point)`; the prices
`v[h, s]` that it returns prove a lower bound, the dual value. A learner turns a distribution over policies into the
next one: `start`, then in each round `draw`, `weigh` and `observe`, and `learn` when the feedback of a round arrives.
"""

import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.feedback import Aggregate, Bandit, FullInformation, Weights
from amdp.algorithms.task import EpochSetup, Recipe, Task
from amdp.arrays import Actions, Costs, Floats, Policies
from amdp.errors import AmdpError, InvalidInput, UnsupportedDomain
from amdp.game import delays
from amdp.game.arenas import Arena, Continuing, Episodic, Stepwise
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.instances import waiting_ring
from amdp.losses import uniform
from amdp.model.budgets import Budgets
from amdp.model.chains import entrance, rows_of
from amdp.model.confidence import BernsteinBox, Radius
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain, MarkovPolicies, StationaryPolicies
from amdp.model.endless import AverageCostPolicies, DiscountedPolicies, EndlessPolicies
from amdp.model.evaluation import evaluate
from amdp.model.l1_ball import L1Ball
from amdp.model.segments import Segment
from amdp.model.several_models import MultiModel
from amdp.model.transitions import Kernel, SparseKernel
from amdp.oracles.base import Planner, PlanningDomain, PlanningOracle, Status, describe
from amdp.oracles.checked import Checked
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.oracles.markov.lagrangian import Lagrangian
from amdp.oracles.projection.base import Projection, ProjectionOracle, Projector
from amdp.oracles.projection.budgets import BudgetedProjection, within_budgets
from amdp.oracles.projection.certificate import box_residual, certified, flow_residual, objective

OracleCheck = Callable[[PlanningOracle], None]
ProjectionCheck = Callable[[ProjectionOracle], None]
LearnerCheck = Callable[[Recipe], None]

SHAPE = (4, 3, 2)  # H, S, A; the stationary policies, 8, and the Markov policies, 4096, can be enumerated
EPISODES, STREAM_STEPS = 8, 240  # of the sample games
ROUNDING_TOLERANCE = 1e-9  # of sums of a few numbers of size 1
POLICY_TOLERANCE = 1e-6  # of the chances of actions, which only plans within budgets have between 0 and 1
OBJECTIVE_TOLERANCE = 1e-8  # of projections: relative where the objective is above 1; of residuals, absolute


def _sample_kernel() -> Kernel:
    """A kernel `P[h, s, a]` with random rows, always the same one."""
    return Kernel(np.random.default_rng(1).dirichlet(np.ones(SHAPE[1]), size=SHAPE))


def sample_domains() -> list[Domain]:
    """One small domain of each kind: Markov policies over a kernel, a sparse kernel and a box; stationary policies.

    The last ones are policies within one budget and within two.
    """
    kernel = _sample_kernel()
    steps, states, _ = kernel.shape
    sparse = SparseKernel([kernel.matrix(h) for h in range(steps)])
    lower, upper = np.maximum(0.0, kernel.p - 0.1), np.minimum(1.0, kernel.p + 0.1)
    deterministic = np.eye(states)[kernel.p[0].argmax(axis=-1)]
    return [
        MarkovPolicies(kernel),
        MarkovPolicies(sparse),
        MarkovPolicies(BernsteinBox(lower, upper)),
        StationaryPolicies(Kernel.homogeneous(kernel.p[0], steps)),
        StationaryPolicies(Kernel.homogeneous(deterministic, steps)),
        _sample_budgets(kernel, 1),
        _sample_budgets(kernel, 2),
    ]


def _sample_budgets(kernel: Kernel, count: int) -> BudgetedPolicies:
    """Budgets between the least that can be used of them together and what uniform play uses, nearer to the former."""
    usage = np.random.default_rng(2).random((count, *SHAPE))
    uniform_play = kernel.occupancy(np.full((1, *SHAPE), 1.0 / SHAPE[2]), 0)
    unlimited = BudgetedPolicies(kernel, Budgets(usage, np.full(count, float(SHAPE[0]))))
    together = BackwardInduction().bind(unlimited.unlimited).minimize(usage.sum(axis=0, keepdims=True))
    least = unlimited.budgets.use(kernel.occupancy(together.policies, 0))[0]
    return replace(unlimited, budgets=Budgets(usage, 0.8 * least + 0.2 * unlimited.budgets.use(uniform_play)[0]))


def planning_domains() -> list[PlanningDomain]:
    """The sample domains, and those over which an oracle plans but nobody plays: without an end, several models."""
    steps = SHAPE[0]
    first, second = (Kernel.homogeneous(rows, steps) for rows in _sample_kernel().p[:2])
    sparse = SparseKernel.homogeneous(first.matrix(0), steps)
    return [
        *sample_domains(),
        DiscountedPolicies(first, 0.9),
        DiscountedPolicies(sparse, 0.9),
        AverageCostPolicies(first),
        AverageCostPolicies(sparse),
        MultiModel([MarkovPolicies(_sample_kernel()), MarkovPolicies(second)], [0.25, 0.75]),
        MultiModel([StationaryPolicies(first), StationaryPolicies(second, 1)]),
    ]


def oracle_checks() -> list[OracleCheck]:
    """Every check of a planning oracle; call each with an oracle."""
    return [
        check_it_is_a_recipe,
        check_it_refuses_other_domains,
        check_it_is_right,
        check_a_batch_is_its_singles,
        check_solves_leave_no_trace,
        check_any_size_of_costs,
        check_ties_go_to_the_first_action,
        check_wrong_costs_are_refused,
        check_planners_travel,
    ]


def check_it_is_a_recipe(oracle: PlanningOracle | ProjectionOracle) -> None:
    """The oracle is frozen settings: it hashes, prints, pickles, and names the packages that it needs."""
    assert isinstance(oracle, PlanningOracle), f"{oracle!r} lacks supports, bind or requires"
    copy = pickle.loads(pickle.dumps(oracle))
    assert hash(oracle) == hash(copy), "a pickled oracle hashes differently"
    assert copy == oracle, "a pickled oracle comes back different"
    assert type(oracle).__name__ in repr(oracle), f"{oracle!r} does not name its class"
    assert all(isinstance(name, str) for name in oracle.requires), "requires must be a tuple of package names"


def check_it_refuses_other_domains(oracle: PlanningOracle | ProjectionOracle) -> None:
    """`bind` accepts what `supports` accepts, at least one sample domain, and raises `UnsupportedDomain` otherwise."""
    domains = planning_domains()
    accepted = [oracle.supports(domain) for domain in domains]
    assert any(accepted), "the oracle supports none of the sample domains"
    for domain, supported in zip(domains, accepted, strict=True):
        refused = _refuses(oracle.bind, domain, UnsupportedDomain)
        assert refused != supported, f"supports and bind disagree on {describe(domain)}"


def _refuses(call: Callable[[Any], object], argument: object, error: type[AmdpError] = InvalidInput) -> bool:
    try:
        call(argument)
    except error:
        return True
    return False


def check_it_is_right(oracle: PlanningOracle) -> None:
    """`bound <= V*(c) <= objective`, and `objective = V*(c)` if the status is optimal.

    Over Markov policies the objective is also compared with `V(pi, c)` of the policy `pi` that is returned. It has to
    keep the budgets, if there are some.
    """
    for domain in _supported(oracle):
        costs = _costs(2, 3, domain)
        chosen: PlanningOracle = Checked(oracle) if isinstance(domain, EpisodeDomain) else oracle
        plans = chosen.bind(domain).minimize(costs)
        least = _least_values(domain, costs)
        assert (plans.bound <= least + ROUNDING_TOLERANCE).all(), f"{describe(domain)}: the bound exceeds the optimum"
        assert (plans.objective >= least - ROUNDING_TOLERANCE).all(), f"{describe(domain)}: cheaper than the optimum"
        if plans.status is Status.OPTIMAL:
            # Within budgets no sweep completes what a solver found: there a gap of 1e-9 of what is paid is optimal.
            tolerance = ROUNDING_TOLERANCE * (10.0 if isinstance(domain, BudgetedPolicies) else 1.0)
            optimal = np.allclose(plans.objective, least, rtol=0, atol=tolerance)
            assert optimal, f"{describe(domain)}: not optimal"


def check_a_batch_is_its_singles(oracle: PlanningOracle) -> None:
    """The plans for costs `[n, h, s, a]` are those of each `[h, s, a]` alone."""
    for planner in _planners(oracle):
        costs = _costs(3, 4, planner.domain)
        batch = planner.minimize(costs)
        assert len(batch) == 4, "one plan for each cost array"
        for cost, plan in zip(costs, batch, strict=True):
            alone = planner.minimize(cost[None])[0]
            assert _same(alone.policy, plan.policy), "a policy depends on its batch"
            assert abs(alone.objective - plan.objective) <= ROUNDING_TOLERANCE, "an objective depends on its batch"


def check_solves_leave_no_trace(oracle: PlanningOracle) -> None:
    """The plan is a function of the costs: solves in between do not change it, and the costs are not written to."""
    for planner in _planners(oracle):
        costs = _costs(4, 6, planner.domain)
        before = costs.copy()
        first = planner.minimize(costs[:1])
        planner.minimize(costs[1:])
        again = planner.minimize(costs[:1])
        assert _same(first.policies, again.policies), "an earlier solve changed a later answer"
        assert (costs == before).all(), "the planner wrote to the costs"


def check_any_size_of_costs(oracle: PlanningOracle) -> None:
    """`V*(x c) = x V*(c)` with the same policy, for `x` of 1e-8 and 1e8."""
    for planner in _planners(oracle):
        costs = _costs(5, 1, planner.domain)
        plain = planner.minimize(costs)
        for size in (1e-8, 1e8):
            scaled = planner.minimize(costs * size)
            assert _same(scaled.policies, plain.policies), f"costs of size {size:g} give another policy"
            assert np.allclose(scaled.objective, plain.objective * size, rtol=1e-9), f"wrong at size {size:g}"


def check_ties_go_to_the_first_action(oracle: PlanningOracle) -> None:
    """Where all costs are 1, `V(pi, c) = H` for every policy, and the one returned takes action 0 everywhere."""
    for planner in _planners(oracle):
        if isinstance(planner.domain, BudgetedPolicies):
            continue  # action 0 may not keep the budgets
        plans = planner.minimize(np.ones_like(_costs(1, 1, planner.domain)))
        assert (plans.actions == 0).all(), "a tie did not go to the first action"


def check_wrong_costs_are_refused(oracle: PlanningOracle) -> None:
    """Costs with NaN or infinity, or of a wrong shape, raise `InvalidInput`."""
    for planner in _planners(oracle):
        for wrong in (np.nan, np.inf):
            costs = _costs(6, 1, planner.domain)
            costs.reshape(-1)[-1] = wrong
            assert _refuses(planner.minimize, costs), f"costs with {wrong} were accepted"
        assert _refuses(planner.minimize, np.zeros((1, 1, 3, 2))), "costs of another shape were accepted"


def check_planners_travel(oracle: PlanningOracle) -> None:
    """A pickled planner gives the policy of the original: runs go to other processes."""
    for planner in _planners(oracle):
        costs = _costs(7, 1, planner.domain)
        copy = pickle.loads(pickle.dumps(planner))
        assert _same(copy.minimize(costs).policies, planner.minimize(costs).policies), "pickling changed the answer"


def _same(policies: Policies, others: Policies) -> bool:
    """Whether policies are the same, up to the rounding of the chances of randomized ones."""
    return bool(np.abs(policies - others).max() <= POLICY_TOLERANCE)


def _costs(seed: int, n: int, domain: PlanningDomain) -> Costs:
    shape = domain.shape if isinstance(domain, Domain) else domain.cost_shape
    return np.random.default_rng(seed).normal(size=(n, *shape))


def _supported(oracle: PlanningOracle) -> Iterator[PlanningDomain]:
    return (domain for domain in planning_domains() if oracle.supports(domain))


def _planners(oracle: PlanningOracle) -> Iterator[Planner]:
    return (oracle.bind(domain) for domain in _supported(oracle))


def _least_values(domain: PlanningDomain, costs: Costs) -> Floats:
    """`V*(c)` `[n]`: by backward induction over Markov policies, by trying out all policies otherwise.

    Within budgets by backward induction at prices, whose answers are proved.
    """
    if isinstance(domain, BudgetedPolicies):
        return Lagrangian().bind(domain).minimize(costs).require(Status.OPTIMAL).objective
    if isinstance(domain, MarkovPolicies):
        return BackwardInduction().bind(domain).minimize(costs).objective
    if isinstance(domain, EndlessPolicies):
        return np.array([min(_endless_value(domain, pi, cost) for pi in _all(*domain.shape)) for cost in costs])
    if isinstance(domain, StationaryPolicies):
        alone = MultiModel([domain], [1.0])
        return _least_values(alone, costs[:, None])
    policies = domain.by_place(_all(domain.n_decisions, domain.shape[2]))
    return np.array([_weighted_values(domain, policies, cost).min() for cost in costs])


def _all(n_decisions: int, n_actions: int) -> NDArray[np.int64]:
    """All ways to make so many decisions, `[n, d]`."""
    return np.indices((n_actions,) * n_decisions).reshape(n_decisions, -1).T


def _endless_value(domain: EndlessPolicies, policy: NDArray[np.int64], cost: Floats) -> float:
    """The discounted sum or the average of one policy `[s]`, from the start."""
    states = np.arange(len(policy))
    chain, paid = rows_of(domain.dynamics)[states, policy], cost[states, policy]
    if isinstance(domain, DiscountedPolicies):
        return float(domain.start @ np.linalg.solve(np.eye(len(policy)) - domain.discount * chain, paid))
    return float(domain.start @ np.linalg.matrix_power(chain, 1000) @ paid)  # the sample chains mix fast


def _weighted_values(domain: MultiModel, policies: Actions, cost: Costs) -> Floats:
    """The weighted sum `[n]` over models of what policies `[n, h, s]` pay for one cost array `[m, h, s, a]`."""
    models = zip(domain.models, cost, strict=True)
    paid = [evaluate(model, policies, np.repeat(own[None], len(policies), axis=0)) for model, own in models]
    return np.asarray(domain.weights) @ np.array(paid)


def projection_checks() -> list[ProjectionCheck]:
    """Every check of a projection oracle; call each with one."""
    return [
        check_it_is_a_recipe,
        check_it_refuses_other_domains,
        check_projections_are_right,
        check_a_measure_is_its_own_projection,
        check_projections_leave_no_trace,
        check_wrong_points_are_refused,
        check_projectors_travel,
    ]


def check_projections_are_right(oracle: ProjectionOracle) -> None:
    """`q` is an occupancy measure, the objective is `KL(q || w)`, and the dual value of the prices equals it.

    The weights go down to `exp(-1000)`.
    """
    for projector in _projectors(oracle):
        for size in (1.0, 30.0, 1000.0):
            point = size * _point(projector, 8)
            projection = projector.project(point)
            what = f"{describe(projector.domain)}, weights down to exp({point.min():.0f})"
            optimal = projection.status is Status.OPTIMAL
            assert optimal, f"{what}: a projector returns what is proved, or raises Unsolved"
            assert projection.log_measure.shape == point.shape, f"{what}: the measure has another shape than the point"
            proved = _certified(projector.domain, point, projection)
            tolerance = OBJECTIVE_TOLERANCE * max(1.0, abs(proved.objective))
            distance = objective(projection.log_measure, point)
            assert abs(projection.objective - distance) <= tolerance, f"{what}: a wrong objective"
            gap = distance - proved.bound
            assert gap <= tolerance, f"{what}: the prices do not prove it; gap {gap:g}"
            assert np.abs(projection.measure - proved.measure).max() <= 1e-3, f"{what}: measure and prices disagree"
            assert _residual(projector.domain, projection) <= OBJECTIVE_TOLERANCE, f"{what}: not an occupancy measure"


def check_a_measure_is_its_own_projection(oracle: ProjectionOracle) -> None:
    """Where `w` is an occupancy measure, `KL(q || w) = 0` and `q = w`."""
    for projector in _projectors(oracle):
        measure = projector.project(_point(projector, 9))
        again = projector.project(measure.log_measure)
        assert abs(again.objective) <= OBJECTIVE_TOLERANCE, "the nearest measure to a measure is not at distance zero"
        assert np.abs(again.measure - measure.measure).max() <= 1e-4, "a measure was moved"


def check_projections_leave_no_trace(oracle: ProjectionOracle) -> None:
    """The projection is a function of the point, to the bit; `near` changes the speed; the point is not written to."""
    for projector in _projectors(oracle):
        point, other = _point(projector, 10), _point(projector, 11)
        before = point.copy()
        first = projector.project(point)
        elsewhere = projector.project(other)
        assert np.array_equal(projector.project(point).log_measure, first.log_measure), "an answer left a trace"
        near = projector.project(point, elsewhere)
        tolerance = OBJECTIVE_TOLERANCE * max(1.0, abs(first.objective))
        assert abs(near.objective - first.objective) <= tolerance, "near moved it"
        assert np.array_equal(point, before), "the projector wrote to the point"


def check_wrong_points_are_refused(oracle: ProjectionOracle) -> None:
    """NaN, infinite weights, wrong shapes, and weights that no occupancy measure can use raise `InvalidInput`."""
    for projector in _projectors(oracle):
        for wrong in (np.nan, np.inf):
            point = _point(projector, 12)
            point[1, 2, 1] = wrong
            assert _refuses(projector.project, point), f"a point with {wrong} was accepted"
        assert _refuses(projector.project, np.zeros((1, 3, 2))), "a point of another shape was accepted"
        point = _point(projector, 12)
        point[2] = -np.inf
        assert _refuses(projector.project, point), "a point without weight in a step was accepted"


def check_projectors_travel(oracle: ProjectionOracle) -> None:
    """A pickled projector gives the measure of the original, to the bit."""
    for projector in _projectors(oracle):
        point = _point(projector, 13)
        measure = pickle.loads(pickle.dumps(projector)).project(point).log_measure
        assert np.array_equal(measure, projector.project(point).log_measure), "pickling changed the answer"


def _projectors(oracle: ProjectionOracle) -> Iterator[Projector]:
    return (oracle.bind(domain) for domain in sample_domains() if oracle.supports(domain))


def _point(projector: Projector, seed: int) -> Floats:
    """Logarithms of weights between `1/e` and 1."""
    return -np.random.default_rng(seed).random(projector.point_shape)


def _certified(domain: Domain, point: Floats, projection: Projection) -> Projection:
    """What the prices of a projection prove, by the plain certificate."""
    if not isinstance(domain, BudgetedPolicies):
        assert isinstance(domain, MarkovPolicies)
        return certified(domain, point, projection.prices, projection.report)
    assert isinstance(projection, BudgetedProjection), "a projection within budgets is a BudgetedProjection"
    prices = projection.budget_prices
    assert (prices >= 0.0).all(), "a budget has a price below 0"
    tilted = point - np.tensordot(prices, domain.budgets.usage, axes=1)
    answer = certified(domain.unlimited, tilted, projection.prices, projection.report)
    return within_budgets(domain, point, answer, prices, OBJECTIVE_TOLERANCE)


def _residual(domain: Domain, projection: Projection) -> float:
    """How far a measure is from an occupancy measure, by the residuals that it reports and by those computed here."""
    if isinstance(domain, BudgetedPolicies):
        use = domain.budgets.use(projection.measure[None])
        return max(float(domain.budgets.excess(use)[0]), _residual(domain.unlimited, projection))
    assert isinstance(domain, MarkovPolicies)
    flow, box = flow_residual(domain, projection.log_measure), box_residual(domain, projection.log_measure)
    return max(flow, box, projection.flow_residual, projection.box_residual)


def learner_checks() -> list[LearnerCheck]:
    """Every check of a learner; call each with its recipe, the function that makes it from a `Task`."""
    return [
        check_it_plays_policies,
        check_seeds_reproduce_a_run,
        check_late_feedback_is_taken,
        check_distributions_are_values,
        check_weights_fit_the_segment,
        check_learners_travel,
    ]


def check_it_plays_policies(recipe: Recipe) -> None:
    """The learner names its feedback; its distributions have all members, and its policies are policies.

    They are `[h, s, a]`, or `[s, a]` in a stream, with `pi >= 0` and `sum_a pi = 1`.
    """
    for sample in _samples(recipe):
        kinds = Bandit, FullInformation, Aggregate
        assert sample.learner.feedback in kinds, f"{sample}: feedback is {sample.learner.feedback}"
        rng = Streams.from_seed(2).learner
        distribution = sample.learner.start(sample.domain, rng)
        for member in ("domain", "oracle_calls", "draw"):
            assert hasattr(distribution, member), f"{sample}: its {type(distribution).__name__} has no {member!r}"
        _require_policy(sample, distribution.draw(rng))  # the arena trusts its shape
        for policy in _policies(sample):
            _require_policy(sample, policy)


def check_seeds_reproduce_a_run(recipe: Recipe) -> None:
    """The same seed gives the same policies, to the bit: all randomness comes from the generator that is handed in."""
    for sample, again in zip(_samples(recipe), _samples(recipe), strict=True):
        first = _policies(sample)
        assert np.array_equal(first, _policies(sample)), f"{sample}: a second run of one seed went another way"
        assert np.array_equal(first, _policies(again)), f"{sample}: made anew, it went another way"


def check_late_feedback_is_taken(recipe: Recipe) -> None:
    """The learner plays on when feedback is delayed, out of order, several rounds at once, or never arrives."""
    recorded = delays.recorded([3, 0, 1, 0, EPISODES, 2, 0, 1])
    for sample in _samples(recipe):
        if isinstance(sample.game.arena, Episodic):
            delayed = replace(sample, game=replace(sample.game, delays=recorded))
            assert len(_policies(delayed)) == EPISODES, f"{sample}: it stopped"


def check_distributions_are_values(recipe: Recipe) -> None:
    """`weigh`, `observe` and `learn` change neither an earlier distribution nor the losses.

    With a copy of one generator, the earlier distribution draws the same policy before and after.
    """
    for sample in _samples(recipe):
        rng = Streams.from_seed(4).learner
        distribution = sample.learner.start(sample.domain, rng)
        for k in range(3):
            policy = distribution.draw(deepcopy(rng))
            segment = _segment(sample, policy)
            weights = sample.learner.weigh(distribution, segment, deepcopy(rng))
            losses = sample.game.table(k)
            feedback = sample.game.feedback.reveal(losses, segment, weights)
            updated = sample.learner.learn(sample.learner.observe(distribution, segment), feedback)
            unchanged = np.array_equal(distribution.draw(deepcopy(rng)), policy)
            assert unchanged, f"{sample}: learning changed what was there"
            assert np.array_equal(sample.game.table(k), losses), f"{sample}: it wrote to the losses"
            distribution = updated


def check_weights_fit_the_segment(recipe: Recipe) -> None:
    """`weigh` gives a finite weight for each step of the segment, or none; `observe` keeps the domain's shape."""
    for sample in _samples(recipe):
        rng = Streams.from_seed(5).learner
        distribution = sample.learner.start(sample.domain, rng)
        segment = _segment(sample, distribution.draw(rng))
        weights = sample.learner.weigh(distribution, segment, rng)
        assert isinstance(weights, Weights), f"{sample}: weigh gave {type(weights).__name__}, not Weights"
        assert len(weights.values) in (0, len(segment.states)), f"{sample}: {len(weights.values)} weights"
        assert np.isfinite(weights.values).all(), f"{sample}: a weight that is not finite"
        assert weights.trials >= 0, f"{sample}: {weights.trials} trials"
        observed = sample.learner.observe(distribution, segment).domain
        assert isinstance(observed, type(sample.domain)), f"{sample}: observe left {describe(observed)}"
        assert observed.shape == sample.domain.shape, f"{sample}: observe left a domain of shape {observed.shape}"


def check_learners_travel(recipe: Recipe) -> None:
    """A pickled learner plays the policies of the original, to the bit: runs go to other processes."""
    for sample in _samples(recipe):
        copy = replace(sample, learner=pickle.loads(pickle.dumps(sample.learner)))
        assert np.array_equal(_policies(copy), _policies(sample)), f"{sample}: pickling changed it"


@dataclass(frozen=True, eq=False)
class _Sample:
    """A short game, the learner that a recipe makes for it, and what the learner knows of the dynamics."""

    game: ArenaGame
    learner: Learner[Any]
    domain: Domain

    def __str__(self) -> str:
        return f"{type(self.learner).__name__} on {describe(self.domain)}"


def _samples(recipe: Recipe) -> list[_Sample]:
    """The sample games that the learner accepts; at least one."""
    kernel = _sample_kernel()
    box = BernsteinBox.vacuous(SHAPE, Radius.paper(SHAPE, EPISODES, scale=0.05))
    communicating = waiting_ring(STREAM_STEPS, 3).kernel
    ergodic = Kernel.homogeneous(kernel.p[0], STREAM_STEPS)
    entered = entrance(communicating, np.full(3, 1 / 3))
    candidates = [
        _sample(recipe, Episodic(kernel), MarkovPolicies(kernel), EPISODES),
        _sample(recipe, Episodic(kernel), MarkovPolicies(box), EPISODES),
        _sample(recipe, Episodic(kernel), MarkovPolicies(L1Ball.vacuous(SHAPE, EPISODES)), EPISODES),
        _sample(recipe, Stepwise(communicating), StationaryPolicies(communicating), STREAM_STEPS),
        _sample(recipe, Stepwise(ergodic), StationaryPolicies(ergodic), STREAM_STEPS),
        _sample(recipe, Stepwise(entered, 3), StationaryPolicies(entered, 3), STREAM_STEPS),
    ]
    accepted = [sample for sample in candidates if sample]
    assert accepted, "the recipe refuses all sample games"
    return accepted


def _sample(recipe: Recipe, arena: Arena, domain: Domain, rounds: int) -> _Sample | None:
    """The game and its learner; None if the recipe or the learner refuses the domain."""
    try:
        learner = recipe(Task(domain, rounds))
        if isinstance(learner, EpochSetup):
            arena, learner = Continuing(learner.entry, learner.length), learner.learner
        learner.start(domain, Streams.from_seed(1).learner)
    except AmdpError:
        return None
    shape = domain.shape if isinstance(domain, MarkovPolicies) else (1, *domain.shape[1:])
    return _Sample(ArenaGame(arena, uniform(rounds, shape, 1), feedback=learner.feedback), learner, domain)


def _require_policy(sample: _Sample, policy: Policies) -> None:
    shape = sample.domain.shape if isinstance(sample.domain, MarkovPolicies) else sample.domain.shape[1:]
    assert policy.shape == shape, f"{sample}: a policy of shape {policy.shape}; it must be {shape}"
    assert np.isfinite(policy).all(), f"{sample}: a policy with chances that are not finite"
    assert (policy >= 0.0).all(), f"{sample}: a policy with negative chances"
    normalized = np.allclose(policy.sum(axis=-1), 1.0, rtol=0, atol=ROUNDING_TOLERANCE)
    assert normalized, f"{sample}: chances do not sum to 1"


def _policies(sample: _Sample) -> Policies:
    """The policies `[k, ...]` of the first rounds of a run."""
    rounds = min(sample.game.rounds, EPISODES)
    played = play_rounds(sample.game, sample.learner, sample.domain, Streams.from_seed(3), rounds)
    return np.stack([round_played.policy for round_played in played])


def _segment(sample: _Sample, policy: Policies) -> Segment:
    """A path of the policy through one round."""
    return sample.game.arena.visit(sample.game.arena.begin(), policy, Streams.from_seed(6).arena).segment
