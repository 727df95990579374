"""The reach of states against all policies, and what trials of scaled resampling know of their chances."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from worlds import KINDS, World, all_policies, box_around, box_worlds, kernel_worlds, plain_values, random_kernel

import amdp.model.reach
from amdp import BernsteinBox, Kernel, MarkovPolicies, Radius, Segment, SparseKernel, StationaryPolicies, one_hot
from amdp.arrays import Actions, Floats
from amdp.model.dynamics import Dynamics
from amdp.model.reach import (
    LOOK_BACK,
    AnyReach,
    BoxReach,
    CompiledReach,
    ForwardReach,
    StationaryReach,
    TwoStepReach,
    reach,
    reach_of,
)
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.verification.worlds import occupancies

ROUNDING = 1e-12
STEPS, STATES, ACTIONS = 3, 3, 2  # 512 policies


def visits(kernel: SingleKernel, actions: Actions, initial: int) -> Floats:
    """Where the policies `[n, h, s]` are, `[n, h, s]`, by plain array operations."""
    return np.asarray(occupancies(kernel.dense().p, actions, initial).sum(axis=3))


def some_policies(n: int, shape: Shape, rng: np.random.Generator) -> Actions:
    return rng.integers(shape[2], size=(n, *shape[:2])).astype(np.int32)


def visited(dynamics: Dynamics, initial: int, actions: Actions, rng: np.random.Generator) -> Segment:
    """A segment that one of the policies could have: its actions in states of positive chance."""
    steps, states, _ = dynamics.shape
    policy = actions[rng.integers(len(actions))]
    walked = np.empty(steps, np.int64)
    at = np.eye(states)[initial]
    for h in range(steps):
        walked[h] = rng.choice(np.flatnonzero(at > 0.0))
        if h < steps - 1:
            most = -dynamics.least_expectation(h, -np.eye(states))  # [y, s, a]
            at = most[:, walked[h], policy[h, walked[h]]]
    return Segment(walked, policy[np.arange(steps), walked].astype(np.int64))


def chances_of(kind: CompiledReach, actions: Actions, segment: Segment, uniforms: Floats | None = None) -> Floats:
    wanted = np.ones((len(actions), len(segment.states)), bool)
    numbers = np.zeros((len(actions), kind.path_numbers(segment))) if uniforms is None else uniforms
    return kind.chances(actions, segment, wanted, numbers)


# --- the reach --------------------------------------------------------------------------------------------------------


@given(kernel_worlds(STEPS, STATES, ACTIONS, n=1))
@settings(max_examples=60, deadline=None)
def test_the_reach_is_the_greatest_chance_of_all_deterministic_policies(world: World) -> None:
    kernel, initial = world.domain.dynamics, world.domain.initial
    assert isinstance(kernel, SingleKernel)
    best = visits(kernel, all_policies(kernel.shape), initial).max(axis=0)
    assert_allclose(reach(kernel, initial), best, atol=ROUNDING)


@pytest.mark.parametrize("kind", ["dense", "homogeneous"])
def test_the_reach_is_the_same_however_many_targets_are_held_together(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = (4, 5, 2)
    kernel = random_kernel(kind, shape, np.random.default_rng(12))
    together = reach(kernel, 1)
    for targets in (1, 2, 4):
        monkeypatch.setattr(amdp.model.reach, "BATCH_NUMBERS", targets * shape[1] * shape[2])
        assert_allclose(reach(kernel, 1), together, atol=ROUNDING)


def _optimum(domain: MarkovPolicies, h: int, s: int) -> float:
    """The least expected cost if being in `s` at step `h` costs -1: by an oracle."""
    return float(amdp.plan("dp", domain, -_indicator(domain.shape, h, s)).objective)


def _indicator(shape: Shape, h: int, s: int) -> Floats:
    cost = np.zeros(shape)
    cost[h, s] = 1.0
    return cost


@given(kernel_worlds(STEPS, STATES, ACTIONS, n=1))
@settings(max_examples=40, deadline=None)
def test_the_reach_is_backward_induction_on_indicators(world: World) -> None:
    kernel, initial = world.domain.dynamics, world.domain.initial
    found = reach(kernel, initial)
    for h, s in product(*map(range, kernel.shape[:2])):
        plain = plain_values(world.domain, -_indicator(kernel.shape, h, s))[0, initial]
        assert found[h, s] == pytest.approx(-plain, abs=ROUNDING)


@given(box_worlds(STEPS, STATES, ACTIONS, n=1))
@settings(max_examples=40, deadline=None)
def test_the_reach_over_a_box_is_the_optimum_over_policies_and_kernels(world: World) -> None:
    box, initial = world.domain.dynamics, world.domain.initial
    assert isinstance(box, BernsteinBox)
    found, compiled = reach(box, initial), BoxReach.unknown(box, initial)
    for h, s in product(*map(range, box.shape[:2])):
        by_vertices = -plain_values(world.domain, -_indicator(box.shape, h, s))[0, initial]
        assert found[h, s] == pytest.approx(by_vertices, abs=1e-11)
        assert found[h, s] == pytest.approx(-_optimum(world.domain, h, s), abs=1e-11)
        alone = compiled.bounds(Segment(np.array([s]), np.array([0]), start=h))
        assert alone[0] == pytest.approx(by_vertices, abs=1e-11)


@given(st.one_of(kernel_worlds(STEPS, STATES, ACTIONS, n=1), box_worlds(STEPS, STATES, ACTIONS, n=1)))
@settings(max_examples=40, deadline=None)
def test_the_sum_of_the_reach_is_between_one_and_the_number_of_states(world: World) -> None:
    found = reach(world.domain.dynamics, world.domain.initial)
    assert (found >= 0.0).all()
    assert (found <= 1.0).all()
    assert_array_equal(found[0], np.eye(found.shape[1])[world.domain.initial])
    sums = found.sum(axis=1)
    assert (sums >= 1.0 - ROUNDING).all()
    assert (sums <= found.shape[1] + ROUNDING).all()


def test_where_moves_are_deterministic_the_reach_counts_the_states_that_can_be_reached() -> None:
    moves = np.array([[1, 2], [1, 2], [0, 2], [3, 3]])  # [s, a]; nothing leads to state 3
    kernel = Kernel.homogeneous(np.eye(4)[moves], 4)
    assert_array_equal(reach(kernel, 0).sum(axis=1), [1, 2, 3, 3])
    assert_array_equal(reach(kernel, 3).sum(axis=1), [1, 1, 1, 1])


# --- bounds and chances -----------------------------------------------------------------------------------------------


@st.composite
def spiky_worlds(draw: st.DrawFn) -> MarkovPolicies:
    """Kernels whose rows are nearly deterministic here and spread there, or of one of the usual kinds."""
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(("spiky", *KINDS)))
    if kind != "spiky":
        return MarkovPolicies(random_kernel(kind, shape, rng), 0)
    weights = 10.0 ** rng.integers(-2, 2, size=shape)
    p = np.stack([rng.dirichlet(np.full(shape[1], weight)) for weight in weights.reshape(-1)])
    return MarkovPolicies(Kernel(p.reshape(*shape, shape[1])), int(rng.integers(shape[1])))


@given(spiky_worlds(), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_no_chance_of_a_trial_exceeds_its_bound(domain: MarkovPolicies, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = reach_of(domain)
    assert isinstance(kind, TwoStepReach | ForwardReach)
    actions = some_policies(40, domain.shape, rng)
    segment = visited(domain.dynamics, domain.initial, actions, rng)
    uniforms = rng.random((40, kind.path_numbers(segment)))
    bounds = kind.bounds(segment)
    assert (chances_of(kind, actions, segment, uniforms) <= bounds + ROUNDING).all()
    assert (reach(domain.dynamics, domain.initial)[segment.places[:2]] <= bounds + ROUNDING).all()
    for limit in (1, 7, 1000):
        scales, limits = kind.scaled(segment, limit)
        assert (scales >= bounds - ROUNDING).all()
        assert (scales < np.maximum(bounds + 1.0 / limit, 2.0 / limit) + ROUNDING).all()
        assert_allclose(limits / scales, limit, rtol=1e-14)


@pytest.mark.parametrize("kind", ["dense", "homogeneous", "deterministic"])
def test_two_step_bounds_are_no_larger_than_they_must_be(kind: str) -> None:
    """The policy that does its best from the best state two steps earlier attains the bound."""
    shape, initial = (5, 4, 3), 2
    kernel = random_kernel(kind, shape, np.random.default_rng(2)).dense()
    bounds = [TwoStepReach(kernel, initial).bounds(Segment(np.full(5, s), np.zeros(5, int))) for s in range(4)]
    for h, s in product(range(2, 5), range(4)):
        from_each = np.einsum("xaz,z->xa", kernel.p[h - 2], kernel.p[h - 1, :, :, s].max(axis=1)).max(axis=1)
        assert bounds[s][h] == pytest.approx(from_each[initial] if h == 2 else from_each.max(), abs=ROUNDING)


def test_the_mean_of_two_step_chances_over_all_paths_is_the_occupancy() -> None:
    """Every path of the states that are drawn, steered there by uniform numbers in the middle of each interval."""
    rng = np.random.default_rng(3)
    for kind, initial in product(("dense", "homogeneous", "layered"), (0, 2)):
        shape = (5, 3, 2)
        kernel = random_kernel(kind, shape, rng)
        if kind == "layered" and initial:
            continue
        actions = some_policies(6, shape, rng)
        exact = occupancies(kernel.dense().p, actions, initial)
        trials = TwoStepReach(kernel.dense(), initial)
        for policy in range(len(actions)):
            for _ in range(4):
                states = rng.integers(shape[1], size=shape[0])
                segment = Segment(states, actions[policy, np.arange(shape[0]), states].astype(np.int64))
                mean = _over_paths(kernel.dense().p, trials, actions[policy], segment)
                assert_allclose(mean, exact[policy][segment.places], atol=ROUNDING)


@pytest.mark.parametrize("kind", ["dense", "homogeneous"])
def test_the_path_of_a_trial_is_decided_by_its_own_numbers(kind: str) -> None:
    """Trials are independent: each has the chances that it has alone, and others for other numbers."""
    rng = np.random.default_rng(13)
    shape = (6, 4, 2)
    trials = TwoStepReach(random_kernel(kind, shape, rng).dense(), 1)
    actions = np.repeat(some_policies(1, shape, rng), 12, axis=0)  # one policy: only the paths differ
    states = rng.integers(shape[1], size=shape[0])
    segment = Segment(states, actions[0, np.arange(shape[0]), states].astype(np.int64))
    uniforms = rng.random((12, trials.path_numbers(segment)))
    together = chances_of(trials, actions, segment, uniforms)
    alone = [chances_of(trials, actions[i : i + 1], segment, uniforms[i : i + 1])[0] for i in range(12)]
    assert_array_equal(together, alone)
    assert (together[:, 3:].std(axis=0) > 0.0).all()  # from step 3 on a state is drawn


def _over_paths(p: Floats, trials: TwoStepReach, policy: Actions, segment: Segment) -> Floats:
    """The mean `[m]` of the chances over the path of the first `H - 2` states, by its exact law."""
    steps, states = policy.shape
    mean = np.zeros(steps)
    for path in product(range(states), repeat=steps - 3):  # s_1 .. s_{H-3}; s_0 is the initial state
        places = trials.initial, *path
        chance, uniforms = 1.0, np.zeros((1, trials.path_numbers(segment)))
        for h, (here, there) in enumerate(pairwise(places)):
            row = p[h, here, policy[h, here]]
            chance *= row[there]
            uniforms[0, h] = row[:there].sum() + row[there] / 2
        if chance > 0.0:
            mean += chance * chances_of(trials, policy[None], segment, uniforms)[0]
    return mean


@pytest.mark.parametrize("kind", ["sparse", "sparse-homogeneous"])
@pytest.mark.parametrize("initial", [0, 3])
def test_forward_chances_are_the_occupancy(kind: str, initial: int) -> None:
    rng = np.random.default_rng(4)
    shape = (6, 4, 3)
    kernel = random_kernel(kind, shape, rng)
    assert isinstance(kernel, SparseKernel)
    trials, actions = ForwardReach(kernel, initial), some_policies(30, shape, rng)
    exact = occupancies(kernel.dense().p, actions, initial)
    for start in (0, 2):
        for _ in range(20):
            segment = visited(kernel, initial, actions, rng)
            late = Segment(segment.states[start:], segment.actions[start:], start=start)
            places = late.places
            assert_allclose(chances_of(trials, actions, late), exact[:, places[0], places[1], places[2]], atol=ROUNDING)
            assert_allclose(trials.bounds(late), reach(kernel, initial)[places[:2]], atol=ROUNDING)


@pytest.mark.parametrize("width", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("initial", [0, 2])
def test_chances_over_a_box_are_the_upper_occupancy_bounds(width: float, initial: int) -> None:
    rng = np.random.default_rng(5)
    shape = (4, 3, 2)
    box = box_around(random_kernel("dense", shape, rng), width, rng)
    trials, actions = BoxReach.unknown(box, initial), some_policies(25, shape, rng)
    for start in (0, 1):
        for _ in range(10):
            states = rng.integers(3, size=4 - start)
            segment = Segment(states, rng.integers(2, size=4 - start), start=start)
            exact = box.greatest_visits(one_hot(actions, 2), initial, segment.pairs)
            found = chances_of(trials, actions, segment)
            assert_allclose(found, exact, atol=ROUNDING)
            assert (found <= trials.bounds(segment) + ROUNDING).all()


@pytest.mark.parametrize("kind", ["dense", "sparse", "box"])
def test_chances_that_are_not_wanted_are_zero_and_the_others_as_before(kind: str) -> None:
    rng = np.random.default_rng(6)
    shape = (5, 4, 3)
    kernel = random_kernel("sparse" if kind == "sparse" else "dense", shape, rng)
    dynamics = box_around(kernel, 0.1, rng) if kind == "box" else kernel
    trials = reach_of(MarkovPolicies(dynamics, 1))
    assert isinstance(trials, CompiledReach)
    actions = some_policies(30, shape, rng)
    segment = visited(dynamics, 1, actions, rng)
    wanted = rng.random((30, 5)) < 0.5
    uniforms = rng.random((30, trials.path_numbers(segment)))
    everything = chances_of(trials, actions, segment, uniforms)
    assert_array_equal(trials.chances(actions, segment, wanted, uniforms), np.where(wanted, everything, 0.0))


def test_a_set_of_kernels_of_another_shape_has_bounds_of_one() -> None:
    rng = np.random.default_rng(7)
    kernel = random_kernel("dense", (3, 3, 2), rng)
    box = box_around(kernel, 0.2, rng)
    trials = AnyReach(box, 1)
    actions = some_policies(10, (3, 3, 2), rng)
    segment = visited(box, 1, actions, rng)
    assert_array_equal(trials.bounds(segment), 1.0)
    exact = box.greatest_visits(one_hot(actions, 2), 1, segment.pairs)
    assert_array_equal(trials.chances(actions, segment, np.ones((10, 3), bool), np.empty((10, 0))), exact)


# --- stationary policies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["homogeneous", "sparse-homogeneous"])
@pytest.mark.parametrize("initial", [0, 2])
def test_no_stationary_policy_exceeds_the_bounds_at_any_step(kind: str, initial: int) -> None:
    rng = np.random.default_rng(8)
    shape = (3 * LOOK_BACK, 3, 2)
    for _ in range(5):
        kernel = random_kernel(kind, shape, rng)
        domain = StationaryPolicies(kernel, initial)
        trials = StationaryReach(domain)
        every = np.array(list(product(range(2), repeat=3)), dtype=np.int32)
        rows = kernel.dense().p[0]
        bounds = np.stack([trials.bounds(Segment(np.full(shape[0], s), np.zeros(shape[0], int))) for s in range(3)], 1)
        at = np.repeat(np.eye(3)[initial][None], len(every), axis=0)
        for t in range(shape[0]):
            assert (at <= bounds[t] + ROUNDING).all()
            segment = Segment(np.array([t % 3]), np.array([t % 2]), start=t)
            found = trials.chances(every, segment, np.ones((len(every), 1), bool), np.empty((len(every), 0)))
            assert_allclose(found[:, 0], np.where(every[:, t % 3] == t % 2, at[:, t % 3], 0.0), atol=1e-11)
            at = np.einsum("ns,nsy->ny", at, rows[np.arange(3), every])
        # A policy that is entered late follows another one: the bounds hold for every succession of policies.
        for entered, before in product((1, LOOK_BACK - 1, LOOK_BACK, 2 * LOOK_BACK), every):
            at = np.repeat(np.eye(3)[initial][None], len(every), axis=0)
            for t in range(shape[0]):
                assert (at <= bounds[t] + ROUNDING).all()
                at = np.einsum("ns,nsy->ny", at, rows[np.arange(3), every if t >= entered else before[None]])


# --- what a bound keeps of the kernel ---------------------------------------------------------------------------------


def test_batches_are_short_where_few_trials_are_expected() -> None:
    kernel = random_kernel("dense", (4, 6, 2), np.random.default_rng(9))
    assert isinstance(kernel, Kernel)
    trials = TwoStepReach(kernel, 0)
    sizes = trials.batches(Segment(np.zeros(4, int), np.zeros(4, int)))
    assert sizes[0] == 8  # one state: two trials are expected
    assert (sizes[1:] > 8).all()
    assert_array_equal(trials.batches(Segment(np.zeros(2, int), np.zeros(2, int), start=1)), sizes[1:3])


def test_in_a_box_of_all_kernels_every_state_can_be_reached_for_certain() -> None:
    box = BernsteinBox.vacuous((3, 2, 2), Radius.paper((3, 2, 2), 10))
    assert_array_equal(reach(box, 1), [[0, 1], [1, 1], [1, 1]])
    assert_array_equal(BoxReach.unknown(box, 1).bounds(Segment(np.array([1, 0, 1]), np.zeros(3, int))), 1.0)
    assert_array_equal(
        BoxReach.unknown(box, 1).chances(
            np.zeros((1, 3, 2), np.int32),
            Segment(np.array([1, 0, 1]), np.array([0, 0, 1])),
            np.ones((1, 3), bool),
            np.empty((1, 0)),
        ),
        [[1, 1, 0]],
    )


def test_bounds_of_certain_moves_are_at_most_1_despite_rounding() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(6), size=(6, 3))
    kernel = Kernel.homogeneous(np.concatenate([rows, rows[:, :1]], axis=1) @ np.tile(np.eye(6)[0], (6, 1)), 5)
    reach = reach_of(MarkovPolicies(kernel, 3))
    for s in range(6):
        assert (reach.bounds(Segment(np.full(5, s), np.zeros(5, np.int64))) <= 1.0).all()
