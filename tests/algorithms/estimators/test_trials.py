"""Compiled trials and trials through an oracle count alike, to the last bit."""

from dataclasses import dataclass
from math import inf

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from worlds import random_kernel

from amdp import BernsteinBox, InvalidInput, MarkovPolicies, Segment, oracle
from amdp.algorithms.estimators.trials import BatchedTrials, CompiledTrials
from amdp.algorithms.ftpl.perturbations import Laplace, Perturbation
from amdp.algorithms.ftpl.perturbed_leader import PerturbedLeader
from amdp.kernels.layout import WIDTH
from amdp.model.reach import BATCH
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.checked import Checked

SHAPES: list[Shape] = [(1, 3, 2), (4, 3, 2), (6, 5, 4), (BATCH + 8, 2, 2), (3, 4, 9)]


@dataclass(frozen=True)
class Both:
    """The same distribution twice: compiled, and through an oracle."""

    compiled: PerturbedLeader
    asked: PerturbedLeader
    segment: Segment


def both(kind: str, shape: Shape, perturbation: Perturbation, seed: int = 3) -> Both:
    """Over a kernel, or over a box around one."""
    rng = np.random.default_rng(seed)
    kernel = random_kernel("dense" if kind == "box" else kind, shape, rng)
    assert isinstance(kernel, SingleKernel)
    p = kernel.dense().p
    box = BernsteinBox(np.maximum(0.0, p - 0.1), np.minimum(1.0, p + 0.1))
    domain, total = MarkovPolicies(box if kind == "box" else kernel), rng.random(shape) * 20
    dp = oracle("dp")
    quick, slow = (PerturbedLeader(one.bind(domain), perturbation, total) for one in (dp, Checked(dp)))
    assert isinstance(quick.trials, CompiledTrials)
    assert isinstance(slow.trials, BatchedTrials)
    return Both(quick, slow, kernel.walk(quick.draw(rng), 0, rng.random((shape[0], 2))))


@pytest.mark.parametrize("kind", ["dense", "homogeneous", "sparse", "box"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limit", [1, 5, BATCH, 100])
@pytest.mark.parametrize("form", ["shared", "per_step"])
def test_compiled_trials_count_like_trials_through_an_oracle(kind: str, shape: Shape, limit: int, form: str) -> None:
    pair = both(kind, shape, Laplace(0.2))
    for seed in range(5):
        quick, slow = (
            getattr(distribution.trials, form)(pair.segment, limit, np.random.default_rng(seed))
            for distribution in (pair.compiled, pair.asked)
        )
        assert_array_equal(quick.values, slow.values)
        assert quick.trials == slow.trials
        assert (quick.values >= 1).all()
        assert (quick.values <= limit).all()


@pytest.mark.parametrize("kind", ["dense", "homogeneous", "sparse", "box"])
@pytest.mark.parametrize("shape", [(5, 4, 3), (1, 2, 2), (3, 1, 4), (2, 5, 1), (4, 9, 7), (3, 70, 2), (2, 6, 11)])
def test_compiled_policies_are_those_of_the_oracle(kind: str, shape: Shape) -> None:
    pair = both(kind, shape, Laplace(0.2))
    quick, slow = (distribution.policies(np.random.default_rng(8)) for distribution in (pair.compiled, pair.asked))
    first, states = pair.compiled.domain.reached
    reached = slice(None), np.repeat(np.arange(shape[0]), np.diff(first)), states
    for n in (1, WIDTH - 1, WIDTH, 3 * WIDTH + 2):
        assert_array_equal(quick(n)[reached], slow(n)[reached])


def test_both_roads_leave_the_generator_in_the_same_place() -> None:
    pair = both("dense", (5, 4, 3), Laplace(0.2))
    for form in ("shared", "per_step"):
        left = []
        for distribution in (pair.compiled, pair.asked):
            rng = np.random.default_rng(4)
            getattr(distribution.trials, form)(pair.segment, 70, rng)
            left.append(rng.random())
        assert left[0] == left[1]


@pytest.mark.parametrize("kind", ["dense", "box"])
def test_a_segment_that_starts_late_is_searched_at_its_own_steps(kind: str) -> None:
    pair = both(kind, (6, 5, 4), Laplace(0.2))
    late = Segment(pair.segment.states[2:], pair.segment.actions[2:], start=2)
    for form in ("shared", "per_step"):
        quick, slow = (
            getattr(distribution.trials, form)(late, 200, np.random.default_rng(1))
            for distribution in (pair.compiled, pair.asked)
        )
        assert_array_equal(quick.values, slow.values)


def test_estimates_that_are_not_finite_are_refused() -> None:
    pair = both("dense", (4, 3, 2), Laplace(0.2))
    total = pair.compiled.total.copy()
    total[2, 1, 1] = inf
    broken = PerturbedLeader(pair.compiled.planner, Laplace(0.2), total)
    for form in ("shared", "per_step"):
        with pytest.raises(InvalidInput, match="loss estimates reach inf"):
            getattr(broken.trials, form)(pair.segment, 10, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="loss estimates reach inf"):
        broken.draw(np.random.default_rng(0))
