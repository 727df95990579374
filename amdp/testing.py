"""Conformance checks for oracles and learners, ours and yours; `projection_checks` are for projection oracles.

    @pytest.mark.parametrize("check", amdp.testing.oracle_checks(), ids=lambda check: check.__name__)
    def test_my_oracle(check):
        check(MyOracle())

    @pytest.mark.parametrize("check", amdp.testing.learner_checks(), ids=lambda check: check.__name__)
    def test_my_learner(check):
        check(lambda task: MyLearner.tuned(task.domain, task.rounds))

A check raises `AssertionError` with the reason. Domains that the oracle or the learner does not support are passed
over, but it must support at least one of the samples. Whether a learner learns, no check can say: measure its regret.
"""

import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.algorithms.task import EpochSetup, Recipe, Task
from amdp.arrays import Costs, Floats, Policies
from amdp.errors import AmdpError, InvalidInput, UnsupportedDomain
from amdp.game import delays
from amdp.game.arenas import Arena, Continuing, Episodic, Stepwise
from amdp.game.loop import ArenaGame, play
from amdp.game.seeding import Streams
from amdp.instances import waiting_ring
from amdp.losses import uniform
from amdp.model.confidence import BernsteinBox, Radius
from amdp.model.domains import Domain, MarkovPolicies, StationaryPolicies
from amdp.model.entrance import entrance
from amdp.model.evaluation import evaluate
from amdp.model.segments import Segment
from amdp.model.transitions import Kernel, SparseKernel
from amdp.oracles.base import Planner, PlanningOracle, Status, describe
from amdp.oracles.checked import Checked
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.oracles.projection.base import Projection, ProjectionOracle, Projector
from amdp.oracles.projection.certificate import box_residual, certified, flow_residual

SHAPE = (4, 3, 2)  # 512 policies that matter: small enough for enumeration
TOLERANCE = 1e-9

OracleCheck = Callable[[PlanningOracle], None]
ProjectionCheck = Callable[[ProjectionOracle], None]
LearnerCheck = Callable[[Recipe], None]
NEARNESS = 1e-8  # of objectives, relative where they are above 1
ROUNDS, STREAM = 12, 240  # of the sample games: episodes; steps without a break


def oracle_checks() -> list[OracleCheck]:
    """Every check; call each with an oracle."""
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


def projection_checks() -> list[ProjectionCheck]:
    """Every check of a projection oracle; call each with one."""
    return [
        check_projections_come_from_a_recipe,
        check_projections_refuse_other_domains,
        check_projections_are_right,
        check_a_measure_is_its_own_projection,
        check_projections_leave_no_trace,
        check_wrong_points_are_refused,
        check_projectors_travel,
    ]


def learner_checks() -> list[LearnerCheck]:
    """Every check of a learner; call each with its recipe: what makes it from `Task`."""
    return [
        check_it_plays_policies,
        check_seeds_reproduce_a_run,
        check_late_feedback_is_taken,
        check_distributions_are_values,
        check_weights_fit_the_segment,
        check_learners_travel,
    ]


def sample_domains() -> list[Domain]:
    """One small domain of each kind."""
    kernel = Kernel(_rows(np.random.default_rng(1)))
    steps, states, _ = kernel.shape
    sparse = SparseKernel([kernel.matrix(h) for h in range(steps)])
    lower, upper = np.maximum(0.0, kernel.p - 0.1), np.minimum(1.0, kernel.p + 0.1)
    return [
        MarkovPolicies(kernel),
        MarkovPolicies(sparse),
        MarkovPolicies(BernsteinBox(lower, upper)),
        StationaryPolicies(Kernel.homogeneous(kernel.p[0], steps)),
        StationaryPolicies(Kernel.homogeneous(np.eye(states)[kernel.p[0].argmax(axis=-1)], steps)),  # deterministic
    ]


def check_it_is_a_recipe(oracle: PlanningOracle) -> None:
    """Frozen settings: hashes, prints, pickles, and names the packages it needs."""
    assert isinstance(oracle, PlanningOracle), f"{oracle!r} lacks supports, bind or requires"
    assert hash(oracle) == hash(pickle.loads(pickle.dumps(oracle))), "a pickled oracle hashes differently"
    assert pickle.loads(pickle.dumps(oracle)) == oracle, "a pickled oracle comes back different"
    assert type(oracle).__name__ in repr(oracle), f"{oracle!r} does not name its class"
    assert all(isinstance(name, str) for name in oracle.requires), "requires must be a tuple of package names"


