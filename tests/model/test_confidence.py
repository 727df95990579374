"""Boxes of kernels: counts, radii, nesting, membership, and upper occupancy bounds."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from worlds import World, box_around, box_worlds, kernel_inside, random_kernel, random_policies, random_rows, seeds

from amdp import (
    BernsteinBox,
    EmptyConfidenceSet,
    InvalidInput,
    Kernel,
    MarkovPolicies,
    Pairs,
    Radius,
    Segment,
    bind,
    occupancy,
)
from amdp.arrays import Floats, one_hot
from amdp.model.segments import Shape

SHAPE = (3, 3, 2)
TIGHT = Radius(log_term=1.0, spread=1.0, offset=0.0, scale=0.05)


def walk(p: Floats, policy: Floats, rng: np.random.Generator) -> Segment:
    """One episode from state 0."""
    steps, states, actions = policy.shape
    seen, done, s = [], [], 0
    for h in range(steps):
        a = int(rng.choice(actions, p=policy[h, s]))
        seen.append(s)
        done.append(a)
        s = int(rng.choice(states, p=p[h, s, a]))
    return Segment(np.array(seen), np.array(done))


# --- radii ----------------------------------------------------------------------------------------------------------


def jin_2022(mean: float, n: int, H: int, S: int, A: int, K: int, delta: float) -> float:
    iota = log(10 * H * S * A * K / delta)
    return 4 * sqrt(mean * iota / max(1, n)) + 10 * iota / max(1, n)


def jin_2020(mean: float, n: int, H: int, S: int, A: int, K: int, delta: float) -> float:
    iota = log(H * S * A * K / delta)
    return 2 * sqrt(mean * iota / max(1, n - 1)) + 14 * iota / (3 * max(1, n - 1))


def luo_2021(mean: float, n: int, H: int, S: int, A: int, K: int, delta: float) -> float:
    iota = log(H * S * A * K / delta)
    return 4 * sqrt(mean * iota / max(1, n)) + 28 * iota / (3 * max(1, n))


Style = Callable[[Shape, int, float | None, float], Radius]
Formula = Callable[[float, int, int, int, int, int, float], float]
STYLES: list[tuple[Style, Formula]] = [
    (Radius.paper, jin_2022),
    (Radius.jin_2020, jin_2020),
    (Radius.luo_2021, luo_2021),
]


@pytest.mark.parametrize(("style", "formula"), STYLES)
@pytest.mark.parametrize("delta", [None, 0.05, 1.0])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_radii_are_the_published_ones(style: Style, formula: Formula, delta: float | None, scale: float) -> None:
    H, S, A, K = 5, 4, 3, 1000
    radius = style((H, S, A), K, delta, scale)
    for n in (0, 1, 2, 17, 5000):
        for mean in (0.0, 0.3, 1.0):
            wanted = scale * formula(mean, n, H, S, A, K, 1 / K if delta is None else delta)
            assert radius(np.array([mean]), np.array([float(n)]))[0] == pytest.approx(wanted, rel=1e-14)


def test_the_chance_of_error_is_one_in_the_number_of_rounds_unless_given() -> None:
    assert Radius.paper(SHAPE, 500) == Radius.paper(SHAPE, 500, 1 / 500)
    assert Radius.paper(SHAPE, 500) != Radius.paper(SHAPE, 500, 0.1)


@pytest.mark.parametrize(
    ("rounds", "delta", "message"), [(0, None, "rounds = 0"), (9, 0.0, "delta"), (9, 1.5, "delta")]
)
def test_radii_without_rounds_or_with_an_impossible_chance_are_refused(
    rounds: int, delta: float | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        Radius.paper(SHAPE, rounds, delta)


# --- counting and narrowing -----------------------------------------------------------------------------------------


def test_before_the_first_episode_every_kernel_is_possible() -> None:
    box = BernsteinBox.vacuous(SHAPE, Radius.paper(SHAPE, 10))
    assert box.shape == SHAPE
    assert not box.lower.any()
    assert (box.upper == 1.0).all()
    assert box.visits is not None
    assert not box.visits.any()
    for kind in ("dense", "deterministic", "sparse", "layered"):
        assert box.contains(random_kernel(kind, SHAPE, np.random.default_rng(0)))


@settings(max_examples=20)
@given(seed=seeds, episodes=st.integers(1, 20))
def test_transitions_are_counted_where_they_happened(seed: int, episodes: int) -> None:
    rng = np.random.default_rng(seed)
    p, policy = random_rows(SHAPE, rng), random_policies(1, SHAPE, rng)[0]
    box = BernsteinBox.vacuous(SHAPE, TIGHT)
    counts = np.zeros((*SHAPE, SHAPE[1]), dtype=np.int64)
    for _ in range(episodes):
        segment = walk(p, policy, rng)
        box = box.narrow(segment)
        for h in range(SHAPE[0] - 1):
            counts[h, segment.states[h], segment.actions[h], segment.states[h + 1]] += 1
    assert_array_equal(box.visits, counts)


def test_a_segment_may_begin_in_a_later_step() -> None:
    box = BernsteinBox.vacuous(SHAPE, TIGHT).narrow(Segment(np.array([2, 0]), np.array([1, 0]), start=1))
    assert box.visits is not None
    assert [tuple(place) for place in np.argwhere(box.visits)] == [(1, 2, 1, 0)]


def test_the_interval_around_the_empirical_mean_has_the_radius() -> None:
    visits = np.zeros((2, 3, 1, 3), dtype=np.int64)
    visits[0, 0, 0] = [30, 60, 10]
    visits[0, 1, 0] = [0, 0, 7]
    radius = Radius.jin_2020((2, 3, 1), 100, scale=0.1)
    box = BernsteinBox.from_counts(visits, radius)
    for s, mean in ((0, [0.3, 0.6, 0.1]), (1, [0.0, 0.0, 1.0])):
        for y in range(3):
            width = 0.1 * jin_2020(mean[y], int(visits[0, s, 0].sum()), 2, 3, 1, 100, 0.01)
            assert box.lower[0, s, 0, y] == pytest.approx(max(0.0, mean[y] - width), abs=1e-14)
            assert box.upper[0, s, 0, y] == pytest.approx(min(1.0, mean[y] + width), abs=1e-14)
    assert not box.lower[0, 2].any()  # never visited: the whole simplex
    assert (box.upper[0, 2] == 1.0).all()


@settings(max_examples=20)
@given(seed=seeds)
def test_boxes_are_nested_and_shrink_where_something_was_seen(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, policy = random_rows(SHAPE, rng), random_policies(1, SHAPE, rng)[0]
    box = BernsteinBox.vacuous(SHAPE, Radius.jin_2020(SHAPE, 100, scale=0.1))
    for _ in range(40):
        segment = walk(p, policy, rng)
        narrower = box.narrow(segment)
        assert narrower.fallbacks == 0
        assert (narrower.lower >= box.lower).all()
        assert (narrower.upper <= box.upper).all()
        seen = np.zeros(SHAPE, dtype=bool)
        seen[np.arange(SHAPE[0] - 1), segment.states[:-1], segment.actions[:-1]] = True
        assert_array_equal(narrower.lower[~seen], box.lower[~seen])
        assert_array_equal(narrower.upper[~seen], box.upper[~seen])
        box = narrower


@settings(max_examples=20)
@given(seed=seeds)
def test_a_narrowed_box_is_what_its_bounds_make_when_they_are_checked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (3, int(rng.integers(2, 20)), 2)
    p, policy = random_rows(shape, rng), random_policies(1, shape, rng)[0]
    box = BernsteinBox.vacuous(shape, Radius.jin_2020(shape, 100, scale=float(10.0 ** rng.uniform(-4, 0))))
    for _ in range(10):
        assert box.rows is box.rows  # laid out once, and not handed on
        box = box.narrow(walk(p, policy, rng))
        checked = BernsteinBox(box.lower, box.upper, box.visits, box.radius, box.fallbacks)
        for part, again in zip(box.rows, checked.rows, strict=True):
            assert_array_equal(part, again)
        assert not box.lower.flags.writeable
        assert not box.upper.flags.writeable


@pytest.mark.parametrize("law", [Radius.paper, Radius.jin_2020, Radius.luo_2021])
def test_narrowing_intersects_the_intervals_of_all_times(law: Callable[..., Radius]) -> None:
    rng = np.random.default_rng(1)
    p, policy = random_rows(SHAPE, rng), random_policies(1, SHAPE, rng)[0]
    radius = law(SHAPE, 100, scale=0.1)
    box = BernsteinBox.vacuous(SHAPE, radius)
    lower, upper = box.lower, box.upper
    for _ in range(60):
        box = box.narrow(walk(p, policy, rng))
        assert box.visits is not None
        newest = BernsteinBox.from_counts(box.visits, radius)
        lower, upper = np.maximum(lower, newest.lower), np.minimum(upper, newest.upper)
    assert box.fallbacks == 0
    assert_array_equal(box.lower, lower)
    assert_array_equal(box.upper, upper)


def test_narrowing_leaves_the_old_box_as_it_was() -> None:
    box = BernsteinBox.vacuous(SHAPE, TIGHT)
    before, rows = pickle.dumps(box), [part.copy() for part in box.rows]
    box.narrow(Segment(np.array([0, 1, 2]), np.array([0, 1, 0])))
    assert pickle.dumps(box) == before
    for part, old in zip(box.rows, rows, strict=True):
        assert_array_equal(part, old)


class Hoeffding(Radius):
    """A radius of one's own."""

    def __call__(self, mean: Floats, visits: Floats) -> Floats:
        return 0.3 + 0.0 * mean


