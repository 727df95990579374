"""Tuning searches the settings of a spec: the same effort for all learners, one answer, and doubts that are told."""

import json
from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import pairwise
from math import inf, log
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amdp.experiments import manifest
from amdp.experiments.engines import ExternalExecutor
from amdp.experiments.frame import frame
from amdp.experiments.runner import Outcome, Shard, run
from amdp.experiments.search import GridSearch, SuccessiveHalving
from amdp.experiments.settings import LearnerSettings
from amdp.experiments.spec import Plan, Planned, Role, Spec
from amdp.experiments.storage import Store
from experiments.specs import TUNE, small, table, threads

GRID = "grid = { multiplier = [1, 4, 16], limit = [3, 9, 27] }"
Loss = Callable[[LearnerSettings], float]


def spec_of(tune: str = GRID, learners: str = 'name = "ftpl-shared"', episodes: int = 90) -> Spec:
    game = f'[[games]]\nlabel = "g"\ninstance = "tiny"\nepisodes = {episodes}\n'
    return Spec.parse(f"{game}[[learners]]\n{learners}\n[tune]\nseeds = 2\n{tune}\n")


def decided(spec: Spec, loss: Loss) -> tuple[Plan, list[Planned]]:
    """The plan after all its runs, each of which incurred what `loss` says of its learner."""
    known: dict[str, float] = {}
    plan, runs = spec.plan(known.get), []
    for batch in plan:
        runs += batch
        known |= {one.id: loss(one.settings.learner) for one in batch}
    return plan, runs


def distance(multiplier: float, limit: int) -> Loss:
    """A loss with its least value at a known pair of settings; neither can be found without the other."""

    def loss(learner: LearnerSettings) -> float:
        x, y = log(learner.multiplier / multiplier), log(learner.settings.get("limit", 1) / limit)
        return x * x + y * y + 1.5 * x * y

    return loss


def chosen(plan: Plan, learner: str = "ftpl-shared") -> dict[str, Any]:
    best = plan.tunings["g", learner].chosen
    assert best
    return dict(best.values)


def warnings(plan: Plan) -> list[str]:
    return list(plan.tunings["g", "ftpl-shared"].warnings)


def effort(runs: list[Planned]) -> int:
    """The rounds of all tries."""
    return sum(one.settings.game.length for one in runs if one.role is Role.TUNING)


SEARCHES = ['search = "grid"', 'search = "halving"', 'search = { name = "halving", factor = 3 }']


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("pair", [(1, 27), (4, 9), (16, 3), (16, 9)])
def test_the_best_pair_of_settings_is_found_and_played(search: str, pair: tuple[int, int]) -> None:
    plan, runs = decided(spec_of(f"{GRID}\n{search}"), distance(*pair))
    assert chosen(plan) == {"multiplier": pair[0], "limit": pair[1]}
    assert not plan.waiting
    tuned = [one.settings for one in runs if one.role is Role.TUNED]
    assert [(each.learner.multiplier, each.game.length) for each in tuned] == [(pair[0], 90)]


@pytest.mark.parametrize("search", SEARCHES[1:])
def test_halving_finds_the_best_of_nine_with_fewer_rounds_than_the_grid(search: str) -> None:
    whole, halved = (decided(spec_of(f"{GRID}\n{how}"), distance(4, 27)) for how in (SEARCHES[0], search))
    assert chosen(whole[0]) == chosen(halved[0]) == {"multiplier": 4, "limit": 27}
    assert effort(whole[1]) == 9 * 2 * 90
    assert effort(halved[1]) <= 2 / 3 * effort(whole[1])


