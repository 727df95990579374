"""Random words for compiled noise are the same law from every generator of numpy."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from amdp import InvalidInput
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.game.seeding import Streams
from amdp.kernels.layout import lanes

KINDS = [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64]


@pytest.mark.parametrize("kind", KINDS)
def test_lanes_use_all_bits_of_any_generator(kind: Any) -> None:
    words = np.stack([lanes(np.random.Generator(kind(seed))) for seed in range(20)])
    shares = [((words >> np.uint64(bit)) & np.uint64(1)).mean() for bit in range(64)]
    # 5120 words: a share leaves one half by more than 0.04 in one of 64 * 100 million draws.
    assert np.abs(np.array(shares) - 0.5).max() < 0.04


@pytest.mark.parametrize("kind", KINDS)
def test_noise_has_its_scale_from_any_generator(kind: Any) -> None:
    noise = Laplace(1.0).perturbed(np.zeros((1, 1, 64)), 100, np.random.Generator(kind(1)))
    assert abs(np.abs(noise).mean() - 1.0) < 0.07  # five and a half standard errors


def test_streams_are_those_of_their_seed_and_differ_from_each_other() -> None:
    one, again, other = (Streams.from_seed(seed) for seed in (3, 3, 4))
    first = one.arena.random(5)
    assert_array_equal(first, again.arena.random(5))
    assert not np.isin(first, one.learner.random(5)).any()
    assert not np.isin(first, other.arena.random(5)).any()


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_seeds_that_are_not_whole_numbers_are_refused(seed: Any) -> None:
    with pytest.raises(InvalidInput, match="seed = "):
        Streams.from_seed(seed)
