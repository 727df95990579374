"""The perturbed leader: the law of its policies, the lemmas of the paper, and the same run on every oracle."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import exp, sqrt
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats
from worlds import ORACLES, random_kernel, random_rows, seeds

from amdp import BernsteinBox, InvalidInput, Kernel, MarkovPolicies, Radius, Segment, Status, Unsolved, bind, values
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.algorithms.estimators.resampling import GeometricResampling, SharedResampling
from amdp.algorithms.ftpl.perturbations import Exponential, Fill, Gaussian, Gumbel, Laplace, Perturbation
from amdp.algorithms.ftpl.perturbed_leader import (
    Ftpl,
    LiteralFtpl,
    PerturbedLeader,
    follow_the_perturbed_leader,
    laplace_rate,
    resampling_limit,
)
from amdp.arrays import Costs, Floats
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.domains import Domain
from amdp.oracles.base import Planner, Plans
from amdp.oracles.markov.dynamic_programming import BackwardInduction

SIGMAS = 5.5  # a false alarm in 26 million draws of a normal number
NOTHING = Weights(np.empty(0))


def leader(domain: Domain, perturbation: Perturbation, total: Floats) -> PerturbedLeader:
    return PerturbedLeader(bind("dp", domain), perturbation, total)


def bandit(actions: int) -> MarkovPolicies:
    """One step, one state."""
    return MarkovPolicies(Kernel(np.ones((1, 1, actions, 1))))


def domain_of(shape: tuple[int, int, int], seed: int = 1, kind: str = "dense") -> MarkovPolicies:
    return MarkovPolicies(random_kernel(kind, shape, np.random.default_rng(seed)))


# --- the paper's counterexample ---------------------------------------------------------------------------------------

ETA = 3.0
VECTORS = np.array([(0.1, 0.1, 0.2), (0.2, 0.1, 0.1)])
BEFORE, NEW = np.array([0.75, 0.2, 0.6]), np.array([0.1, 0.0, 0.0])


def below(x: float) -> float:
    """The chance that the difference of two Laplace numbers is at most `x >= 0`."""
    return 1.0 - (2.0 + ETA * x) * exp(-ETA * x) / 4.0


class OnThreeStates(Perturbation):
    """Laplace noise on action 0 of the states 1, 2, 3 of the second step; the rest is silent."""

    def filler(self, rng: np.random.Generator) -> Fill:
        laplace = Laplace(self.rate).filler(rng)

        def fill(center: Floats, out: Floats) -> None:
            laplace(center, out)
            silent = np.ones((5, 2), dtype=bool)
            silent[1:4, 0] = False
            out[0] = center[0]
            out[1][:, silent.reshape(-1)] = center[1][silent.reshape(-1)]

        return fill


def two_policies() -> MarkovPolicies:
    """The first action leads to states 1, 2, 3 with the chances of one vector or the other; 4 takes the rest."""
    p = np.zeros((2, 5, 2, 5))
    p[..., 4] = 1.0
    p[0, 0] = np.column_stack([np.zeros(2), VECTORS, 1.0 - VECTORS.sum(axis=1)])
    return MarkovPolicies(Kernel(p))


def table_of(losses: Floats) -> Floats:
    table = np.zeros((2, 5, 2))
    table[1, 1:4, 0] = losses
    table[1, 1:4, 1] = 1e6  # never chosen
    return table


def test_two_policies_of_the_paper_have_its_chances_in_closed_form() -> None:
    gap = BEFORE[0] - BEFORE[2]
    p, p_next = below(gap), below(gap + NEW[0])
    assert p == pytest.approx(0.609453, abs=5e-7)
    assert p_next == pytest.approx(0.675248, abs=5e-7)
    first, second = VECTORS @ NEW
    change = (p - p_next) * first + (p_next - p) * second
    square = p * first**2 + (1 - p) * second**2
    assert change == pytest.approx(0.00065795, abs=5e-9)
    assert ETA * square == pytest.approx(0.000651492, abs=1e-9)
    assert change > ETA * square, "the stability lemma for binary actions does not carry over"
    assert p_next >= p * exp(-ETA * NEW.sum())
    assert 1 - p_next >= (1 - p) * exp(-ETA * NEW.sum()), "the weaker lemma holds"


@pytest.mark.parametrize("losses", [BEFORE, BEFORE + NEW])
def test_two_policies_of_the_paper_are_drawn_with_these_chances(losses: Floats) -> None:
    n, expected = 150_000, below(losses[0] - losses[2])
    distribution = leader(two_policies(), OnThreeStates(ETA), table_of(losses))
    drawn = distribution.sample(n, np.random.default_rng(2))
    assert (drawn[:, 1, 1:4] == 0).all()
    first = (drawn[:, 0, 0] == 0).mean()
    error = sqrt(expected * (1 - expected) / n)
    assert abs(first - expected) < SIGMAS * error
    wrong_scale = 1.0 - (2.0 + (losses[0] - losses[2]) / ETA) * exp(-(losses[0] - losses[2]) / ETA) / 4.0
    assert abs(first - wrong_scale) > 10 * error


# --- the law of the leader --------------------------------------------------------------------------------------------

RATE = 0.7
POINTS, POINT_WEIGHTS = np.polynomial.legendre.leggauss(100)
Function = Callable[[Floats], Floats]
# What is added to the losses: the noise, its density, the chance of being above.
LAWS: dict[str, tuple[Perturbation, Function, Function]] = {
    "laplace": (
        Laplace(RATE),
        lambda z: RATE / 2 * np.exp(-RATE * np.abs(z)),
        lambda z: np.where(z > 0, np.exp(-RATE * np.abs(z)) / 2, 1 - np.exp(-RATE * np.abs(z)) / 2),
    ),
    "gaussian": (
        Gaussian(RATE),
        lambda z: RATE / np.sqrt(2 * np.pi) * np.exp(-((RATE * z) ** 2) / 2),
        lambda z: special.ndtr(-RATE * z),
    ),
    "exponential": (
        Exponential(RATE),
        lambda z: np.where(z < 0, RATE * np.exp(RATE * np.minimum(z, 0)), 0.0),
        lambda z: 1 - np.exp(RATE * np.minimum(z, 0)),
    ),
    "gumbel": (
        Gumbel(RATE),
        lambda z: RATE * np.exp(RATE * z - np.exp(RATE * z)),
        lambda z: np.exp(-np.exp(RATE * z)),
    ),
}


def arm_chances(total: Floats, name: str) -> Floats:
    """The chance that each arm is the cheapest after noise: `int f(x - L_i) prod_j P(L_j + z_j > x) dx`."""
    _, density, above = LAWS[name]
    edges = np.array([-60.0, -15.0, *np.sort(total), 8.0, 20.0, 60.0])  # smooth in between
    low, width = edges[:-1, None], np.diff(edges)[:, None]
    x, dx = (low + (POINTS + 1) / 2 * width).reshape(-1), (POINT_WEIGHTS / 2 * width).reshape(-1)
    beyond = np.array([above(x - cost) for cost in total])
    others = [np.prod(np.delete(beyond, i, axis=0), axis=0) for i in range(len(total))]
    return np.array([dx @ (density(x - cost) * other) for cost, other in zip(total, others, strict=True)])


@pytest.mark.parametrize("name", LAWS)
def test_one_step_and_one_state_is_the_perturbed_leader_of_bandits(name: str) -> None:
    total, n = np.array([0.0, 1.3, 0.4]), 60_000
    exact = arm_chances(total, name)
    assert exact.sum() == pytest.approx(1.0, abs=1e-9)
    drawn = leader(bandit(3), LAWS[name][0], total.reshape(1, 1, 3)).sample(n, np.random.default_rng(4))
    seen = np.bincount(drawn.reshape(-1), minlength=3)
    assert stats.chisquare(seen, n * exact / exact.sum()).pvalue > 1e-7  # the false-alarm rate


def test_gumbel_noise_on_a_bandit_is_hedge() -> None:
    total = np.array([0.0, 1.3, 0.4])
    assert_allclose(arm_chances(total, "gumbel"), np.exp(-RATE * total) / np.exp(-RATE * total).sum(), atol=1e-10)


def test_second_arm_of_a_bandit_game_follows_the_law_of_counts_and_noise() -> None:
    # P(b) = sum over the first arm a and its count m of P(a) P(m) P(b after m times the loss of a).
    losses, limit, n = np.array([1.0, 0.2]), 3, 1500
    expected = np.zeros(2)
    for a, (m, chance) in product(range(2), ((1, 0.5), (2, 0.25), (3, 0.25))):
        total = np.zeros(2)
        total[a] = m * losses[a]
        expected += 0.5 * chance * arm_chances(total, "laplace")
    game = ArenaGame(Episodic(Kernel(np.ones((1, 1, 2, 1)))), FixedLosses(np.broadcast_to(losses, (2, 1, 1, 2))))
    learner = Ftpl(Laplace(RATE), GeometricResampling(limit))
    second = [list(play_rounds(game, learner, bandit(2), Streams.from_seed(i)))[1].segment.actions[0] for i in range(n)]
    assert stats.binomtest(int(np.sum(second)), n, expected[1] / expected.sum()).pvalue > 1e-7
    assert stats.binomtest(int(np.sum(second)), n, 0.5).pvalue < 1e-4, "a learner that learns nothing would pass"


def test_draw_is_the_leader_for_fresh_noise_in_all_states() -> None:
    distribution = leader(domain_of((3, 2, 2)), Laplace(1.0), np.zeros((3, 2, 2)))
    for seed in range(20):
        drawn = distribution.draw(np.random.default_rng(seed))
        costs = distribution.perturbation.perturbed(distribution.total, 1, np.random.default_rng(seed))
        assert_array_equal(drawn.argmax(axis=-1), distribution.planner.minimize(costs).actions[0])
        assert_array_equal(drawn.sum(axis=-1), np.ones((3, 2)))


# --- lemmas -----------------------------------------------------------------------------------------------------------


def cost_of(domain: MarkovPolicies, policy: Floats, table: Floats) -> float:
    return float(values(domain.dynamics, policy[None], table[None])[0, 0, domain.initial])


@settings(max_examples=25)
@given(seeds, st.sampled_from(["dense", "sparse", "deterministic"]), st.sampled_from([0.1, 1.0, 10.0]))
def test_being_the_leader_costs_no_more_than_any_policy_on_every_path(seed: int, kind: str, rate: float) -> None:
    # V(pi_1; z) + sum_k V(pi_{k+1}; l_k) <= V(pi; z + l_1 + ... + l_K) for all pi.
    domain, rounds = domain_of((3, 3, 2), seed, kind), 12
    tables = np.random.default_rng(seed).random((rounds, 3, 3, 2))
    rng = np.random.default_rng(seed)
    learner = LiteralFtpl(Laplace(rate), WholeTable())
    distribution = learner.start(domain, rng)
    paid = cost_of(domain, distribution.draw(rng), distribution.noise)
    segment = Segment(np.zeros(3, np.int64), np.zeros(3, np.int64))
    for table in tables:
        distribution = learner.learn(distribution, FullInformation.reveal(table, segment, NOTHING))  # type: ignore[assignment]
        paid += cost_of(domain, distribution.draw(rng), table)
    best = bind("enumeration", domain).minimize((distribution.noise + tables.sum(axis=0))[None]).objective[0]
    assert paid <= best + 1e-9 * max(1.0, abs(best))


@pytest.mark.parametrize("seed", range(6))
def test_one_more_estimate_lowers_no_chance_by_more_than_the_lemma_allows(seed: int) -> None:
    # p_{k+1}(pi) >= p_k(pi) exp(-rate |estimate|_1), for all policies that differ where the start leads.
    shape, rate, n = (2, 2, 2), 0.5, 40_000
    rng = np.random.default_rng(seed)
    domain, total = domain_of(shape, seed), 3.0 * rng.random(shape)
    estimate = np.zeros(shape)
    estimate[0, 0, rng.integers(2)] = estimate[1, rng.integers(2), rng.integers(2)] = rng.random()
    before, after = (policy_chances(leader(domain, Laplace(rate), t), n, seed) for t in (total, total + estimate))
    factor = exp(-rate * estimate.sum())
    error = np.sqrt((before + after) / n)
    assert (after >= factor * before - SIGMAS * error).all()
    assert np.abs(after - before).max() > 0.0


def test_an_arm_that_is_behind_loses_no_more_than_the_lemma_allows() -> None:
    # With gap 1, rate 0.5 and 2 more: 0.515 of its chance is left, the lemma allows 0.368; noise of twice the rate
    # would leave 0.225 of less.
    rate, n = 0.5, 40_000
    before, after = (
        (
            leader(bandit(2), Laplace(rate), np.array([[[1.0 + more, 0.0]]])).sample(n, np.random.default_rng(7)) == 0
        ).mean()
        for more in (0.0, 2.0)
    )
    error = sqrt((before + after) / n)
    assert after >= exp(-rate * 2.0) * before - SIGMAS * error
    assert after / before == pytest.approx(0.515, abs=0.03)


def policy_chances(distribution: PerturbedLeader, n: int, seed: int) -> Floats:
    drawn = distribution.sample(n, np.random.default_rng(seed))
    code = drawn[:, 0, 0] * 4 + drawn[:, 1, 0] * 2 + drawn[:, 1, 1]
    return np.bincount(code, minlength=8) / n


@given(st.floats(0.0, 5.0), st.floats(0.0, 3.0))
def test_stability_of_two_arms_by_quadrature(gap: float, more: float) -> None:
    before = arm_chances(np.array([0.0, gap]), "laplace")
    after = arm_chances(np.array([more, gap]), "laplace")
    assert (after >= before * exp(-RATE * more) - 1e-10).all()


def test_law_over_a_box_that_holds_one_kernel_is_the_law_over_the_kernel() -> None:
    domain, total = domain_of((2, 2, 2)), np.random.default_rng(3).random((2, 2, 2))
    box = MarkovPolicies(BernsteinBox.exactly(domain.dynamics))  # type: ignore[arg-type]
    for seed in range(500):
        one, other = (leader(d, Laplace(0.5), total).draw(np.random.default_rng(seed)) for d in (domain, box))
        assert_array_equal(one, other)


# --- settings ---------------------------------------------------------------------------------------------------------


def test_tuned_takes_the_parameters_of_the_theorems() -> None:
    domain = domain_of((5, 3, 2))
    tuned = Ftpl.tuned(domain, 1000, 200)
    assert tuned.perturbation == Laplace(1 / sqrt(5 * 3 * 2 * 1200))
    assert tuned.estimator == GeometricResampling(35)  # sqrt(3 * 2 * 1000 / 5) = 34.64
    assert Ftpl.tuned(domain, 1000, resampling=SharedResampling).estimator == SharedResampling(35)
    assert Ftpl.tuned(domain, 1000, multiplier=3.0).perturbation == Laplace(3 / sqrt(30_000))
    assert resampling_limit(domain_of((5, 1, 1)), 1) == 1
    assert laplace_rate(domain, 1) == 1 / sqrt(30)


def test_full_information_recipe_subtracts_exponential_noise() -> None:
    recipe = follow_the_perturbed_leader(domain_of((5, 3, 2)), 1000)
    assert recipe.perturbation == Exponential(sqrt((1 + np.log(6)) / 25_000))
    assert recipe.feedback is FullInformation


def test_tuned_of_the_literal_class_is_literal() -> None:
    assert isinstance(LiteralFtpl.tuned(domain_of((2, 2, 2)), 10), LiteralFtpl)


@pytest.mark.parametrize(("rounds", "delay"), [(0, 0), (-1, 0), (5, -1)])
def test_rounds_below_one_and_negative_delays_are_refused(rounds: int, delay: int) -> None:
    with pytest.raises(InvalidInput, match=r"rounds = |total_delay = "):
        Ftpl.tuned(domain_of((2, 2, 2)), rounds, delay)


def test_literal_learner_plays_the_same_until_it_learns_and_fresh_noise_does_not() -> None:
    domain, rng = domain_of((3, 3, 3)), np.random.default_rng(1)
    for kind, policies in ((LiteralFtpl, 1), (Ftpl, 20)):
        distribution = kind(Laplace(1.0), WholeTable()).start(domain, rng)
        assert len({distribution.draw(rng).tobytes() for _ in range(20)}) == policies


@pytest.mark.parametrize("seed", range(5))
def test_literal_learner_plays_the_cheapest_policy_for_its_losses_and_its_noise(seed: int) -> None:
    domain, rng = domain_of((3, 2, 2), seed), np.random.default_rng(seed)
    distribution = replace(LiteralFtpl(Laplace(1.0), WholeTable()).start(domain, rng), total=rng.random((3, 2, 2)))
    best = bind("enumeration", domain).minimize((distribution.total + distribution.noise)[None]).objective[0]
    assert cost_of(domain, distribution.draw(rng), distribution.total + distribution.noise) == pytest.approx(best)
    assert stats.kstest(np.abs(distribution.noise).reshape(-1), stats.expon.cdf).pvalue > 1e-6


def test_learning_makes_a_new_distribution_and_keeps_the_old_one() -> None:
    domain, learner = domain_of((2, 2, 2)), Ftpl(Laplace(1.0), WholeTable())
    distribution = learner.start(domain, np.random.default_rng(0))
    segment = Segment(np.zeros(2, np.int64), np.zeros(2, np.int64))
    learned = learner.learn(distribution, FullInformation.reveal(np.ones((2, 2, 2)), segment, NOTHING))
    assert_array_equal(distribution.total, np.zeros((2, 2, 2)))
    assert_array_equal(learned.total, np.ones((2, 2, 2)))


def test_wrong_kind_of_feedback_is_refused() -> None:
    domain, learner = domain_of((2, 2, 2)), Ftpl(Laplace(1.0), GeometricResampling(3))
    distribution = learner.start(domain, np.random.default_rng(0))
    segment = Segment(np.zeros(2, np.int64), np.zeros(2, np.int64))
    with pytest.raises(InvalidInput, match="GeometricResampling understands Bandit, not FullInformation"):
        learner.learn(distribution, FullInformation.reveal(np.ones((2, 2, 2)), segment, NOTHING))
    with pytest.raises(InvalidInput, match="WholeTable understands FullInformation, not Bandit"):
        Ftpl(Laplace(1.0), WholeTable()).learn(distribution, Bandit(segment, Weights(np.ones(2)), np.ones(2)))


def test_a_box_narrows_as_segments_are_seen_and_a_kernel_stays() -> None:
    domain, learner = domain_of((2, 2, 2)), Ftpl(Laplace(1.0), GeometricResampling(3))
    segment = Segment(np.array([0, 1]), np.array([0, 1]))
    distribution = learner.start(domain, np.random.default_rng(0))
    assert learner.observe(distribution, segment).planner is distribution.planner
    radius = Radius(log_term=1.0, spread=1.0, offset=0.1)
    boxed = learner.start(MarkovPolicies(BernsteinBox.vacuous((2, 2, 2), radius)), np.random.default_rng(0))
    narrowed = learner.observe(boxed, segment)
    dynamics = narrowed.domain.dynamics
    assert isinstance(dynamics, BernsteinBox)
    assert dynamics.visits is not None
    assert dynamics.visits[0, 0, 0, 1] == 1
    assert dynamics.visits.sum() == 1, "nothing follows the last step"
    assert narrowed.total is boxed.total


# --- oracles ----------------------------------------------------------------------------------------------------------


def run(oracle: Any, rounds: int, limit: int) -> list[Round]:
    shape = (3, 3, 2)
    rng = np.random.default_rng(6)
    kernel = Kernel(random_rows(shape, rng))
    game = ArenaGame(Episodic(kernel), FixedLosses(rng.random((rounds, *shape))))
    domain = MarkovPolicies(kernel)
    learner = replace(Ftpl.tuned(domain, rounds, oracle=oracle), estimator=SharedResampling(limit))
    return list(play_rounds(game, learner, domain, Streams.from_seed(9)))


# The slower solvers of two packages play fewer rounds: their models are those of the faster ones.
@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("enumeration", 300),
        ("lp", 300),
        ("pulp-highs", 200),
        ("cvxpy-highs", 200),
        ("pulp-cbc", 30),
        ("cvxpy-clarabel", 30),
    ],
)
def test_every_oracle_plays_the_same_policies_for_the_same_losses(name: str, rounds: int) -> None:
    expected = run("dp", rounds, 2)
    assert len({one.policy.tobytes() for one in expected}) > 20
    for ours, theirs in zip(run(ORACLES[name], rounds, 2), expected, strict=True):
        assert_array_equal(ours.policy, theirs.policy, err_msg=f"round {ours.k}")
        assert_array_equal(ours.segment.states, theirs.segment.states)
        assert ours.paid == theirs.paid
        assert ours.trials == theirs.trials


@dataclass(frozen=True)
class Hasty:
    """An oracle that stops before it has proved anything."""

    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return True

    def bind(self, domain: Domain) -> Planner:
        return _HastyPlanner(self, domain)


class _HastyPlanner(Planner):
    def minimize(self, costs: Costs) -> Plans:
        return replace(BackwardInduction().bind(self.domain).minimize(costs), status=Status.FEASIBLE)


def test_a_policy_that_is_only_feasible_is_not_played() -> None:
    domain = domain_of((2, 2, 2))
    assert isinstance(domain.dynamics, Kernel)
    game = ArenaGame(Episodic(domain.dynamics), FixedLosses(np.ones((3, 2, 2, 2))))
    rounds: Iterator[Round] = play_rounds(game, Ftpl.tuned(domain, 3, oracle=Hasty()), domain, Streams.from_seed(1))
    with pytest.raises(Unsolved, match="feasible"):
        next(rounds)


def test_each_tuned_parameter_can_be_overridden() -> None:
    domain = MarkovPolicies(random_kernel("dense", (3, 2, 2), np.random.default_rng(0)))
    tuned = Ftpl.tuned(domain, 100)
    other = Ftpl.tuned(
        domain, 100, rate=0.5, limit=7, multiplier=2.0, perturbation=Gumbel, resampling=SharedResampling, oracle="lp"
    )
    assert tuned.perturbation == Laplace(1.0 / sqrt(3 * 2 * 2 * 100))
    assert other.perturbation == Gumbel(1.0)
    assert other.estimator == SharedResampling(7)
    assert Ftpl.tuned(domain, 100, limit=7).perturbation == tuned.perturbation


@pytest.mark.parametrize("rounds", [0, -1, 2.5, None, float("nan")])
def test_rounds_that_cannot_be_played_are_refused(rounds: Any) -> None:
    domain = MarkovPolicies(random_kernel("dense", (3, 2, 2), np.random.default_rng(0)))
    with pytest.raises(InvalidInput, match="rounds = "):
        Ftpl.tuned(domain, rounds)
