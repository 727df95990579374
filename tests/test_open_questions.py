"""The study of the open questions: its measures by hand, its worlds, and its quick form."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from amdp.algorithms.ftpl.perturbations import Perturbation
from amdp.game.dynamic_regret import interval_costs
from amdp.model.domains import MarkovPolicies
from amdp.model.evaluation import evaluate
from amdp.model.transitions import Kernel
from amdp.verification.known_transitions import strong_ratio
from benchmarks.studies import open_questions
from benchmarks.studies.rivers import CURRENTS, LEARNERS, RESTARTS, Swim, _parts, arena, rewards, river
from benchmarks.studies.stability import (
    ACTIONS,
    LAWS,
    NOISES,
    STATES,
    STEPS,
    WORLD,
    Stability,
    single_step_ratio,
    terms,
)
from benchmarks.studies.tasks import gathered

SHAPE = (STEPS, STATES, ACTIONS)


@pytest.mark.parametrize("name", NOISES)
def test_noises_are_compared_at_equal_deviations(name: str) -> None:
    kind, unit = NOISES[name]
    noise: Perturbation = kind(unit / 3.0)
    drawn = noise.perturbed(np.zeros((1, 1, 1)), 100_000, np.random.default_rng(1))
    # The deviation's own error is at most 3 * sqrt(8 / 4 / 1e5) < 0.014 (kurtosis 9): 6 of them are 0.08.
    assert drawn.std() == pytest.approx(3.0, abs=0.08)


def test_the_terms_of_a_game_are_those_of_counting_policy_by_policy() -> None:
    rng = np.random.default_rng(2)
    rounds, draws = 4, 30
    chosen = [rng.integers(ACTIONS, size=(draws, STEPS, STATES)).astype(np.int32) for _ in range(rounds + 1)]
    told, tables = 3.0 * rng.random((rounds, *SHAPE)), rng.random((rounds, *SHAPE))
    found = terms(WORLD, chosen, told, tables)

    every = np.array(list(product(range(ACTIONS), repeat=STEPS * STATES)), np.int32).reshape(-1, STEPS, STATES)
    domain = MarkovPolicies(Kernel(WORLD))
    law = np.array([[(one == policy).all(axis=(1, 2)).mean() for policy in every] for one in chosen])

    def paid(costs: np.ndarray) -> np.ndarray:
        return evaluate(domain, every, np.repeat(costs[None], len(every), axis=0))

    true, estimated = (np.array([paid(one) for one in costs]) for costs in (tables, told))
    assert_allclose(found["movement"], sum(np.abs(law[k] - law[k + 1]).sum() for k in range(rounds)))
    assert_allclose(found["stability"], sum((law[k] - law[k + 1]) @ estimated[k] for k in range(rounds)))
    assert_allclose(found["squares"], sum(law[k] @ estimated[k] ** 2 for k in range(rounds)))
    assert_allclose(found["regret"], sum(law[k] @ true[k] for k in range(rounds)) - true.sum(axis=0).min())


@pytest.mark.parametrize("name", NOISES)
def test_the_ratio_of_a_single_step_is_that_of_small_losses(name: str) -> None:
    # The decrease and the square by differences of the survival function, not by its density.
    law, chance, loss = LAWS[name], 0.1, 1e-4
    margins = law.std() * np.linspace(0.0, 4.0, 500)
    change = law.sf(margins) - law.sf(margins + loss)
    decrease, squares = change * chance * loss, law.sf(margins) * (chance * loss) ** 2
    assert_allclose(single_step_ratio(name, chance), (decrease * law.std() / squares).max(), rtol=1e-3)


def test_the_ratio_of_laplace_noise_is_that_of_the_counterexample_in_closed_form() -> None:
    chance, rate = 0.05, 1.0
    ratio = strong_ratio(0.0, chance, margin=2.0, loss=1e-6, rate=rate)
    assert single_step_ratio("laplace", chance) == pytest.approx(np.sqrt(2.0) * ratio, rel=1e-4)


def test_more_noise_moves_the_law_less() -> None:
    # Fixed seeds; between these deviations the movement falls by a factor above 5.
    little, much = (Stability("gumbel", spread, 60, 1, 200).measured() for spread in (0.03, 3.0))
    assert little["movement"] > 3.0 * much["movement"]


def test_a_stronger_current_makes_resting_the_better_plan() -> None:
    calm, strong = (
        interval_costs(Swim(name, LEARNERS[0], 40, 1).game(), [0, 20, 40]) for name in ("still", "one change")
    )
    assert strong[1, 2] > calm[1, 2]
    # In calm water one swims up: two steps without reward, then two that bring 1 with chance 0.9^2 and 0.9^3 or less.
    resting = 4 * (1.0 - rewards()[0, 0, 0])
    expected = interval_costs_of(0.1), interval_costs_of(0.9)
    assert expected[0] < resting - 0.05
    assert expected[1] == pytest.approx(resting)


def interval_costs_of(current: float) -> float:
    """The least expected cost of an episode, by trying all policies."""
    kernel = river(current)
    every = np.array(list(product(range(2), repeat=12)), np.int32).reshape(-1, 4, 3)
    costs = np.repeat(1.0 - rewards()[None], len(every), axis=0)
    return float(evaluate(MarkovPolicies(kernel), every, costs).min())


def test_currents_become_schedules_of_kernels() -> None:
    speeds = CURRENTS["seven changes"](80)
    assert len(np.flatnonzero(np.diff(speeds))) == 7
    made = arena(speeds)
    for k in (0, 15, 45, 79):
        assert_array_equal(made.kernels[made.schedule[k]].dense().p, river(speeds[k]).p)
    assert len(arena(CURRENTS["still"](80)).kernels) == 1
    assert np.abs(np.diff(CURRENTS["slow wave"](80))).max() <= 0.1


def test_who_is_told_each_kernel_begins_anew_with_each() -> None:
    speeds = CURRENTS["one change"](80)
    assert_array_equal(_parts("told each kernel", speeds), [0, 40, 80])
    assert_array_equal(_parts("told the mean", speeds), [0, 80])
    assert len(_parts("told the mean, 8 restarts", speeds)) == RESTARTS + 1


@dataclass(frozen=True)
class Count:
    """A task that can be done once."""

    number: int

    @property
    def file(self) -> str:
        return f"{self.number}.json"

    def measured(self) -> dict[str, float]:
        assert self.number != 2, "it was measured again"
        return {"square": self.number**2.0}


def test_what_has_a_file_is_read_and_the_rest_is_measured(tmp_path: Path) -> None:
    (tmp_path / "2.json").write_text('{"square": 4.0}')
    (tmp_path / "3.json.part").write_text('{"squ')
    with ThreadPoolExecutor(1) as workers:
        found = gathered([Count(2), Count(3), Count(3)], tmp_path, workers)
    assert found == {Count(2): {"square": 4.0}, Count(3): {"square": 9.0}}


@pytest.mark.parametrize("question", open_questions.QUESTIONS)
def test_the_quick_form_prints_a_table_and_draws_into_its_folder(
    question: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_questions.main([str(tmp_path), question, "--quick"])
    printed = capsys.readouterr().out
    assert printed.count("|---|") >= 1
    assert "nan" not in printed
    assert (tmp_path / f"open-{question}.svg").read_text().count("<svg") == 1


def test_a_study_that_is_drawn_again_plays_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_questions.main([str(tmp_path), "exponents", "--quick"])
    printed = capsys.readouterr().out
    monkeypatch.setattr("amdp.experiments.engines.execute", lambda *given: pytest.fail("it was played again"))
    open_questions.main([str(tmp_path), "exponents", "--quick"])
    assert capsys.readouterr().out == printed


def test_an_unknown_question_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        open_questions.main([str(tmp_path), "weather", "--quick"])
