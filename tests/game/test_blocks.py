"""Blocks of rounds: a learner's compiled form plays the game of its Python methods, to the last bit."""

import pickle
from dataclasses import replace
from operator import attrgetter
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import random_kernel

from amdp import BernsteinBox, InvalidInput, Kernel, MarkovPolicies, StationaryPolicies, losses
from amdp.algorithms.blocks import BlockResult, block_form
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import FullInformation
from amdp.algorithms.estimators.importance_weighting import DelayAdapted, ImplicitExploration, ImportanceWeighting
from amdp.algorithms.estimators.resampling import GeometricResampling
from amdp.algorithms.ftpl.adaptive import AdaptiveFtpl
from amdp.algorithms.ftpl.perturbations import Exponential, Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, LiteralFtpl
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.named import learner as named
from amdp.algorithms.occupancy.measures import (
    MeasureBlocks,
    MirrorDescent,
    RegularizedLeader,
    TiltedMeasure,
    when_doubled,
)
from amdp.algorithms.policy_optimization.learners import DilatedBonus, Evaluation, LossToGo, PolicyOptimization
from amdp.algorithms.rates import AdaptiveRate
from amdp.algorithms.soft_leader import SoftLeader
from amdp.errors import Unsolved
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.blocks import BLOCK, CompiledBlock, block_size
from amdp.game.compiled import Arrivals
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame, play_blocks, play_rounds
from amdp.game.regret import Measurement, measure
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.confidence import Radius
from amdp.model.segments import Pairs, Shape
from amdp.oracles.projection.newton import NewtonProjection

NAMED = (
    *("ftpl", "ftpl-shared", "ftpl-scaled", "ftpl-scaled-per-step", "ftpl-adaptive", "fpl"),
    *("soft-leader", "soft-leader-full", "pomd", "dilated-bonus", "delayed-oppo", "delayed-oppo-full"),
    *("o-reps", "o-reps-full", "o-reps-adaptive", "uob-reps", "uc-o-reps-bernstein", "delayed-uob-reps"),
    "delayed-uob-ftrl",
    "uniform",
)
IN_BOXES = (
    *("ftpl", "ftpl-shared", "ftpl-scaled", "ftpl-scaled-per-step", "ftpl-adaptive", "fpl", "soft-leader"),
    *("pomd", "dilated-bonus", "delayed-oppo", "delayed-oppo-full"),
    *("uob-reps", "uc-o-reps-bernstein", "delayed-uob-reps", "delayed-uob-ftrl", "o-reps-adaptive"),
)
LISTING = ("hedge", "delayed-hedge")  # all policies: for small worlds

# A loop takes seconds to compile for each kind of dynamics: `make slow` plays all of them. What is read of a sparse
# kernel is tested with these learners: mirror descent reads only its visit chances, as the soft leader does. A box
# that stays is read like one that narrows; that nothing is told of it is the same line in all loops.
OVER_SPARSE = ("ftpl", "ftpl-shared", "soft-leader", "dilated-bonus", "uniform")
OVER_BOXES_THAT_STAY = ("ftpl", "ftpl-shared")
SCALED = ("ftpl-scaled", "ftpl-scaled-per-step", "ftpl-adaptive")
UNTUNED = (
    "ftpl-adaptive",
    "soft-leader",
    "soft-leader-full",
    "o-reps-adaptive",
)  # a multiplier has nothing to multiply
WHERE_NOTHING_NARROWS = [
    pytest.param(name, marks=[] if name in OVER_BOXES_THAT_STAY else [pytest.mark.slow])
    for name in (*IN_BOXES, "delayed-hedge")
]
OTHER_WORLDS = [
    pytest.param(kind, name, marks=[] if kind != "sparse" or name in OVER_SPARSE else [pytest.mark.slow])
    for kind in ("homogeneous", "sparse", "deterministic")
    for name in NAMED
    if not (kind == "sparse" and name in SCALED)  # bounds there are found when they are asked for: no compiled form
]
ROUNDS = 40
RNG = np.random.default_rng(6)
DELAYS: dict[str, Delays | None] = {
    "none": None,
    "zero": delays.none(ROUNDS),
    "fixed": delays.fixed(ROUNDS, 7),
    "geometric": delays.geometric(ROUNDS, 9.0, np.random.default_rng(1)),
    "bursts": delays.bursts(ROUNDS, 20, 15),
    "one-huge": delays.one_huge(ROUNDS, 3, 10**18),
    "at the end": delays.all_at_end(ROUNDS),
}