def check_it_refuses_other_domains(oracle: PlanningOracle) -> None:
    """`bind` accepts what `supports` accepts, and raises `UnsupportedDomain` otherwise."""
    accepted = [oracle.supports(domain) for domain in sample_domains()]
    assert any(accepted), "the oracle supports none of the sample domains"
    for domain, supported in zip(sample_domains(), accepted, strict=True):
        assert _binds(oracle, domain) == supported, f"supports and bind disagree on {describe(domain)}"


def check_it_is_right(oracle: PlanningOracle) -> None:
    """The objective is the policy's value, the bound holds, and optimal means optimal."""
    for domain in _supported(oracle):
        costs = _costs(np.random.default_rng(2), 3)
        plans = (
            Checked(oracle).bind(domain).minimize(costs) if _is_markov(domain) else oracle.bind(domain).minimize(costs)
        )
        best = _best(domain, costs)
        assert (plans.bound <= best + TOLERANCE).all(), f"{describe(domain)}: the bound exceeds the optimum"
        assert (plans.objective >= best - TOLERANCE).all(), f"{describe(domain)}: cheaper than the optimum"
        if plans.status is Status.OPTIMAL:
            assert np.allclose(plans.objective, best, rtol=0, atol=TOLERANCE), f"{describe(domain)}: not optimal"


def check_a_batch_is_its_singles(oracle: PlanningOracle) -> None:
    """Solving together or one by one gives the same plans."""
    for planner in _planners(oracle):
        costs = _costs(np.random.default_rng(3), 4)
        together = planner.minimize(costs)
        assert len(together) == 4, "one plan for each cost array"
        for cost, plan in zip(costs, together, strict=True):
            alone = planner.minimize(cost[None])[0]
            assert (alone.actions == plan.actions).all(), "a policy depends on its batch"
            assert abs(alone.objective - plan.objective) <= TOLERANCE, "an objective depends on its batch"


def check_solves_leave_no_trace(oracle: PlanningOracle) -> None:
    """Warm state changes the speed, never the answer; the costs are not written to."""
    for planner in _planners(oracle):
        costs = _costs(np.random.default_rng(4), 6)
        before = costs.copy()
        first = planner.minimize(costs[:1])
        planner.minimize(costs[1:])
        again = planner.minimize(costs[:1])
        assert (first.actions == again.actions).all(), "an earlier solve changed a later answer"
        assert (costs == before).all(), "the planner wrote to the costs"


def check_any_size_of_costs(oracle: PlanningOracle) -> None:
    """Costs of size 1e-8 and 1e8 give the policy of the same costs at size 1."""
    for planner in _planners(oracle):
        costs = _costs(np.random.default_rng(5), 1)
        plain = planner.minimize(costs)
        for size in (1e-8, 1e8):
            scaled = planner.minimize(costs * size)
            assert (scaled.actions == plain.actions).all(), f"costs of size {size:g} give another policy"
            assert np.allclose(scaled.objective, plain.objective * size, rtol=1e-9), f"wrong at size {size:g}"


def check_ties_go_to_the_first_action(oracle: PlanningOracle) -> None:
    """With all costs equal every policy is optimal, and the first action is chosen everywhere."""
    for planner in _planners(oracle):
        plans = planner.minimize(np.ones((1, *SHAPE)))
        assert (plans.actions == 0).all(), "a tie did not go to the first action"


def check_wrong_costs_are_refused(oracle: PlanningOracle) -> None:
    """NaN, infinity and wrong shapes raise `InvalidInput`."""
    for planner in _planners(oracle):
        for wrong in (np.nan, np.inf):
            costs = _costs(np.random.default_rng(6), 1)
            costs[0, 1, 2, 1] = wrong
            assert _refuses(planner, costs), f"costs with {wrong} were accepted"
        assert _refuses(planner, np.zeros((1, 1, 3, 2))), "costs of another shape were accepted"


def check_planners_travel(oracle: PlanningOracle) -> None:
    """A pickled planner binds again and gives the same answer."""
    for planner in _planners(oracle):
        costs = _costs(np.random.default_rng(7), 1)
        travelled = pickle.loads(pickle.dumps(planner))
        assert (travelled.minimize(costs).actions == planner.minimize(costs).actions).all(), "travel changed it"