@dataclass(frozen=True, eq=False, repr=False)
class Labelled(BernsteinBox):
    """A box of one's own, with a further field."""

    label: str = "none"


def test_a_radius_of_ones_own_is_asked_and_a_subclass_keeps_its_fields() -> None:
    segment = Segment(np.array([0, 1, 2]), np.array([0, 1, 0]))
    box = BernsteinBox.vacuous(SHAPE, Hoeffding(1.0, 1.0, 1.0)).narrow(segment)
    assert_allclose(box.lower[0, 0, 0, :3], [0.0, 0.7, 0.0])
    assert_allclose(box.upper[0, 0, 0, :3], [0.3, 1.0, 0.3])
    zeros, ones = np.zeros((*SHAPE, SHAPE[1])), np.ones((*SHAPE, SHAPE[1]))
    assert Labelled(zeros, ones, None, TIGHT, label="mine").narrow(segment).label == "mine"


def test_the_budget_of_a_row_is_not_negative() -> None:
    bounds = np.full((2, 2, 1, 2), 0.5 + 4e-12)
    assert (BernsteinBox(bounds, bounds).rows.budget == 0.0).all()


def test_trials_meet_pairs_with_their_greatest_chances() -> None:
    rng = np.random.default_rng(5)
    p = random_rows(SHAPE, rng)
    box = BernsteinBox(np.maximum(0.0, p - 0.1), np.minimum(1.0, p + 0.1))
    steps, states, actions = SHAPE
    policies = rng.integers(0, actions, size=(60, steps, states), dtype=np.int32)
    late = Segment(rng.integers(0, states, steps - 1), rng.integers(0, actions, steps - 1), start=1)
    luck, chances = rng.random((60, steps)), box.greatest_visits(one_hot(policies, actions), 0, late.pairs)
    assert (np.abs(luck[:, 1:] - chances) > 1e-12).all()
    assert_array_equal(box.meets_all(policies, 0, late, luck), luck[:, 1:] < chances)
    which = rng.integers(0, steps - 1, 60)
    met = luck[np.arange(60), 1 + which] < chances[np.arange(60), which]
    assert_array_equal(box.meets(policies, 0, late, which, luck), met)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"segment": Segment(np.array([0, 1, 50]), np.array([0, 0, 0]))}, "segment has s"),
        ({"initial": 1000}, "initial"),
        ({"actions": np.zeros((4, 2, 3), int)}, "actions has shape"),
        ({"uniforms": np.zeros((4, 1))}, "uniforms has shape"),
    ],
)
def test_trials_outside_of_a_box_are_refused(change: dict[str, Any], message: str) -> None:
    steps, states, _ = SHAPE
    asked: dict[str, Any] = {"actions": np.zeros((4, steps, states), int), "initial": 0}
    asked |= {"uniforms": np.zeros((4, steps))}
    asked |= {"segment": Segment(np.zeros(3, int), np.zeros(3, int))} | change
    with pytest.raises(InvalidInput, match=message):
        BernsteinBox.vacuous(SHAPE).meets_all(**asked)