def game_of(
    kind: str, shape: Shape, late: Delays | None, name: str, rounds: int = ROUNDS, multiplier: float = 20.0
) -> tuple[ArenaGame, Any, MarkovPolicies]:
    rng = np.random.default_rng([len(kind), *shape])
    kernel, initial = random_kernel(kind, shape, rng), shape[1] - 1
    domain = MarkovPolicies(kernel, initial)
    scale = 1.0 if name in UNTUNED else multiplier
    waited = 0 if late is None else late.total_within
    player: Any = named(name, domain, rounds, waited, multiplier=scale)
    tables = losses.bernoulli(losses.repeated(rng.random(shape), rounds), 4)
    return ArenaGame(Episodic(kernel, initial), tables, late, player.feedback), player, domain


def game_over(
    box: BernsteinBox, late: Delays | None, name: str, rounds: int = ROUNDS
) -> tuple[ArenaGame, Any, MarkovPolicies]:
    """The learner is told of a box instead of the kernel."""
    game, _, _ = game_of("dense", box.shape, late, name, rounds)
    domain = MarkovPolicies(box, game.arena.initial)
    waited = 0 if late is None else late.total_within
    player: Any = named(name, domain, rounds, waited, multiplier=1.0 if name in UNTUNED else 20.0)
    return game, player, domain


