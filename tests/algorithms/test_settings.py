"""Settings of learners by name: theory's values, the multiplier that scales the rate alone, values by hand."""

from collections.abc import Iterable
from functools import cache
from math import inf, nan
from typing import Any

import pytest

import amdp
from amdp import options, registry
from amdp.algorithms.estimators.importance_weighting import FallingExploration
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.named import GROUP, settings, tunes_itself
from amdp.algorithms.settings import WHAT
from amdp.algorithms.task import Task
from amdp.errors import AmdpError, InvalidInput
from amdp.game.match import Match, enter

UNKNOWN: tuple[dict[str, Any], ...] = ({}, {"unknown": True}, {"unknown": True, "radius": "l1"})
WORLDS = ("waiting-ring", "random-parked", "random-ergodic", "random-entered")
NAMES = registry.names(GROUP)
FIXED = [name for name in NAMES if "rate" in options.defaults(registry.find(GROUP, name))]


@cache
def games() -> list[amdp.Game]:
    """Made when the first test asks: a game compiles kernels, which every process would do while it collects tests."""
    episodic = [amdp.Game("tiny", rounds=500, **known) for known in UNKNOWN]
    return episodic + [amdp.Game(world, steps=500) for world in WORLDS]


def game_of(name: str) -> amdp.Game:
    """The first of the small games that the learner of that name plays."""
    for game in games():
        try:
            enter(game, name)
        except AmdpError:
            continue
        return game
    raise AssertionError(f"{name} plays none of the games of these tests")


def fixed(name: str) -> dict[str, Any]:
    return {"rate": "theory"} if tunes_itself(name, {}) else {}


@pytest.mark.parametrize("name", NAMES)
def test_the_multiplier_scales_the_rate_and_nothing_else(name: str) -> None:
    if name not in FIXED:
        assert name == "uniform" or tunes_itself(name, {})
        return
    game = game_of(name)
    once, bold = (amdp.settings(game, name, multiplier=factor, **fixed(name)) for factor in (1.0, 7.0))
    assert bold.pop("rate") == pytest.approx(7.0 * once.pop("rate"))
    assert bold == once


@pytest.mark.parametrize("name", FIXED)
def test_a_rate_by_hand_is_scaled_too_and_moves_no_other_setting(name: str) -> None:
    game = game_of(name)
    theory, by_hand = amdp.settings(game, name, **fixed(name)), amdp.settings(game, name, rate=0.01, multiplier=3.0)
    assert by_hand == theory | {"rate": pytest.approx(0.03)}


@pytest.mark.parametrize("name", FIXED)
def test_theory_by_hand_is_theory(name: str) -> None:
    """The settings that are shown are those that the learner is built with."""
    game = game_of(name)
    shown = {key: value for key, value in amdp.settings(game, name, **fixed(name)).items() if value is not None}
    if "guess" in shown:  # the values of its first life
        return
    unused = {"first"} & shown.keys()  # of adaptive rates
    by_hand = {key: value for key, value in shown.items() if key not in unused}
    assert enter(game, name, **by_hand).learner == enter(game, name, **fixed(name)).learner


def test_every_setting_is_explained() -> None:
    for name in NAMES:
        assert set(options.defaults(registry.find(GROUP, name))) <= set(WHAT)


def settings_among(keys: Iterable[str]) -> list[tuple[str, str]]:
    """Each learner by name with each of its settings that is one of `keys`."""
    return [(name, key) for name in NAMES for key in options.defaults(registry.find(GROUP, name)) if key in keys]


def parameter(match: Match, setting: str) -> Any:
    """The value that a built learner has, wherever it keeps it."""
    learner: Any = match.learner
    parts = [
        learner,
        *(getattr(learner, part, None) for part in ("estimator", "perturbation", "scheme", "critic", "schedule")),
    ]
    parts += [getattr(parts[1], "inner", None), getattr(learner, "rate", None), match.epochs]
    if setting == "most_policies":
        return learner.limit if isinstance(learner, Hedge) else None
    if setting == "guess":
        return learner.first
    if setting == "gamma" and isinstance(learner.estimator, FallingExploration):
        return pytest.approx(learner.estimator.at(learner.rate.value).gamma)  # of the first round
    if setting == "epochs":
        return match.rounds
    found = [getattr(part, setting) for part in parts if hasattr(part, setting)]
    return found[0]