def test_an_empty_intersection_starts_again_from_the_newest_interval_and_is_counted() -> None:
    """First only state 1 is seen, with a radius that believes it at once; then state 0 proves it wrong."""
    shape = (2, 2, 1)
    hasty = Radius(log_term=1.0, spread=0.0, offset=0.01)
    box = BernsteinBox.vacuous(shape, hasty).narrow(Segment(np.array([0, 1]), np.array([0, 0])))
    assert box.fallbacks == 0
    assert box.lower[0, 0, 0, 1] == pytest.approx(0.99)
    disproved = box.narrow(Segment(np.array([0, 0]), np.array([0, 0])))
    assert disproved.fallbacks == 1
    assert_allclose(disproved.lower[0, 0, 0], [0.495, 0.495])
    assert_allclose(disproved.upper[0, 0, 0], [0.505, 0.505])
    again = disproved.narrow(Segment(np.array([0, 0]), np.array([0, 0])))
    assert again.fallbacks == 2
    assert_allclose(again.lower[0, 0, 0], [2 / 3 - 0.01 / 3, 1 / 3 - 0.01 / 3])
    assert "2 fallbacks" in repr(again)


@pytest.mark.parametrize(
    ("old_lower", "old_upper", "visits", "offset", "to", "lower", "upper"),
    [
        ([0.4, 0.4, 0.0], [1.0, 1.0, 1.0], [37, 36, 26], 4.0, 1, [0.33, 0.33, 0.22], [0.41, 0.41, 0.30]),
        ([0.0, 0.0, 0.0], [0.46, 0.46, 1.0], [0, 1, 0], 0.1, 0, [0.45, 0.45, 0.0], [0.55, 0.55, 0.05]),
    ],
)
def test_intervals_that_miss_each_other_only_in_their_sums_are_empty_too(
    old_lower: list[float],
    old_upper: list[float],
    visits: list[int],
    offset: float,
    to: int,
    lower: list[float],
    upper: list[float],
) -> None:
    """No bound crosses another, yet lower bounds add up to 0.4 + 0.4 + 0.22, or upper ones to 0.46 + 0.46 + 0.05."""
    lowest, highest, seen = np.zeros((2, 3, 1, 3)), np.ones((2, 3, 1, 3)), np.zeros((2, 3, 1, 3), dtype=np.int64)
    lowest[0, 0, 0], highest[0, 0, 0], seen[0, 0, 0] = old_lower, old_upper, visits
    box = BernsteinBox(lowest, highest, seen, Radius(log_term=1.0, spread=0.0, offset=offset))
    narrowed = box.narrow(Segment(np.array([0, to]), np.array([0, 0])))
    assert narrowed.fallbacks == 1
    assert_allclose(narrowed.lower[0, 0, 0], lower)
    assert_allclose(narrowed.upper[0, 0, 0], upper)