def require_same(game: ArenaGame, player: Any, domain: MarkovPolicies, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds and regret, with blocks that do not end where the game does."""
    assert block_form(player, domain) is not None
    monkeypatch.setattr("amdp.game.blocks.BLOCK", 17)
    one_by_one = list(play_rounds(game, player, domain, Streams.from_seed(2)))
    blocks = list(play_blocks(game, player, domain, Streams.from_seed(2)))
    assert all(isinstance(block, CompiledBlock) for block in blocks)
    together = [record for block in blocks for record in block]
    assert len(together) == game.rounds
    for one, other in zip(one_by_one, together, strict=True):
        assert_array_equal(one.policy, other.policy)
        assert_array_equal(one.segment.states, other.segment.states)
        assert_array_equal(one.segment.actions, other.segment.actions)
        assert (one.k, one.paid, one.trials, one.plans) == (other.k, other.paid, other.trials, other.plans)
        assert (one.rebuilt, one.arrived) == (other.rebuilt, other.arrived)
    slow, quick = (measure(game, played) for played in (one_by_one, blocks))
    for column in ("rounds", "paid", "best", "best_bound", "trials", "oracle_calls", "paid_entering", "rebuilds"):
        assert_array_equal(getattr(slow, column), getattr(quick, column), err_msg=column)


@pytest.mark.parametrize("late", DELAYS)
@pytest.mark.parametrize("name", [*NAMED, *LISTING, "o-ssp"])
def test_blocks_are_the_rounds_to_the_last_bit(name: str, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_same(*game_of("dense", (4, 3, 2), DELAYS[late], name), monkeypatch)


@pytest.mark.parametrize(("kind", "name"), OTHER_WORLDS)
@pytest.mark.parametrize("shape", [(1, 2, 2), (12, 5, 3)])
def test_blocks_of_other_worlds(kind: str, shape: Shape, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_same(*game_of(kind, shape, DELAYS["geometric"], name), monkeypatch)


@pytest.mark.parametrize("scale", [1.0, 0.05, 1e-3])
@pytest.mark.parametrize("late", ["none", "geometric", "at the end"])
@pytest.mark.parametrize("name", [*IN_BOXES, "delayed-hedge"])
def test_blocks_over_a_box_that_narrows(name: str, late: str, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The widest is never left; the narrowest excludes the true kernel, so that rows start again."""
    shape = (4, 3, 2)
    radius = Radius.jin_2020(shape, ROUNDS, scale=scale)
    require_same(*game_over(BernsteinBox.vacuous(shape, radius), DELAYS[late], name), monkeypatch)


class OwnBox(BernsteinBox):
    """Might narrow in any way."""


class OwnRadius(Radius):
    """Might be any rule."""


def test_boxes_have_no_compiled_form_for_what_the_loops_do_not_do() -> None:
    shape = (3, 3, 2)
    learner, radius = Ftpl(Laplace(0.5), WholeTable()), Radius.paper(shape, 9)
    assert block_form(learner, MarkovPolicies(BernsteinBox.vacuous(shape, radius))) is not None
    for box in (OwnBox.vacuous(shape, radius), BernsteinBox.vacuous(shape, OwnRadius.paper(shape, 9))):
        assert block_form(learner, MarkovPolicies(box)) is None


def test_measures_over_boxes_have_no_compiled_form_for_what_the_loops_do_not_do() -> None:
    shape = (3, 3, 2)
    radius, estimator = Radius.jin_2020(shape, 9), ImplicitExploration(0.1)
    told = MarkovPolicies(BernsteinBox.vacuous(shape, radius))
    assert block_form(MirrorDescent(0.1, estimator), told) is not None
    others: list[Any] = [
        MirrorDescent(0.1, estimator, "cvxpy"),
        MirrorDescent(0.1, estimator, refresh=lambda used, gathered: gathered),
        type("Other", (MirrorDescent,), {})(0.1, estimator),
        RegularizedLeader(0.1, type("Other", (ImplicitExploration,), {})(0.1)),
    ]
    assert all(block_form(other, told) is None for other in others)
    for box in (OwnBox.vacuous(shape, radius), BernsteinBox.vacuous(shape, OwnRadius.jin_2020(shape, 9))):
        assert block_form(MirrorDescent(0.1, estimator), MarkovPolicies(box)) is None


def known_box(shape: Shape, scale: float) -> BernsteinBox:
    """A box with some visits, and with bounds that do not come from them: what a learner may be told."""
    p = random_kernel("dense", shape, np.random.default_rng(3)).dense().p
    visits = np.random.default_rng(4).multinomial(3, p)
    visits[-1] = visits[0, 1, 1] = 0
    radius = Radius.jin_2020(shape, ROUNDS, scale=scale)
    return BernsteinBox(np.maximum(0.0, p - 0.3), np.minimum(1.0, p + 0.3), visits, radius)


@pytest.mark.parametrize("late", ["none", "geometric"])
@pytest.mark.parametrize(
    "player",
    [
        MirrorDescent(3.0, ImportanceWeighting()),
        MirrorDescent(0.0, DelayAdapted(0.0), refresh=when_doubled),
        MirrorDescent(0.1, WholeTable(), NewtonProjection(factored_states=2)),
        RegularizedLeader(0.3, DelayAdapted(0.05)),
        RegularizedLeader(0.3, WholeTable(), refresh=when_doubled),
        RegularizedLeader(AdaptiveRate(2.0), WholeTable(), refresh=when_doubled),
        RegularizedLeader(AdaptiveRate(2.0), ImplicitExploration(0.05), refresh=when_doubled),
        RegularizedLeader(AdaptiveRate(0.0), WholeTable()),
        PolicyOptimization(0.3, Evaluation(ImplicitExploration(0.05)), when_doubled),
        PolicyOptimization(0.3, Evaluation(WholeTable()), when_doubled, exploration=0.1),
        PolicyOptimization(0.01, DilatedBonus(0.05, 0.3)),
        PolicyOptimization(0.01, DilatedBonus(0.0), when_doubled, exploration=0.2),
        Hedge(0.7, ImportanceWeighting()),
        Hedge(0.7, WholeTable()),
    ],
)
def test_blocks_over_a_box_that_was_known_in_part(player: Any, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    box = known_box((4, 3, 2), 0.3)
    game, _, domain = game_over(box, DELAYS[late], "ftpl")
    require_same(ArenaGame(game.arena, game.losses, game.delays, player.feedback), player, domain, monkeypatch)


@pytest.mark.parametrize(
    "player",
    [
        RegularizedLeader(900.0, WholeTable(), refresh=when_doubled),  # when a policy is drawn
        RegularizedLeader(AdaptiveRate(900.0), WholeTable()),  # when a rate adapts too
        RegularizedLeader(AdaptiveRate(900.0), ImplicitExploration(0.5), refresh=when_doubled),
    ],
)
def test_masses_too_faint_for_compiled_sums_are_left_to_python(player: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss of 1 takes the share of an action to `exp(-900)`: the plain certificate has to agree."""
    played, learned = Mock(wraps=MeasureBlocks._played), Mock(wraps=MeasureBlocks._learned)
    monkeypatch.setattr(MeasureBlocks, "_played", lambda *given: played(*given))
    monkeypatch.setattr(MeasureBlocks, "_learned", lambda *given: learned(*given))
    box = BernsteinBox.vacuous((3, 2, 2), Radius.jin_2020((3, 2, 2), ROUNDS, scale=0.05))
    game, _, domain = game_over(box, DELAYS["bursts"], "fpl", ROUNDS)
    require_same(ArenaGame(game.arena, game.losses, game.delays, player.feedback), player, domain, monkeypatch)
    assert played.call_count > 4  # blocks: some went on after a stop
    assert learned.called == isinstance(player.rate, AdaptiveRate)


def test_a_learner_of_epochs_keeps_two_boxes_in_blocks_too() -> None:
    shape, rounds = (4, 3, 2), 100
    box = BernsteinBox.vacuous(shape, Radius.jin_2020(shape, rounds, scale=0.05))
    game, player, domain = game_over(box, None, "uob-reps", rounds)
    blocks: Any = play_blocks(game, player, domain, Streams.from_seed(1))
    next(blocks)
    found, rng = blocks._distribution, Streams.from_seed(1)
    state = player.start(domain, rng.learner)
    for record in play_rounds(game, player, domain, Streams.from_seed(1)):
        state = player.observe(state, record.segment)
    for name in ("lower", "upper", "visits", "fallbacks"):
        assert_array_equal(getattr(found.gathered, name), getattr(state.gathered, name))
        used, expected = (each.projector.domain.dynamics for each in (found, state))
        assert_array_equal(getattr(used, name), getattr(expected, name))
    assert (used.visits.sum(), found.gathered.visits.sum()) == (expected.visits.sum(), 3 * rounds)
    assert 0 < used.visits.sum() < 3 * rounds


def test_a_distribution_that_was_kept_is_not_changed_by_later_blocks() -> None:
    box = BernsteinBox.vacuous((4, 3, 2), Radius.jin_2020((4, 3, 2), ROUNDS, scale=0.05))
    game, player, domain = game_over(box, None, "ftpl-scaled", 3 * BLOCK)
    played: Any = play_blocks(game, player, domain, Streams.from_seed(1))
    next(played)
    kept = played._distribution
    before = pickle.dumps((kept.total, kept.domain.dynamics, kept.reach.known, kept.reach.visits))
    next(played)
    assert pickle.dumps((kept.total, kept.domain.dynamics, kept.reach.known, kept.reach.visits)) == before


@pytest.mark.parametrize("name", WHERE_NOTHING_NARROWS)
def test_blocks_over_a_box_of_one_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing follows the only step, so nothing is learned of the moves."""
    box = BernsteinBox.vacuous((1, 2, 2), Radius.jin_2020((1, 2, 2), ROUNDS))
    require_same(*game_over(box, None, name), monkeypatch)


@pytest.mark.parametrize("name", WHERE_NOTHING_NARROWS[:-1])
def test_blocks_over_a_box_that_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in ((1, 2, 2), (5, 4, 3)):
        kernel = random_kernel("dense", shape, np.random.default_rng(3))
        lower, upper = np.maximum(0.0, kernel.dense().p - 0.1), np.minimum(1.0, kernel.dense().p + 0.1)
        require_same(*game_over(BernsteinBox(lower, upper), None, name), monkeypatch)


@pytest.mark.parametrize("kind", ["homogeneous", "sparse", "deterministic"])
@pytest.mark.parametrize("shape", [(1, 2, 2), (1, 2, 7), (3, 4, 2), (3, 3, 3)])
@pytest.mark.parametrize("name", LISTING)
def test_blocks_of_small_worlds(kind: str, shape: Shape, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_same(*game_of(kind, shape, DELAYS["geometric"], name), monkeypatch)


@pytest.mark.parametrize("late", ["none", "geometric"])
@pytest.mark.parametrize(
    "player",
    [
        SoftLeader(0.3),
        SoftLeader(0.3, ImplicitExploration(0.05)),
        SoftLeader(AdaptiveRate(2.0), ImplicitExploration(0.05)),
        SoftLeader(0.3, WholeTable()),
        Ftpl(Laplace(0.5), WholeTable()),
        Ftpl(Exponential(0.5), WholeTable()),
        PolicyOptimization(0.3, Evaluation(ImportanceWeighting()), exploration=0.1),
        PolicyOptimization(0.3, Evaluation(ImplicitExploration(0.05)), when_doubled),
        PolicyOptimization(0.3, Evaluation(WholeTable()), exploration=1.0),
        PolicyOptimization(0.0, Evaluation(WholeTable())),
        PolicyOptimization(0.3, DilatedBonus(0.05), exploration=0.2),
        PolicyOptimization(0.01, DilatedBonus(0.0)),
        MirrorDescent(0.3, ImplicitExploration(0.05)),
        MirrorDescent(0.0, ImportanceWeighting()),
        MirrorDescent(3.0, ImportanceWeighting(), NewtonProjection(factored_states=2)),
        RegularizedLeader(0.3, ImportanceWeighting()),
        RegularizedLeader(0.3, DelayAdapted(0.05)),
        RegularizedLeader(0.3, WholeTable()),
        RegularizedLeader(AdaptiveRate(2.0), ImplicitExploration(0.05)),
        RegularizedLeader(AdaptiveRate(2.0), WholeTable()),
        RegularizedLeader(AdaptiveRate(0.0), WholeTable()),
    ],
)
def test_blocks_of_learners_without_a_name(player: Any, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game, _, domain = game_of("dense", (5, 4, 3), DELAYS[late], "ftpl")
    require_same(ArenaGame(game.arena, game.losses, game.delays, player.feedback), player, domain, monkeypatch)


@pytest.mark.parametrize("late", ["none", "geometric"])
@pytest.mark.parametrize("estimator", [ImportanceWeighting(), ImplicitExploration(0.05), WholeTable()])
def test_blocks_of_hedge_without_a_name(estimator: Any, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game, _, domain = game_of("dense", (3, 3, 3), DELAYS[late], "ftpl")
    player = Hedge(0.7, estimator)
    require_same(ArenaGame(game.arena, game.losses, game.delays, player.feedback), player, domain, monkeypatch)


class OwnHedge(Hedge):
    """Might do anything."""


def test_hedge_has_no_compiled_form_for_what_its_loops_do_not_do() -> None:
    _, _, domain = game_of("dense", (3, 3, 2), None, "hedge")
    others: list[Any] = [GeometricResampling(5), DelayAdapted(0.1)]
    assert all(block_form(Hedge(0.1, estimator), domain) is None for estimator in others)
    assert block_form(OwnHedge(0.1, ImportanceWeighting()), domain) is None
    for box in (OwnBox.vacuous((3, 3, 2)), BernsteinBox.vacuous((3, 3, 2), OwnRadius.paper((3, 3, 2), 9))):
        assert block_form(Hedge(0.1, ImplicitExploration(0.1)), MarkovPolicies(box)) is None
    stationary = StationaryPolicies(Kernel.homogeneous(np.eye(2)[:, None], 3))
    assert block_form(Hedge(0.1, ImportanceWeighting()), stationary) is None


def test_hedge_that_lost_count_says_so_in_a_block_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a policy incurred is NaN only after weights that were not finite."""
    game, player, domain = game_of("dense", (3, 3, 2), None, "hedge")
    start = player.start(domain, np.random.default_rng(0))
    start.incurred[5] = np.nan
    monkeypatch.setattr(Hedge, "start", lambda *_: start)
    assert what_is_said(play_rounds, game, player, domain) == what_is_said(play_blocks, game, player, domain)


class OwnEvaluation(Evaluation):
    """Might do anything."""


class OwnOptimization(PolicyOptimization):
    """Might do anything."""


def test_policy_optimization_has_no_compiled_form_for_what_its_loops_do_not_do() -> None:
    _, _, domain = game_of("dense", (3, 3, 2), None, "pomd")
    critic, estimator = DilatedBonus(0.1), ImplicitExploration(0.1)
    others = [
        OwnOptimization(0.1, critic),
        PolicyOptimization(0.1, OwnEvaluation(estimator)),
        PolicyOptimization(0.1, Evaluation(DelayAdapted(0.1))),
        PolicyOptimization(0.1, Evaluation(LossToGo(0.1))),
        PolicyOptimization(0.1, critic, lambda used, gathered: gathered),
    ]
    assert all(block_form(other, domain) is None for other in others)
    assert block_form(PolicyOptimization(0.1, critic), domain) is not None


@pytest.mark.parametrize("name", ["o-ssp", "pomd", "dilated-bonus"])
def test_sums_that_are_not_numbers_are_refused_in_a_block_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game, player, domain = game_of("dense", (3, 3, 2), None, name)
    start = player.start(domain, np.random.default_rng(0))
    start.total[1, 2, 0] = np.nan
    monkeypatch.setattr(PolicyOptimization, "start", lambda *_: start)
    assert what_is_said(play_rounds, game, player, domain) == what_is_said(play_blocks, game, player, domain)


def what_is_said(play: Any, game: ArenaGame, player: Any, domain: MarkovPolicies) -> str:
    """How a game is refused whose chances are not numbers."""
    with pytest.raises(InvalidInput, match="was visited, but its chance is nan") as refused:
        list(play(game, player, domain, Streams.from_seed(1)))
    return str(refused.value)


def test_who_has_no_compiled_form_plays_in_python() -> None:
    game, player, domain = game_of("dense", (4, 3, 2), None, "ftpl")
    literal = LiteralFtpl(player.perturbation, player.estimator)
    for other in (literal, Ftpl(player.perturbation, player.estimator, "lp")):
        assert block_form(other, domain) is None
    assert block_form(MirrorDescent(0.1, ImportanceWeighting(), "cvxpy"), domain) is None
    assert block_form(type("Other", (MirrorDescent,), {})(0.1, ImportanceWeighting()), domain) is None
    assert block_form(MirrorDescent(0.1, type("Other", (ImportanceWeighting,), {})()), domain) is None
    assert block_form(RegularizedLeader(type("Other", (AdaptiveRate,), {})(1.0), WholeTable()), domain) is None
    assert block_form(SoftLeader(0.3, type("Other", (ImportanceWeighting,), {})()), domain) is None
    assert block_form(SoftLeader(type("Other", (AdaptiveRate,), {})(1.0)), domain) is None
    [block] = play_blocks(game, literal, domain, Streams.from_seed(1))
    assert not isinstance(block, CompiledBlock)
    assert len(block) == ROUNDS


def test_a_game_may_end_early() -> None:
    game, player, domain = game_of("dense", (4, 3, 2), DELAYS["fixed"], "ftpl-shared")
    some = [record for block in play_blocks(game, player, domain, Streams.from_seed(1), 23) for record in block]
    every = list(play_rounds(game, player, domain, Streams.from_seed(1)))
    assert [record.paid for record in some] == [record.paid for record in every[:23]]


def test_slots_hold_what_waits_and_nothing_else() -> None:
    for late in DELAYS.values():
        if late is None:
            continue
        arrivals = Arrivals.of(late)
        in_use: dict[int, int] = {}
        most = 0
        for k in range(ROUNDS):
            slot = int(arrivals.slots[k])
            assert (slot >= 0) == (k + int(late.values[k]) < ROUNDS)
            assert slot not in in_use
            if slot >= 0:
                in_use[slot] = k
            most = max(most, len(in_use))
            for j in late.arrivals(k):
                assert in_use.pop(int(arrivals.slots[j])) == j
        assert not in_use
        assert arrivals.n_slots == most


def test_costs_that_are_not_finite_are_refused_in_a_block_too() -> None:
    game, player, domain = game_of("dense", (4, 3, 2), None, "ftpl-shared")
    broken = Ftpl(Laplace(1e-308), player.estimator)
    with pytest.raises(InvalidInput, match="not finite"):
        list(play_blocks(game, broken, domain, Streams.from_seed(1)))


@pytest.mark.parametrize("late", ["none", "fixed", "at the end"])
@pytest.mark.parametrize("name", ["o-reps", "o-reps-full", "o-reps-adaptive", "delayed-uob-ftrl"])
def test_a_block_leaves_the_measure_that_its_rounds_leave(
    name: str, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: dict[str, TiltedMeasure] = {}
    game, player, domain = game_of("dense", (4, 3, 2), DELAYS[late], name)
    methods = MeasureBlocks.play, type(player).observe, type(player).learn

    def play(form: MeasureBlocks, *given: Any) -> tuple[TiltedMeasure, BlockResult]:
        left["block"], result = methods[0](form, *given)
        return left["block"], result

    def observe(learner: Any, *given: Any) -> TiltedMeasure:
        left["rounds"] = methods[1](learner, *given)
        return left["rounds"]

    def learn(learner: Any, *given: Any) -> TiltedMeasure:
        left["rounds"] = methods[2](learner, *given)
        return left["rounds"]

    monkeypatch.setattr(MeasureBlocks, "play", play)
    monkeypatch.setattr(type(player), "observe", observe)
    monkeypatch.setattr(type(player), "learn", learn)
    for plays in (play_rounds, play_blocks):
        list(plays(game, player, domain, Streams.from_seed(2), 23))
    one, other = left["rounds"], left["block"]
    assert (one.rate, one.stands) == (other.rate, other.stands)
    for part in ("prior", "total", "last.prices", "last.log_measure", "played.policy", "projection.policy"):
        assert_array_equal(attrgetter(part)(one), attrgetter(part)(other), err_msg=part)


def one_step_game(tables: list[list[float]], player: Any) -> tuple[ArenaGame, MarkovPolicies]:
    """Each round has one step in one state, and the losses of its actions."""
    kernel = random_kernel("dense", (1, 1, len(tables[0])), np.random.default_rng(1))
    game = ArenaGame(Episodic(kernel, 0), FixedLosses(np.array(tables)[:, None, None]), None, player.feedback)
    return game, MarkovPolicies(kernel, 0)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_block_goes_on_after_a_round_that_its_projection_leaves_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss of 2 at this rate leaves an action no weight at all, which the compiled projection does not take."""
    player = MirrorDescent(1e308, ImportanceWeighting())
    game, domain = one_step_game([[1.0, 1.0, 1.0]] + 30 * [[0.0, 0.0, 0.0]], player)
    require_same(game, player, domain, monkeypatch)
    policies = np.concatenate([block.policies for block in play_blocks(game, player, domain, Streams.from_seed(2))])
    assert (policies[1:] == 0.0).sum() == 30


@pytest.mark.parametrize(
    "player",
    [
        MirrorDescent(1.0, ImportanceWeighting(), NewtonProjection(iterations=0)),  # when a policy is drawn
        RegularizedLeader(1.0, WholeTable(), NewtonProjection(iterations=0)),
        RegularizedLeader(
            AdaptiveRate(20.0), ImportanceWeighting(), NewtonProjection(iterations=2, gap=1e-12)
        ),  # later
    ],
)
def test_projections_without_a_proof_end_a_block_as_they_end_a_round(player: Any) -> None:
    game, _, domain = game_of("dense", (4, 3, 2), DELAYS["fixed"], "o-reps")
    game = ArenaGame(game.arena, game.losses, game.delays, player.feedback)
    said = []
    for play in (play_rounds, play_blocks):
        with pytest.raises(Unsolved, match="newton ended feasible") as caught:
            list(play(game, player, domain, Streams.from_seed(1)))
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_visit_without_a_chance_is_refused_in_a_block_too() -> None:
    game, _, domain = game_of("dense", (4, 3, 2), None, "o-reps")
    told = MarkovPolicies(random_kernel("deterministic", domain.shape, np.random.default_rng(1)), domain.initial)
    said = []
    for play in (play_rounds, play_blocks):
        with pytest.raises(InvalidInput, match="was visited") as caught:
            list(play(game, MirrorDescent(0.1, ImportanceWeighting()), told, Streams.from_seed(1)))
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_blocks_are_long_and_hold_no_more_than_they_should() -> None:
    game, player, domain = game_of("dense", (4, 3, 2), None, "fpl", 2 * BLOCK + 3)
    assert game.feedback is FullInformation
    assert [len(block) for block in play_blocks(game, player, domain, Streams.from_seed(1))] == [BLOCK, BLOCK, 3]


@pytest.mark.parametrize("late", ["none", "geometric"])
@pytest.mark.parametrize("name", [*NAMED, *LISTING])
def test_a_game_goes_on_from_its_state_to_the_last_bit(name: str, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_resumed(*game_of("dense", (4, 3, 2), DELAYS[late], name), monkeypatch)


@pytest.mark.parametrize("scale", [0.05, 1e-3])
@pytest.mark.parametrize("name", [*IN_BOXES, "delayed-hedge"])
def test_a_game_over_a_box_goes_on_from_its_state_too(name: str, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    box = BernsteinBox.vacuous((4, 3, 2), Radius.jin_2020((4, 3, 2), ROUNDS, scale=scale))
    require_resumed(*game_over(box, DELAYS["geometric"], name), monkeypatch)


def require_resumed(game: ArenaGame, player: Any, domain: MarkovPolicies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amdp.game.blocks.BLOCK", 17)

    def begun() -> tuple[Any, Measurement]:
        return play_blocks(game, player, domain, Streams.from_seed(2)), Measurement(game, None, [5, 20, 35, ROUNDS])

    played, whole = begun()
    for block in played:
        whole.add(block)
    killed, until = begun()
    for _ in range(2):
        until.add(next(killed))
    rest, on = begun()
    rest.resume(killed.state())
    on.resume(until.state())
    for block in rest:
        on.add(block)
    for ours, theirs in ((rest.state(), played.state()), (on.state(), whole.state())):
        assert ours.keys() == theirs.keys()
        for part, value in ours.items():
            if "spent" in part or "cpu" in part:
                assert (value > 0.0).any(), part
            elif not part.startswith("space"):  # what has arrived may be overwritten
                assert_array_equal(value, theirs[part], err_msg=part)
    assert (on.state()["sum spent"] >= until.state()["sum spent"]).all()


@pytest.mark.parametrize("late", ["none", "geometric"])
def test_a_limit_that_grows_within_a_block(late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amdp.algorithms.ftpl.adaptive.LEAST_LIMIT", 1)
    require_same(*game_of("dense", (4, 3, 2), DELAYS[late], "ftpl-adaptive"), monkeypatch)


def test_a_block_has_room_for_its_losses_and_ends_in_time() -> None:
    assert block_size((3, 3, 2)) == BLOCK
    assert block_size((1, 10, 10**7)) == 1
    assert 1 <= block_size((10, 100, 4)) < 10
    assert block_size((100, 1, 10_000)) == 2


def test_full_information_that_comes_late_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amdp.game.compiled.BLOCK_NUMBERS", 10 * 24)
    game, player, domain = game_of("dense", (4, 3, 2), delays.fixed(ROUNDS, 7), "fpl")
    blocks = list(play_blocks(game, player, domain, Streams.from_seed(2)))
    assert max(len(block) for block in blocks[1:]) <= 10
    together = [record.paid for block in blocks for record in block]
    assert together == [record.paid for record in play_rounds(game, player, domain, Streams.from_seed(2))]


class OwnLearner(Ftpl):
    """Another learner."""


class OwnNoise(Laplace):
    """Another law."""


class OwnArena(Episodic):
    """Another arena."""


class OwnAdaptive(AdaptiveFtpl):
    """Another learner."""


class Watched:
    """A wrapper that passes everything on."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)


def test_what_somebody_made_of_a_learner_or_an_arena_is_not_passed_by() -> None:
    game, player, domain = game_of("dense", (4, 3, 2), None, "ftpl")
    adaptive: Any = named("ftpl-adaptive", domain, ROUNDS)
    own = OwnAdaptive(adaptive.rate, adaptive.resampling)
    others = (OwnLearner(player.perturbation, player.estimator), Ftpl(OwnNoise(0.5), player.estimator), own)
    for other in (*others, Watched(player)):
        assert block_form(other, domain) is None
    elsewhere = ArenaGame(OwnArena(game.arena.kernel, game.arena.initial), game.losses)
    [block] = play_blocks(elsewhere, player, domain, Streams.from_seed(1))
    assert not isinstance(block, CompiledBlock)


@pytest.mark.parametrize("shape", [(4, 3, 3), (4, 30, 2), (40, 3, 2), (3, 2)])
def test_policies_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    game, player, domain = game_of("dense", (4, 3, 2), None, "ftpl")
    [first, *_] = play_rounds(game, player, domain, Streams.from_seed(1))
    with pytest.raises(InvalidInput, match="shape"):
        measure(game, [replace(first, policy=np.full(shape, 1.0 / shape[-1]))])
    with pytest.raises(InvalidInput, match="shape"):
        game.arena.kernel.walk(np.full(shape, 1.0 / shape[-1]), 0, np.zeros((4, 2)))


def test_visits_of_pairs_in_any_order() -> None:
    kernel = random_kernel("dense", (4, 3, 2), np.random.default_rng(2))
    policy, steps = np.full((4, 3, 2), 0.5), np.array([3, 1, 0, 2])
    pairs = Pairs(steps, np.array([0, 1, 2, 0]), np.zeros(4, np.int64))
    expected = kernel.occupancy(policy[None], 2)[0][steps, pairs.states, pairs.actions]
    assert_allclose(kernel.visits(policy, 2, pairs), expected, rtol=1e-13)
