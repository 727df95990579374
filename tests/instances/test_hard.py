"""The hard case of switching and its relatives: who stays, who switches, the ring, the companion, wandering losses.

Size, diameter, gap, depth, width, variance and seeds of the bandit are tested in tests/infinite.
"""

from math import log2

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from amdp import InvalidInput, instances, losses
from amdp.arrays import Floats
from amdp.instances import HardCase
from amdp.model import connectivity

STEPS = 1000


def cases(seed: int = 4) -> list[tuple[HardCase, Floats]]:
    """Each kind of hard case, and the actions that stay at its arms."""
    rng = np.random.default_rng(seed)
    return [
        (instances.hidden_bandit(STEPS, 3, rng), np.arange(3)),
        (instances.hidden_bandit(STEPS, 3, rng, corridor=3), np.arange(3)),
        (instances.hidden_ring(STEPS, 5, rng), np.zeros(5, dtype=int)),
    ]


def tables_of(hard: HardCase) -> Floats:
    return hard.losses.batch(0, len(hard.losses))[:, 0]


@pytest.mark.parametrize("which", range(3), ids=["bandit", "corridor", "ring"])
def test_who_never_switches_has_the_regret_of_the_gap(which: int) -> None:
    hard, stays = cases()[which]
    paid = tables_of(hard)[:, np.arange(len(stays)), stays].sum(axis=0)
    regret = paid - paid[hard.good]
    assert regret.mean() == pytest.approx(hard.gap * STEPS * (1 - 1 / len(stays)))
    assert regret.max() == pytest.approx(hard.gap * STEPS)


@pytest.mark.parametrize("which", range(3), ids=["bandit", "corridor", "ring"])
def test_who_switches_at_random_pays_for_it(which: int) -> None:
    hard, stays = cases()[which]
    kernel, actions = hard.instance.kernel, hard.instance.shape[2]
    visits = kernel.occupancy(np.full((1, *hard.instance.shape), 1 / actions), hard.instance.initial)[0]
    away = np.ones(visits.shape[1:], dtype=bool)
    away[np.arange(len(stays)), stays] = False
    assert_array_equal(tables_of(hard)[:, away], 1.0)
    paid = (visits * tables_of(hard)).sum()
    assert paid >= (1 - 1 / actions) * STEPS
    staying = tables_of(hard)[:, hard.good, stays[hard.good]].sum()
    assert paid - staying > 2 * hard.gap * STEPS  # worse than not to look for the good arm at all


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("which", range(3), ids=["bandit", "corridor", "ring"])
def test_the_walk_stays_within_the_losses(which: int, seed: int) -> None:
    hard, stays = cases(seed)[which]
    met = tables_of(hard)[:, np.arange(len(stays)), stays]
    assert ((met > 0) & (met < 1)).all()
    arms = np.arange(len(stays)) == hard.good
    assert_allclose(met, 0.5 + hard.walk[:, None] - hard.gap * arms, atol=1e-12)


@pytest.mark.parametrize("arms", [2, 5])
def test_the_ring_has_two_actions_and_is_as_wide_as_its_arms(arms: int) -> None:
    hard = instances.hidden_ring(STEPS, arms, np.random.default_rng(1))
    assert hard.instance.shape == (STEPS, arms, 2)
    found = connectivity.summary(hard.instance.kernel)
    assert (found.diameter.value, found.period, found.deterministic) == (arms - 1, 1, True)
    assert connectivity.parking_pairs(hard.instance.kernel) == [(i, 0) for i in range(arms)]
    assert hard.gap == pytest.approx((arms / STEPS) ** (1 / 3) / (9 * log2(STEPS)))


def test_good_arms_are_drawn_from_all() -> None:
    rng = np.random.default_rng(1)
    assert {instances.hidden_ring(8, 3, rng).good for _ in range(40)} == {0, 1, 2}


@pytest.mark.parametrize("which", range(3), ids=["bandit", "corridor", "ring"])
def test_the_easy_companion_has_the_same_means_and_no_walk(which: int) -> None:
    hard, stays = cases()[which]
    easy = instances.easy_companion(hard, seed=3)
    assert (easy.instance, easy.good, easy.gap) == (hard.instance, hard.good, hard.gap)
    assert_array_equal(easy.walk, 0.0)
    tables = tables_of(easy)
    assert set(np.unique(tables)) == {0.0, 1.0}
    away = np.ones(tables.shape[1:], dtype=bool)
    away[np.arange(len(stays)), stays] = False
    assert_array_equal(tables[:, away], 1.0)
    # Means of 1000 fair coins lie within 0.09 but for once in 80 million.
    assert_allclose(tables.mean(axis=0), hard.instance.costs[0], atol=0.09)
    met = tables[:, np.arange(len(stays)), stays]
    assert np.abs(np.corrcoef(met[:, 0], met[:, 1])[0, 1]) < 0.2  # in the hard case the arms move together
    hidden = tables_of(hard)[:, np.arange(len(stays)), stays]
    assert np.corrcoef(hidden[:, 0], hidden[:, 1])[0, 1] > 0.99


def test_rings_of_bad_sizes_are_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(InvalidInput, match="n_arms = 1"):
        instances.hidden_ring(10, 1, rng)
    with pytest.raises(InvalidInput, match="n_steps = 2"):
        instances.hidden_ring(2, 3, rng)


# --- wandering losses -------------------------------------------------------------------------------------------------


def test_wandering_losses_move_together_and_only_where_they_are_told() -> None:
    table = np.array([[[0.2, 0.5], [0.9, 1.0]]])
    where = np.array([[[1.0, 1.0], [2.0, 0.0]]])
    walk = np.array([0.0, 0.1, -0.3, 5.0])
    sequence = losses.wandering(table, walk, where)
    assert (len(sequence), sequence.shape) == (4, (1, 2, 2))
    for k, w in enumerate(walk):
        assert_allclose(sequence[k], np.clip(table + w * where, 0.0, 1.0))
    assert_allclose(losses.wandering(table, walk)[1], np.clip(table + 0.1, 0.0, 1.0))


def test_bad_walks_are_refused() -> None:
    table = np.zeros((1, 2, 2))
    with pytest.raises(InvalidInput, match=r"walk\[k=1\] = nan"):
        losses.wandering(table, [0.0, np.nan])
    with pytest.raises(InvalidInput, match=r"where has shape \(1, 2, 1\)"):
        losses.wandering(table, [0.0], np.ones((1, 2, 1)))
    with pytest.raises(InvalidInput, match="walk is empty"):
        losses.wandering(table, [])
    with pytest.raises(InvalidInput, match="n_steps = 0"):
        losses.multi_scale_walk(0, 1.0, np.random.default_rng(1))


def test_the_walk_by_name_keeps_gaps_and_repeats_itself() -> None:
    costs = np.random.default_rng(1).random((1, 3, 2))
    one, other = (losses.named("walk", (1, 3, 2), 600, seed=5, costs=costs).batch(0, 600) for _ in range(2))
    assert_array_equal(one, other)
    gaps = one - one[:, :, :1, :1]
    assert_allclose(gaps, np.broadcast_to((costs - costs[:, :1, :1]) / 2, gaps.shape), atol=1e-12)
    assert np.ptp(one[:, 0, 0, 0]) > 0.01