@pytest.mark.parametrize("states", [[], [0]])
def test_too_short_a_segment_teaches_nothing(states: list[int]) -> None:
    box = BernsteinBox.vacuous(SHAPE, TIGHT)
    assert box.narrow(Segment(np.array(states, dtype=np.int64), np.array(states, dtype=np.int64))) is box


def test_a_box_without_a_radius_and_a_kernel_do_not_narrow() -> None:
    segment = Segment(np.array([0, 1]), np.array([0, 0]))
    box, kernel = BernsteinBox.vacuous(SHAPE), random_kernel("dense", SHAPE, np.random.default_rng(0))
    assert box.narrow(segment) is box
    assert kernel.narrow(segment) is kernel


@pytest.mark.parametrize(
    ("states", "actions", "start", "axis"),
    [
        ([0, 3], [0, 0], 0, "y"),
        ([5, 0], [0, 0], 0, "s"),
        ([0, 1], [2, 0], 0, "a"),
        ([0, 1], [0, 0], 3, "h"),
        ([0, -1], [0, 0], 0, "y"),
    ],
)
def test_a_segment_that_leaves_the_box_is_refused(states: list[int], actions: list[int], start: int, axis: str) -> None:
    box = BernsteinBox.vacuous(SHAPE, TIGHT)
    with pytest.raises(InvalidInput, match=f"segment has {axis} = "):
        box.narrow(Segment(np.array(states), np.array(actions), start))


# --- membership and coverage ----------------------------------------------------------------------------------------