def check_projections_come_from_a_recipe(oracle: ProjectionOracle) -> None:
    """Frozen settings: hashes, prints, pickles, and names the packages it needs."""
    assert isinstance(oracle, ProjectionOracle), f"{oracle!r} lacks supports, bind or requires"
    travelled = pickle.loads(pickle.dumps(oracle))
    assert travelled == oracle, "a pickled oracle comes back different"
    assert hash(travelled) == hash(oracle), "a pickled oracle hashes differently"
    assert type(oracle).__name__ in repr(oracle), f"{oracle!r} does not name its class"
    assert all(isinstance(name, str) for name in oracle.requires), "requires must be a tuple of package names"


def check_projections_refuse_other_domains(oracle: ProjectionOracle) -> None:
    """`bind` accepts what `supports` accepts, and raises `UnsupportedDomain` otherwise."""
    accepted = [oracle.supports(domain) for domain in sample_domains()]
    assert any(accepted), "the oracle supports none of the sample domains"
    for domain, supported in zip(sample_domains(), accepted, strict=True):
        assert _binds(oracle, domain) == supported, f"supports and bind disagree on {describe(domain)}"


def check_projections_are_right(oracle: ProjectionOracle) -> None:
    """The measure is an occupancy measure, the objective is its own, and the prices prove it nearest."""
    for projector in _projectors(oracle):
        for size in (1.0, 30.0, 1000.0):
            point = size * _point(projector, 8)
            found = projector.project(point)
            what = f"{describe(projector.domain)}, weights down to exp({point.min():.0f})"
            assert found.status is Status.OPTIMAL, f"{what}: a projector returns what is proved, or raises Unsolved"
            assert found.log_measure.shape == point.shape, f"{what}: the measure has another shape than the point"
            assert isinstance(projector.domain, MarkovPolicies)
            proved = certified(projector.domain, point, found.prices, found.report)
            scale = max(1.0, abs(proved.objective))
            assert abs(found.objective - proved.objective) <= NEARNESS * scale, f"{what}: a wrong objective"
            assert proved.gap <= NEARNESS * scale, f"{what}: the prices do not prove it; gap {proved.gap:g}"
            assert np.abs(found.measure - proved.measure).max() <= 1e-3, f"{what}: measure and prices disagree"
            assert _residual(projector.domain, found) <= NEARNESS, f"{what}: not an occupancy measure"


def check_a_measure_is_its_own_projection(oracle: ProjectionOracle) -> None:
    """A point that is an occupancy measure already stays where it is."""
    for projector in _projectors(oracle):
        measure = projector.project(_point(projector, 9))
        again = projector.project(measure.log_measure)
        assert abs(again.objective) <= NEARNESS, "the nearest measure to a measure is not at distance zero"
        assert np.abs(again.measure - measure.measure).max() <= 1e-4, "a measure was moved"


def check_projections_leave_no_trace(oracle: ProjectionOracle) -> None:
    """The same question has the same answer, to the bit; `near` changes the speed only; the point is not written to."""
    for projector in _projectors(oracle):
        point, other = _point(projector, 10), _point(projector, 11)
        before = point.copy()
        first = projector.project(point)
        elsewhere = projector.project(other)
        assert np.array_equal(projector.project(point).log_measure, first.log_measure), "an answer left a trace"
        near = projector.project(point, elsewhere)
        assert abs(near.objective - first.objective) <= NEARNESS * max(1.0, abs(first.objective)), "near moved it"
        assert np.array_equal(point, before), "the projector wrote to the point"


def check_wrong_points_are_refused(oracle: ProjectionOracle) -> None:
    """NaN, infinite weights, wrong shapes, and weights that no occupancy measure can use raise `InvalidInput`."""
    for projector in _projectors(oracle):
        for wrong in (np.nan, np.inf):
            point = _point(projector, 12)
            point[1, 2, 1] = wrong
            assert _refuses_point(projector, point), f"a point with {wrong} was accepted"
        assert _refuses_point(projector, np.zeros((1, 3, 2))), "a point of another shape was accepted"
        point = _point(projector, 12)
        point[2] = -np.inf
        assert _refuses_point(projector, point), "a point without weight in a step was accepted"


def check_projectors_travel(oracle: ProjectionOracle) -> None:
    """A pickled projector binds again and gives the same answer."""
    for projector in _projectors(oracle):
        point = _point(projector, 13)
        travelled = pickle.loads(pickle.dumps(projector))
        assert np.array_equal(travelled.project(point).log_measure, projector.project(point).log_measure), "it changed"