BY_HAND: dict[str, Any] = {
    "gamma": 0.037,
    "barrier": 0.11,
    "exploration": 0.21,
    "bonus": 0.5,
    "limit": 17,
    "first": 2.5,
    "plans": 3,
    "guess": 6,
    "most_policies": 99_999,
    "lookback": 9,
    "block": 40,
    "longest": 2,
    "epochs": 10,
    "window": 4,
    "rate": 0.0125,
}


@pytest.mark.parametrize(("name", "setting"), settings_among(BY_HAND))
def test_settings_by_hand_reach_the_learner(name: str, setting: str) -> None:
    if "guess" in (defaults := options.defaults(registry.find(GROUP, name))) and setting != "guess":
        pytest.skip("its lives are built while it plays")
    match = enter(game_of(name), name, **{setting: BY_HAND[setting]})
    found = parameter(match, setting)
    assert getattr(found, "value", found) == BY_HAND[setting]
    assert set(match.settings) == set(defaults)
    assert match.settings[setting] == BY_HAND[setting]


WRONG: dict[str, tuple[Any, ...]] = {
    "rate": (0.0, -1.0, inf, nan),
    "gamma": (-0.1, inf, nan),
    "exploration": (-0.1, 1.5, nan),
    "delta": (0.0, -0.1, 2.0, nan),
    "bonus": (-1.0, inf, nan),
    "first": (0.0, -1.0, inf, nan),
    **dict.fromkeys(("limit", "plans", "guess", "most_policies", "lookback", "block", "longest", "epochs"), (0, -3)),
    "window": (-1,),
}


@pytest.mark.parametrize(("name", "setting"), settings_among(WRONG))
def test_bad_values_are_refused_by_name(name: str, setting: str) -> None:
    for value in WRONG[setting]:
        with pytest.raises(InvalidInput, match=rf"\b{setting} = "):
            enter(game_of(name), name, **{setting: value})
    with pytest.raises(InvalidInput, match=rf"{setting} = 'much'; it must be"):
        enter(game_of(name), name, **dict.fromkeys([setting], "much"))  # type: ignore[arg-type]


def test_delta_moves_the_theory_of_rate_and_gamma() -> None:
    bold, careful = (amdp.settings(games()[1], "uob-reps", delta=delta) for delta in (0.5, 0.001))
    assert bold["delta"] == 0.5
    assert bold["rate"] == bold["gamma"] < careful["rate"] == careful["gamma"]


def test_settings_of_a_task_are_those_of_its_game() -> None:
    game = amdp.Game("tiny", rounds=500, delay="fixed:20", unknown=True)
    task = Task(game.domain, game.rounds, game.total_delay, multiplier=2.0, learner="delayed-hedge")
    assert settings(task, gamma=0.25) == amdp.settings(game, "delayed-hedge", multiplier=2.0, gamma=0.25)


def test_a_setting_that_would_do_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="window = 3"):
        enter(games()[3], "ftpl-infinite", exact=True, window=3)
    with pytest.raises(InvalidInput, match="first = 2"):
        enter(games()[0], "soft-leader", rate="theory", first=2.0)


def test_a_bonus_may_have_another_size() -> None:
    game = amdp.Game("tiny", rounds=30, unknown=True)
    runs = [amdp.play(game, "dilated-bonus", bonus=bonus, rate=0.2) for bonus in (0.0, 1.0)]
    assert runs[0].loss[-1] != runs[1].loss[-1]


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        *((name, True) for name in ("o-reps", "o-ssp", "pomd", "dilated-bonus", "uob-reps", "ftpl-unknown-rounds")),
        *((name, False) for name in ("ftpl", "hedge", "delayed-uob-reps", "delayed-oppo", "fpl", "fll")),
        *((name, False) for name in ("soft-leader", "o-reps-adaptive", "ftpl-unknown-delay", "uniform")),
    ],
)
def test_rates_that_do_not_know_of_the_delay_are_marked(name: str, marked: bool) -> None:
    late, prompt = (amdp.Game("tiny", rounds=50, delay=delay) for delay in ("fixed:5", "none"))
    assert enter(late, name).tuned_without_delay is marked
    assert enter(late, name).used.get("tuned_without_delay", False) is marked
    assert not enter(prompt, name).tuned_without_delay