@given(world=box_worlds(), seed=seeds)
def test_kernels_drawn_inside_are_members_and_kernels_pushed_out_are_not(world: World, seed: int) -> None:
    box = world.domain.dynamics
    assert isinstance(box, BernsteinBox)
    inside = kernel_inside(box, np.random.default_rng(seed))
    assert box.contains(inside)
    steps, states, _ = box.shape
    if steps == 1 or states == 1:
        return
    mean = np.array(inside.p)
    mean[0, 0, 0] = np.eye(states)[box.upper[0, 0, 0].argmin()]
    assert box.contains(Kernel(mean)) == (box.upper[0, 0, 0].min() == 1.0)


def test_members_may_do_anything_in_the_last_step() -> None:
    kernel = random_kernel("dense", SHAPE, np.random.default_rng(0))
    other = np.array(kernel.dense().p)
    other[-1] = np.eye(SHAPE[1])[0]
    assert BernsteinBox.exactly(kernel).contains(Kernel(other))


def excluded_steps(radius: Radius, shape: Shape, episodes: int) -> tuple[int, BernsteinBox]:
    """Play in a world whose steps are independent experiments; in how many of them the true rows were excluded."""
    rng = np.random.default_rng(2024)
    steps = shape[0]
    p = random_rows(shape, rng)
    box = BernsteinBox.vacuous(shape, radius)
    for _ in range(episodes):
        seen = np.zeros(steps, dtype=np.int64)
        for h in range(steps - 1):
            seen[h + 1] = p[h, seen[h], 0, 0] < rng.random()
        box = box.narrow(Segment(seen, np.zeros(steps, dtype=np.int64)))
    outside = (p < box.lower - 1e-12) | (p > box.upper + 1e-12)
    assert box.contains(Kernel(p)) == (not outside[:-1].any())
    return int(outside[:-1].any(axis=(1, 2, 3)).sum()), box


def test_the_papers_radius_never_excludes_the_truth_and_a_hundredth_of_it_does() -> None:
    """300 experiments side by side. By the theorem any of them fails with chance at most `4 delta = 4/K = 0.4 %`."""
    shape, episodes = (301, 2, 1), 1000
    honest = Radius.paper(shape, episodes)
    excluded, box = excluded_steps(honest, shape, episodes)
    assert (excluded, box.fallbacks) == (0, 0)
    assert (box.upper < 0.95).any(axis=-1).mean() > 0.3  # it covers, but not by saying nothing
    excluded, box = excluded_steps(replace(honest, scale=0.01), shape, 100)
    assert excluded > 150
    assert box.fallbacks > 0


# --- upper and lower occupancy bounds (Comp-UOB) --------------------------------------------------------------------


def extreme_flow(box: BernsteinBox, policy: Floats, initial: int, place: tuple[int, int], sign: float) -> float:
    """The extreme chance of being at `(step, state)`, by a linear program over flows `q[h, s, a, y]`."""
    _, states, actions = box.shape
    step, state = place
    if step == 0:
        return float(state == initial)
    n_flows = step * states * actions * states
    number = np.arange(n_flows).reshape(step, states, actions, states)
    objective = np.zeros(n_flows)
    objective[number[step - 1, :, :, state].ravel()] = sign
    equal, right, less = [], [], []
    for h, s, a in np.ndindex(step, states, actions):
        leaving = np.zeros(n_flows)
        leaving[number[h, s, a]] = 1.0
        arriving = np.zeros(n_flows)
        if h > 0:
            arriving[number[h - 1, :, :, s].ravel()] = policy[h, s, a]
        equal.append(leaving - arriving)
        right.append(policy[0, s, a] * (s == initial) if h == 0 else 0.0)
        for y in range(states):
            this = np.zeros(n_flows)
            this[number[h, s, a, y]] = 1.0
            less += [this - box.upper[h, s, a, y] * leaving, box.lower[h, s, a, y] * leaving - this]
    result = linprog(objective, A_ub=np.array(less), b_ub=np.zeros(len(less)), A_eq=np.array(equal), b_eq=right)
    assert result.fun is not None
    return float(sign * result.fun)


@settings(max_examples=12)
@given(world=box_worlds(steps=3, states=3, actions=2), seed=seeds, deterministic=st.booleans())
def test_occupancy_bounds_are_the_extremes_of_a_linear_program(world: World, seed: int, deterministic: bool) -> None:
    box, initial = world.domain.dynamics, world.domain.initial
    assert isinstance(box, BernsteinBox)
    policies = random_policies(2, box.shape, np.random.default_rng(seed), deterministic=deterministic)
    everywhere = Pairs.all(box.shape)
    greatest = box.greatest_visits(policies, initial, everywhere).reshape(2, *box.shape)
    least = box.least_visits(policies, initial, everywhere).reshape(2, *box.shape)
    for i, h, s in np.ndindex(2, *box.shape[:2]):
        most = extreme_flow(box, policies[i], initial, (h, s), -1.0)
        fewest = extreme_flow(box, policies[i], initial, (h, s), 1.0)
        assert_allclose(greatest[i, h, s], policies[i, h, s] * most, rtol=0, atol=1e-9)
        assert_allclose(least[i, h, s], policies[i, h, s] * fewest, rtol=0, atol=1e-9)