def check_it_plays_policies(recipe: Recipe) -> None:
    """It names its feedback, and every policy drawn is one: `[h, s, a]`, or `[s, a]`, rows that sum to 1."""
    for sample in _samples(recipe):
        assert sample.learner.feedback in (Bandit, FullInformation), f"{sample}: feedback is {sample.learner.feedback}"
        rng = Streams.from_seed(2).learner
        _require_policy(sample, sample.learner.start(sample.domain, rng).draw(rng))  # the arena trusts its shape
        for policy in _policies(sample):
            _require_policy(sample, policy)


def check_seeds_reproduce_a_run(recipe: Recipe) -> None:
    """The same seed gives the same policies, to the bit: all randomness comes from the generator that is handed in."""
    for sample, again in zip(_samples(recipe), _samples(recipe), strict=True):
        first = _policies(sample)
        assert np.array_equal(first, _policies(sample)), f"{sample}: a second run of one seed went another way"
        assert np.array_equal(first, _policies(again)), f"{sample}: made anew, it went another way"


def check_late_feedback_is_taken(recipe: Recipe) -> None:
    """Feedback may come late, in another order, several at once, or never."""
    late = delays.recorded([3, 0, 1, 0, ROUNDS, 5, 0, 2, 1, 0, 0, 0])
    for sample in _samples(recipe):
        if isinstance(sample.game.arena, Episodic):
            delayed = replace(sample, game=replace(sample.game, delays=late))
            assert len(_policies(delayed)) == ROUNDS, f"{sample}: it stopped"


def check_distributions_are_values(recipe: Recipe) -> None:
    """What was drawn from before can be drawn from again: a step makes a new distribution, and changes none."""
    for sample in _samples(recipe):
        rng = Streams.from_seed(4).learner
        distribution = sample.learner.start(sample.domain, rng)
        for k in range(3):
            before = distribution.draw(deepcopy(rng))
            segment = _segment(sample, before)
            weights = sample.learner.weigh(distribution, segment, deepcopy(rng))
            table = sample.game.table(k)
            told = sample.game.feedback.reveal(table, segment, weights)
            after = sample.learner.learn(sample.learner.observe(distribution, segment), told)
            assert np.array_equal(distribution.draw(deepcopy(rng)), before), (
                f"{sample}: learning changed what was there"
            )
            assert np.array_equal(sample.game.table(k), table), f"{sample}: it wrote to the losses"
            distribution = after


def check_weights_fit_the_segment(recipe: Recipe) -> None:
    """One finite weight a step of the segment, or none at all; trials are counted; the domain keeps its kind."""
    for sample in _samples(recipe):
        rng = Streams.from_seed(5).learner
        distribution = sample.learner.start(sample.domain, rng)
        segment = _segment(sample, distribution.draw(rng))
        weights = sample.learner.weigh(distribution, segment, rng)
        assert isinstance(weights, Weights), f"{sample}: weigh gave {type(weights).__name__}, not Weights"
        assert len(weights.values) in (0, len(segment.states)), f"{sample}: {len(weights.values)} weights"
        assert np.isfinite(weights.values).all(), f"{sample}: a weight that is not finite"
        assert weights.trials >= 0, f"{sample}: {weights.trials} trials"
        seen = sample.learner.observe(distribution, segment).domain
        assert isinstance(seen, type(sample.domain)), f"{sample}: observe left {describe(seen)}"
        assert seen.shape == sample.domain.shape, f"{sample}: observe left a domain of shape {seen.shape}"


def check_learners_travel(recipe: Recipe) -> None:
    """A pickled learner plays the same: runs go to other processes."""
    for sample in _samples(recipe):
        travelled = replace(sample, learner=pickle.loads(pickle.dumps(sample.learner)))
        assert np.array_equal(_policies(travelled), _policies(sample)), f"{sample}: travel changed it"


@dataclass(frozen=True, eq=False)
class _Sample:
    """A small game, and the learner that a recipe makes for it."""

    game: ArenaGame
    learner: Learner[Any]
    domain: Domain

    def __str__(self) -> str:
        return f"{type(self.learner).__name__} told {describe(self.domain)}"


def _samples(recipe: Recipe) -> list[_Sample]:
    """Those sample games that the learner accepts: episodes with known and with unknown transitions, and streams."""
    kernel = Kernel(_rows(np.random.default_rng(1)))
    box = BernsteinBox.vacuous(SHAPE, Radius.paper(SHAPE, ROUNDS, scale=0.05))
    walking, mixing = waiting_ring(STREAM, 3).kernel, Kernel.homogeneous(kernel.p[0], STREAM)
    entered = entrance(walking, np.full(3, 1 / 3))
    found = [
        _sample(recipe, Episodic(kernel), MarkovPolicies(kernel), ROUNDS),
        _sample(recipe, Episodic(kernel), MarkovPolicies(box), ROUNDS),
        _sample(recipe, Stepwise(walking), StationaryPolicies(walking), STREAM),
        _sample(recipe, Stepwise(mixing), StationaryPolicies(mixing), STREAM),
        _sample(recipe, Stepwise(entered, 3), StationaryPolicies(entered, 3), STREAM),
    ]
    accepted = [sample for sample in found if sample]
    assert accepted, "the recipe refuses all sample games"
    return accepted