@given(st.integers(1, 300), st.integers(1, 5000), st.integers(2, 5))
def test_stages_keep_the_best_part_and_end_with_whole_games(candidates: int, rounds: int, factor: int) -> None:
    stages = SuccessiveHalving(factor).schedule(candidates, rounds)
    assert stages[0].candidates == candidates
    assert stages[-1].rounds == rounds
    assert stages[-1].candidates <= factor
    for before, after in pairwise(stages):
        assert after.candidates == -(-before.candidates // factor) < before.candidates
        assert before.rounds == max(1, after.rounds // factor)
    assert GridSearch().schedule(candidates, rounds) == ((candidates, rounds),)


def test_a_stage_waits_for_all_tries_of_the_one_before() -> None:
    spec, known = spec_of(f"{GRID}\nsearch = {{ name = 'halving', factor = 3 }}"), dict[str, float]()
    first, *_ = spec.first()
    for batch in spec.plan(known.get):
        known |= {one.id: distance(4, 9)(one.settings.learner) for one in batch}
    del known[first.id]
    plan = spec.plan(known.get)
    assert len(list(plan)) == 1
    assert (plan.waiting, plan.missing, spec.second(known.get)) == (True, 1, None)


# Who is tried with what


def test_a_learner_is_tried_with_the_settings_that_it_has_and_the_rest_is_told() -> None:
    learners = 'name = "ftpl-shared"\n[[learners]]\nname = "o-reps"\n[[learners]]\nname = "soft-leader"'
    spec = spec_of(learners=learners)
    assert spec.tune
    assert {label: grid.names for label, grid in spec.tune.grids.items()} == {
        "ftpl-shared": ("multiplier", "limit"),
        "o-reps": ("multiplier",),
    }
    (note,) = [note for note in spec.notes if "fewer" in note]
    assert "'o-reps' has 3 of 9 (without limit), each on 6 seeds instead of 2" in note
    assert not list(spec_of().notes)
    tries = [run for run in spec.first() if run.role is Role.TUNING]
    counts = [sum(run.learner == label for run in tries) for label in ("ftpl-shared", "o-reps")]
    assert counts[0] == counts[1] == 18
    assert min(run.settings.seed for run in tries) > max(spec.seeds)


def test_a_learner_may_have_a_grid_of_its_own_of_the_same_size() -> None:
    own = "tune = { multiplier = [1, 2, 3, 4, 5, 6, 7, 8, 9] }"
    spec = spec_of(learners=f'name = "ftpl-shared"\n[[learners]]\nname = "o-reps"\n{own}')
    assert not list(spec.notes)
    plan, runs = decided(spec, distance(7, 1))
    tries = [one.learner for one in runs if one.role is Role.TUNING]
    assert tries.count("ftpl-shared") == tries.count("o-reps") == 9 * 2
    assert chosen(plan, "o-reps") == {"multiplier": 7}


def test_a_learner_that_tunes_itself_can_be_tried_with_other_settings() -> None:
    learners = 'name = "soft-leader"\ntune = { gamma = [0.0, 0.1] }\n[[learners]]\nname = "o-reps"'
    spec = spec_of("multipliers = [1, 4]", learners)
    _, runs = decided(spec, lambda learner: -learner.settings.get("gamma", 0.0))
    assert {
        one.settings.learner.settings["gamma"] for one in runs if one.learner == "soft-leader" and one.role == "tuned"
    } == {0.1}


def test_values_replace_those_of_the_learner_and_multipliers_scale_its_own() -> None:
    own = 'name = "ftpl-shared"\nmultiplier = 2\nsettings = { limit = 5, perturbation = "gaussian" }'
    plan, runs = decided(spec_of(learners=own), distance(8, 9))
    assert chosen(plan) == {"multiplier": 4, "limit": 9}
    (tuned,) = [one.settings.learner for one in runs if one.role is Role.TUNED]
    assert (tuned.multiplier, dict(tuned.settings)) == (8.0, {"limit": 9, "perturbation": "gaussian"})


# Doubts


def test_a_choice_inside_its_lists_has_no_warnings() -> None:
    assert not warnings(decided(spec_of(), distance(4, 9))[0])


@pytest.mark.parametrize("search", SEARCHES)
def test_a_choice_at_the_edge_is_told(search: str) -> None:
    plan, _ = decided(spec_of(f"{GRID}\n{search}"), distance(16, 9))
    assert warnings(plan) == ["multiplier = 16 is at the edge of the grid (1, 4, 16): a value beyond it may be better"]
    assert list(plan.warnings) == [f"tuning of ftpl-shared in g: {warnings(plan)[0]}"]
    assert len(warnings(decided(spec_of(f"{GRID}\n{search}"), distance(16, 3))[0])) == 2


def test_a_single_value_and_words_have_no_edge() -> None:
    grid = 'grid = { multiplier = [4], perturbation = ["laplace", "gumbel"] }'
    plan, _ = decided(spec_of(grid), lambda learner: len(str(learner.settings.get("perturbation"))))
    assert chosen(plan) == {"multiplier": 4, "perturbation": "gumbel"}
    assert not warnings(plan)


@pytest.mark.parametrize("search", SEARCHES)
def test_values_that_make_no_difference_are_told(search: str) -> None:
    """A limit that is never reached: 9 and 27 play alike, whatever the multiplier."""

    def capped(learner: LearnerSettings) -> float:
        limit: int = min(learner.settings.get("limit", 1), 9)
        return abs(log(learner.multiplier / 5)) + 9 - limit

    plan, _ = decided(spec_of(f"{GRID}\n{search}"), capped)
    assert chosen(plan) == {"multiplier": 4, "limit": 9}
    assert warnings(plan) == ["limit = 9, 27 did alike in all tries: it saturates there"]


def test_values_that_differ_somewhere_do_not_saturate() -> None:
    def once(learner: LearnerSettings) -> float:
        limit: int = learner.settings.get("limit", 1)
        return abs(log(learner.multiplier / 4)) + (limit if learner.multiplier == 1 else 0) + (limit == 3)

    plan, _ = decided(spec_of(), once)
    assert not [warning for warning in warnings(plan) if "saturates" in warning]


def test_tries_that_failed_are_counted_and_never_chosen() -> None:
    def failing(learner: LearnerSettings) -> float:
        return inf if learner.settings.get("limit") == 3 else distance(4, 9)(learner)

    plan, _ = decided(spec_of(), failing)
    assert chosen(plan) == {"multiplier": 4, "limit": 9}
    assert warnings(plan) == ["6 of 18 tries failed"]
    nothing, _ = decided(spec_of(), lambda learner: inf)
    assert chosen(nothing)["multiplier"] == 1
    assert warnings(nothing) == ["18 of 18 tries failed"]


def test_a_tie_is_told_once_and_goes_to_theory() -> None:
    plan, _ = decided(spec_of(GRID.replace("[1, 4, 16]", "[4, 1, 16]")), lambda learner: 7.0)
    assert chosen(plan) == {"multiplier": 1, "limit": 3}
    assert warnings(plan) == ["a tie: all candidates did alike in all tries; the nearest to theory is taken"]


# Runs


HALVED = '\n[tune]\ngrid = { multiplier = [1, 4, 16], limit = [2, 9] }\nsearch = "halving"\nseeds = 1\n'


def played(folder: Path, **options: Any) -> Outcome:
    with Store(folder) as store, threads() as engine:
        return run(small(seeds=1, more=HALVED), store, engine, **options)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """All results, and the number of runs."""
    folder = tmp_path_factory.mktemp("plain")
    outcome = played(folder)
    assert outcome.complete
    return table(small(seeds=1, more=HALVED), folder), outcome.played


def test_stages_are_stored_runs_of_growing_length(tmp_path: Path) -> None:
    played(tmp_path)
    made = frame(small(seeds=1, more=HALVED), Store(tmp_path), tries=True)
    # Six candidates of FTPL, three of mirror descent on twice the seeds; half of them stay, rounded up.
    assert made[made["role"] == "tuning"]["id"].nunique() == (6 + 3 + 2) + 2 * (3 + 2)


class Stopping(Executor):
    """Plays a few runs, then asks to stop."""

    def __init__(self, runs: int, stop: Event) -> None:
        self.left, self.stop = runs, stop

    def submit(self, work: Any, /, *given: Any, **others: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(*given))
        self.left -= 1
        if not self.left:
            self.stop.set()
        return future


@pytest.mark.parametrize("runs", [1, 13, 17])
def test_a_search_that_was_stopped_goes_on(tmp_path: Path, undisturbed: tuple[str, int], runs: int) -> None:
    stop = Event()
    with Store(tmp_path) as store:
        engine = ExternalExecutor(Stopping(runs, stop), 1)
        first = run(small(seeds=1, more=HALVED), store, engine, stop=stop)
    assert first.interrupted
    rest = played(tmp_path)
    assert rest.found == first.played
    assert rest.found + rest.played == undisturbed[1]
    assert table(small(seeds=1, more=HALVED), tmp_path) == undisturbed[0]


def test_shards_play_a_search_stage_by_stage(tmp_path: Path, undisturbed: tuple[str, int]) -> None:
    outcomes = [played(tmp_path, shard=Shard(i, 2)) for _ in range(4) for i in (1, 2)]
    assert outcomes[0].tuning > 0
    assert not outcomes[0].complete
    assert outcomes[-1].complete
    assert sum(outcome.played for outcome in outcomes) == undisturbed[1]
    assert table(small(seeds=1, more=HALVED), tmp_path) == undisturbed[0]


def test_results_name_the_settings_of_each_run(tmp_path: Path) -> None:
    played(tmp_path)
    made = frame(small(seeds=1, more=HALVED), Store(tmp_path), tries=True)
    tried = made[(made["role"] == "tuning") & (made["learner"] == "ftpl-shared")]
    assert set(tried["settings.limit"]) == {2, 9}
    assert made[made["learner"] == "o-reps"]["settings.limit"].isna().all()


# The plan of a folder


def test_a_plan_keeps_grids_and_search(tmp_path: Path) -> None:
    more = '\n[[learners]]\nname = "uob-reps"\ntune = { delta = [0.1, 0.2, 0.3], multiplier = [1, 2] }'
    spec = small(more=f"{HALVED}{more}")
    with Store(tmp_path) as store:
        store.prepare(spec.titled, manifest.dump(spec))
    found = manifest.load(tmp_path)
    assert found == spec
    assert found.first() == spec.first()


def test_a_plan_of_before_grids_and_baselines_is_read(tmp_path: Path) -> None:
    spec = small(more=TUNE)
    assert spec.tune
    content = json.loads(manifest.dump(spec))
    del content["baselines"]
    content["tune"] = {"multipliers": [1.0, 4.0], "seeds": spec.tune.seeds, "rounds": None}
    with Store(tmp_path) as store:
        store.prepare(spec.titled, json.dumps(content).encode())
    found = manifest.load(tmp_path)
    assert (found.tune, found.baselines) == (spec.tune, ())
    assert found.first() == spec.first()