@given(world=box_worlds(steps=4, states=5, actions=3), seed=seeds)
def test_occupancy_of_every_kernel_inside_lies_between_the_bounds(world: World, seed: int) -> None:
    box, initial = world.domain.dynamics, world.domain.initial
    assert isinstance(box, BernsteinBox)
    rng = np.random.default_rng(seed)
    policies, everywhere = random_policies(2, box.shape, rng), Pairs.all(box.shape)
    greatest, least = (
        box.greatest_visits(policies, initial, everywhere),
        box.least_visits(policies, initial, everywhere),
    )
    visits = occupancy(kernel_inside(box, rng), policies, initial).reshape(2, -1)
    assert (least <= visits + 1e-12).all()
    assert (visits <= greatest + 1e-12).all()
    assert (greatest <= 1.0 + 1e-12).all()


@pytest.mark.parametrize("kind", ["dense", "homogeneous", "sparse", "deterministic"])
def test_in_a_box_that_holds_one_kernel_both_bounds_are_its_occupancy(kind: str) -> None:
    rng = np.random.default_rng(3)
    kernel = random_kernel(kind, SHAPE, rng)
    policies, everywhere = random_policies(4, SHAPE, rng), Pairs.all(SHAPE)
    visits = occupancy(kernel, policies, 1).reshape(4, -1)
    box = BernsteinBox.exactly(kernel)
    assert_allclose(box.greatest_visits(policies, 1, everywhere), visits, rtol=0, atol=1e-14)
    assert_allclose(box.least_visits(policies, 1, everywhere), visits, rtol=0, atol=1e-14)
    assert_allclose(kernel.greatest_visits(policies, 1, everywhere), visits, rtol=0, atol=1e-14)


def test_bounds_of_single_pairs_in_any_order_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(4)
    box = box_around(random_kernel("dense", SHAPE, rng), 0.3, rng)
    policies, everywhere = random_policies(2, SHAPE, rng), Pairs.all(SHAPE)
    together = box.greatest_visits(policies, 0, everywhere)
    order = rng.permutation(everywhere.steps.size)
    mixed = Pairs(everywhere.steps[order], everywhere.states[order], everywhere.actions[order])
    assert_array_equal(box.greatest_visits(policies, 0, mixed), together[:, order])
    for m in order[:6]:
        one = Pairs(everywhere.steps[m : m + 1], everywhere.states[m : m + 1], everywhere.actions[m : m + 1])
        assert_array_equal(box.greatest_visits(policies, 0, one), together[:, m : m + 1])


def test_all_pairs_come_in_c_order() -> None:
    pairs = Pairs.all((2, 3, 2))
    places = list(zip(pairs.steps.tolist(), pairs.states.tolist(), pairs.actions.tolist(), strict=True))
    assert places == list(np.ndindex(2, 3, 2))


@pytest.mark.parametrize("place", [(3, 0, 0), (0, 3, 0), (0, 0, 2), (-1, 0, 0)])
def test_pairs_outside_the_box_are_refused(place: tuple[int, int, int]) -> None:
    box = BernsteinBox.vacuous(SHAPE)
    pairs = Pairs(*(np.array([i]) for i in place))
    with pytest.raises(InvalidInput, match=r"pairs has [hsa] = "):
        box.greatest_visits(np.full((1, *SHAPE), 0.5), 0, pairs)


def test_policies_and_starts_that_do_not_fit_the_box_are_refused() -> None:
    box, everywhere = BernsteinBox.vacuous(SHAPE), Pairs.all(SHAPE)
    with pytest.raises(InvalidInput, match="policies has shape"):
        box.greatest_visits(np.full((1, 2, 3, 2), 0.5), 0, everywhere)
    with pytest.raises(InvalidInput, match="initial = 3"):
        box.greatest_visits(np.full((1, *SHAPE), 0.5), 3, everywhere)