def _sample(recipe: Recipe, arena: Arena, domain: Domain, rounds: int) -> _Sample | None:
    try:
        made = recipe(Task(domain, rounds))
        if isinstance(made, EpochSetup):
            arena, made = Continuing(made.entry, made.length), made.learner
        made.start(domain, Streams.from_seed(1).learner)
    except AmdpError:
        return None
    shape = domain.shape if isinstance(domain, MarkovPolicies) else (1, *domain.shape[1:])
    return _Sample(ArenaGame(arena, uniform(rounds, shape, 1), feedback=made.feedback), made, domain)


def _require_policy(sample: _Sample, policy: Policies) -> None:
    shape = sample.domain.shape if isinstance(sample.domain, MarkovPolicies) else sample.domain.shape[1:]
    assert policy.shape == shape, f"{sample}: a policy of shape {policy.shape}; it must be {shape}"
    assert np.isfinite(policy).all(), f"{sample}: a policy with chances that are not finite"
    assert (policy >= 0.0).all(), f"{sample}: a policy with negative chances"
    assert np.allclose(policy.sum(axis=-1), 1.0, rtol=0, atol=TOLERANCE), f"{sample}: chances do not sum to 1"


def _policies(sample: _Sample) -> Policies:
    """Of a short run, one after the other."""
    most = min(sample.game.rounds, ROUNDS)
    played = play(sample.game, sample.learner, sample.domain, Streams.from_seed(3), most)
    return np.stack([one.policy for one in played])


def _segment(sample: _Sample, policy: Policies) -> Segment:
    """What the policy meets in a round of its own."""
    return sample.game.arena.visit(sample.game.arena.begin(), policy, Streams.from_seed(6).arena).segment


def _rows(rng: np.random.Generator) -> Costs:
    steps, states, actions = SHAPE
    return rng.dirichlet(np.ones(states), size=(steps, states, actions))


def _costs(rng: np.random.Generator, n: int) -> Costs:
    return rng.normal(size=(n, *SHAPE))


def _supported(oracle: PlanningOracle) -> Iterator[Domain]:
    return (domain for domain in sample_domains() if oracle.supports(domain))


def _planners(oracle: PlanningOracle) -> Iterator[Planner]:
    return (oracle.bind(domain) for domain in _supported(oracle))


def _projectors(oracle: ProjectionOracle) -> Iterator[Projector]:
    return (oracle.bind(domain) for domain in sample_domains() if oracle.supports(domain))


def _point(projector: Projector, seed: int) -> Floats:
    return -np.random.default_rng(seed).random(projector.point_shape)


def _residual(domain: MarkovPolicies, found: Projection) -> float:
    """How far a measure is from being one, by the residuals that it reports and by those that are evaluated here."""
    flow, box = flow_residual(domain, found.log_measure), box_residual(domain, found.log_measure)
    return max(flow, box, found.flow_residual, found.box_residual)


def _refuses_point(projector: Projector, point: Floats) -> bool:
    try:
        projector.project(point)
    except InvalidInput:
        return True
    return False


def _is_markov(domain: Domain) -> bool:
    return isinstance(domain, MarkovPolicies)


def _best(domain: Domain, costs: Costs) -> Costs:
    """The optimum `[n]`: by backward induction, or by trying every stationary policy."""
    if _is_markov(domain):
        return BackwardInduction().bind(domain).minimize(costs).objective
    steps, states, actions = domain.shape
    every = np.indices((actions,) * states).reshape(states, -1).T
    unrolled = np.repeat(every[:, None], steps, axis=1).astype(np.int32)
    spread = [evaluate(domain, unrolled, np.repeat(cost[None], len(every), axis=0)).min() for cost in costs]
    return np.array(spread)


def _binds(oracle: PlanningOracle | ProjectionOracle, domain: Domain) -> bool:
    try:
        oracle.bind(domain)
    except UnsupportedDomain:
        return False
    return True


def _refuses(planner: Planner, costs: Costs) -> bool:
    try:
        planner.minimize(costs)
    except InvalidInput:
        return True
    return False