# --- bad boxes ------------------------------------------------------------------------------------------------------


def bounds(shape: Shape = SHAPE) -> tuple[Floats, Floats]:
    steps, states, actions = shape
    return np.zeros((steps, states, actions, states)), np.ones((steps, states, actions, states))


def test_a_lower_bound_above_its_upper_bound_is_refused_with_its_place() -> None:
    lower, upper = bounds()
    lower[1, 2, 0, 1], upper[1, 2, 0, 1] = 0.6, 0.5
    with pytest.raises(InvalidInput, match=r"lower\[h=1, s=2, a=0, y=1\] = 0.6; it is above its upper bound"):
        BernsteinBox(lower, upper)


def test_lower_bounds_that_add_up_to_more_than_one_hold_no_distribution() -> None:
    lower, upper = bounds()
    lower[0, 1, 1] = 0.4
    with pytest.raises(EmptyConfidenceSet, match=r"\[h=0, s=1, a=1\]: the lower bounds sum to 1.2"):
        BernsteinBox(lower, upper)


def test_upper_bounds_that_add_up_to_less_than_one_hold_no_distribution() -> None:
    lower, upper = bounds()
    upper[1, 0, 0] = 0.3
    with pytest.raises(EmptyConfidenceSet, match=r"\[h=1, s=0, a=0\].* the upper bounds to 0.9"):
        BernsteinBox(lower, upper)


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1, np.inf])
@pytest.mark.parametrize("name", ["lower", "upper"])
def test_bounds_that_are_no_probabilities_are_refused(name: str, bad: float) -> None:
    lower, upper = bounds()
    (lower if name == "lower" else upper)[0, 0, 1, 2] = bad
    with pytest.raises(InvalidInput, match=rf"{name}\[h=0, s=0, a=1, y=2\] = .*; it must be between 0 and 1"):
        BernsteinBox(lower, upper)


def test_bounds_of_different_or_wrong_shapes_are_refused() -> None:
    lower, upper = bounds()
    with pytest.raises(InvalidInput, match="must share one shape"):
        BernsteinBox(lower, upper[1:])
    with pytest.raises(InvalidInput, match="must share one shape"):
        BernsteinBox(lower[..., 1:], upper[..., 1:])
    with pytest.raises(InvalidInput, match=r"lower has shape .* expected axes \[h, s, a, y\]"):
        BernsteinBox(lower[0], upper[0])
    with pytest.raises(InvalidInput, match="visits has shape"):
        BernsteinBox(lower, upper, np.zeros((1, 3, 2, 3), dtype=np.int64))


def test_a_kernel_with_empty_rows_where_nobody_comes_plans_like_its_box() -> None:
    rng = np.random.default_rng(0)
    kernel = random_kernel("layered", SHAPE, rng)
    assert any(kernel.empty_rows(h).any() for h in range(SHAPE[0] - 1))
    costs = rng.normal(size=(4, *SHAPE))
    planned = [bind("dp", MarkovPolicies(each)).minimize(costs) for each in (kernel, BernsteinBox.exactly(kernel))]
    assert_allclose(planned[0].objective, planned[1].objective, rtol=0, atol=1e-12)
    assert BernsteinBox.exactly(kernel).contains(kernel)


def test_a_kernel_of_another_shape_is_not_compared() -> None:
    box = BernsteinBox.vacuous(SHAPE)
    with pytest.raises(InvalidInput, match="the kernel has shape"):
        box.contains(random_kernel("dense", (SHAPE[0] - 1, *SHAPE[1:]), np.random.default_rng(0)))


def test_boxes_pickle_with_their_counts_and_plan_alike() -> None:
    rng = np.random.default_rng(5)
    box = BernsteinBox.vacuous(SHAPE, TIGHT).narrow(Segment(np.array([0, 1, 2]), np.array([0, 1, 0])))
    copy = pickle.loads(pickle.dumps(box))
    assert isinstance(copy, BernsteinBox)
    assert_array_equal(copy.lower, box.lower)
    assert_array_equal(copy.upper, box.upper)
    assert_array_equal(copy.visits, box.visits)
    assert (copy.radius, copy.fallbacks) == (box.radius, box.fallbacks)
    costs = rng.random((1, *SHAPE))
    assert_array_equal(copy.cheapest(costs).values, box.cheapest(costs).values)
