"""A spec in TOML, in JSON or as a dictionary: what it asks for, and the message that each kind of mistake gets."""

import json
import pickle
import tomllib
from itertools import product
from math import inf, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from amdp.cli import app
from amdp.errors import InvalidInput, SpecError
from amdp.experiments import entries
from amdp.experiments.building import arrange
from amdp.experiments.execution import execute
from amdp.experiments.grid import Point, expanded
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.experiments.spec import Planned, Role, Spec
from amdp.experiments.tuning import SEEDS_BEGIN, Tune

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

SMALL = """
[[games]]
instance = "tiny"
episodes = 20

[[learners]]
name = "ftpl"
"""


def spec(games: str = 'instance = "tiny"\nepisodes = 20', learners: str = 'name = "ftpl"', top: str = "") -> Spec:
    return Spec.parse(f"{top}\n[[games]]\n{games}\n[[learners]]\n{learners}\n")


def test_the_shortest_spec_is_one_run_and_its_baseline() -> None:
    only, uniform = Spec.parse(SMALL, "short.toml").first()
    game = GameSettings(Named("tiny"), Named("bernoulli"), episodes=20)
    assert uniform == Planned(RunSettings(game, LearnerSettings("uniform"), 1, 50), "tiny", "uniform", Role.BASELINE)
    assert Spec.parse(f"baseline = false\n{SMALL}").first() == [only]
    assert only == Planned(RunSettings(game, LearnerSettings("ftpl"), 1, 50), "tiny", "ftpl", Role.THEORY)
    assert Spec.parse(SMALL, "short.toml").title == "short"
    assert Spec.parse(SMALL).text == SMALL


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("seeds = 3", (1, 2, 3)),
        ("seeds = [7, 5]", (7, 5)),
        ("seeds = { first = 10, count = 2 }", (10, 11)),
        ("seeds = { count = 2 }", (1, 2)),
    ],
)
def test_seeds_are_a_count_a_list_or_a_range(written: str, expected: tuple[int, ...]) -> None:
    assert spec(top=written).seeds == expected


def test_lists_make_a_grid_also_inside_tables() -> None:
    made = spec(
        'instance = { name = "lock", code = [[1, 0], [0, 1, 1]], jam = [0.0, 0.1] }\nepisodes = 20\n'
        'losses = ["nominal", { name = "swap", first = [5, 10] }]',
        'name = "ftpl"\noracle = ["dp", { name = "lp", gap = [1e-7, 1e-9] }]\nsettings = { limit = [3, 4] }',
    )
    assert len(made.games) == 2 * 2 * 3
    assert len(made.learners) == 3 * 2
    assert "lock code=[0,1,1] jam=0.1 losses=swap first=10" in made.games
    assert made.games["lock code=[1,0] jam=0 losses=nominal"].instance.settings == {"code": [1, 0], "jam": 0.0}
    assert made.learners["ftpl oracle=lp gap=1e-09 limit=4"].oracle == Named("lp", {"gap": 1e-9})
    assert "ftpl oracle=dp limit=3" in made.learners
    assert len(made.first()) == 12 * (6 + 1)


def test_defaults_are_for_all_who_do_not_say_otherwise() -> None:
    made = Spec.parse("""
[defaults]
episodes = 30
losses = "uniform"
oracle = "lp"
[[games]]
instance = "tiny"
[[games]]
instance = "forest"
episodes = 40
losses = "nominal"
[[games]]
instance = { name = "random-parked", n_states = 2, n_actions = 2 }
steps = 50
learners = ["hedge-infinite"]
[[learners]]
name = "ftpl"
[[learners]]
name = "fpl"
oracle = "dp"
[[learners]]
name = "hedge-infinite"
""")
    assert [game.episodes for game in made.games.values()] == [30, 40, None]
    assert [game.losses.name for game in made.games.values()] == ["uniform", "nominal", "uniform"]
    assert [learner.oracle for learner in made.learners.values()] == [Named("lp"), Named("dp"), Named("lp")]


def test_entries_without_labels_are_told_apart_by_what_differs() -> None:
    made = Spec.parse("""
[[games]]
instance = "tiny"
episodes = 20
[[games]]
instance = "tiny"
episodes = 20
delay = "fixed:3"
[[learners]]
name = "ftpl"
[[learners]]
name = "ftpl"
oracle = "lp"
[[learners]]
label = "mine"
name = "ftpl"
multiplier = 2
""")
    assert list(made.games) == ["tiny delay=none", "tiny delay=fixed:3"]
    assert list(made.learners) == ["ftpl", "ftpl oracle=lp", "mine"]


def test_labels_of_many_entries_look_at_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[GameSettings] = []

    def counted(one: GameSettings, other: object) -> bool:
        looks.append(one)
        return one is other

    games = [GameSettings(Named("tiny"), Named("bernoulli"), episodes=n + 1) for n in range(1000)]
    monkeypatch.setattr(GameSettings, "__eq__", counted)
    labelled = entries._labelled(entries.Entry("", "tiny", game, Point("games[0]", {}, {}), None) for game in games)
    assert [entry.label for entry in labelled] == [f"tiny episodes={n + 1}" for n in range(1000)]
    assert not looks


def test_pairings_that_cannot_work_are_skipped_with_a_reason() -> None:
    made = Spec.parse("""
[[games]]
label = "known"
instance = "tiny"
episodes = 20
[[games]]
label = "unknown"
instance = "tiny"
episodes = 20
unknown = true
[[games]]
label = "told all"
instance = "tiny"
episodes = 20
feedback = "full"
[[games]]
label = "stream"
instance = { name = "random-parked", n_states = 3, n_actions = 2 }
steps = 60
[[games]]
label = "large"
instance = "river-swim"
episodes = 20
[[learners]]
name = "o-reps"
[[learners]]
name = "fpl"
[[learners]]
name = "hedge"
[[learners]]
name = "ftpl-infinite"
""")
    played = {game: [learner for one, learner in made.pairs if one == game] for game in made.games}
    assert played == {
        "known": ["o-reps", "fpl", "hedge"],
        "unknown": ["fpl"],
        "told all": ["fpl"],
        "stream": ["ftpl-infinite"],
        "large": ["o-reps", "fpl"],
    }
    reasons = {(one.game, one.learner): one.reason for one in made.skipped}
    assert len(reasons) + len(made.pairs) == 5 * 4
    assert "needs a kernel" in reasons["unknown", "o-reps"]
    assert reasons["told all", "o-reps"] == "o-reps understands bandit feedback; the game tells full"
    assert "use Game(..., steps=N)" in reasons["known", "ftpl-infinite"]
    assert "more than its limit" in reasons["large", "hedge"]
    assert "o-reps plays episodes" in reasons["stream", "o-reps"]


def test_labels_choose_pairings_of_a_whole_grid_or_of_one_point() -> None:
    text = """
[[games]]
label = "a"
instance = "tiny"
episodes = 20
delay = ["none", "fixed:3"]
[[games]]
label = "b"
instance = "forest"
episodes = 20
learners = ["fpl", "ftpl oracle=lp"]
[[learners]]
name = "ftpl"
oracle = ["dp", "lp"]
[[learners]]
name = "fpl"
games = ["a delay=none", "b"]
"""
    assert Spec.parse(text).pairs == (
        ("a delay=none", "ftpl oracle=dp"),
        ("a delay=none", "ftpl oracle=lp"),
        ("a delay=none", "fpl"),
        ("a delay=fixed:3", "ftpl oracle=dp"),
        ("a delay=fixed:3", "ftpl oracle=lp"),
        ("b", "ftpl oracle=lp"),
        ("b", "fpl"),
    )
    assert Spec.parse(text).skipped == ()


def game_of(text: str) -> str:
    """A spec whose second game has a mistake."""
    return f'{SMALL}\n[[games]]\nlabel = "second"\n{text}\n'


def learner_of(text: str) -> str:
    return f"{SMALL}\n[[learners]]\n{text}\n"


TINY = 'instance = "tiny"\nepisodes = 9\n'

WRONG: list[tuple[str, str, str]] = [
    ("title = ", "spec", "not TOML: Invalid value (at line 1, column 9, the end)"),
    ("a = 1\na = 2\n", "spec", "not TOML: Cannot overwrite a value (at line 2, column 6)"),
    ("seeds = 3\ntitle 5\n", "spec", "not TOML: Expected '=' after a key in a key/value pair (at line 2, column 7)"),
    (SMALL.replace("[[games]]", "[[game]]"), "game", "unknown key; did you mean 'games'? known keys: title, seeds"),
    ("[[games]]\n" + TINY, "learners", "missing; it must be given"),
    ("games = 3\nlearners = []", "games", "3; write one or more [[games]]"),
    ('learners = []\n[[games]]\ninstance = "tiny"\nepisodes = 2', "learners", "[]; write one or more [[learners]]"),
    (f'title = ""{SMALL}', "title", '""; it must be a text of one line'),
    (f"title = 3{SMALL}", "title", "3; it must be a text of one line"),
    (f"checkpoints = 1{SMALL}", "checkpoints", "1; it must be a whole number, 2 .. "),
    (f"checkpoints = [5, 9]{SMALL}", "checkpoints", "[5, 9]; it must be a whole number"),
    (f"seeds = 0{SMALL}", "seeds", "0; it must be a whole number, 1 .. 100000"),
    (f"seeds = true{SMALL}", "seeds", "true; it must be a whole number"),
    (f"seeds = []{SMALL}", "seeds", "[]; give at least one"),
    (f"seeds = [3, -1]{SMALL}", "seeds[1]", "-1; it must be a whole number, 0 .. 4294967295"),
    (f"seeds = [3, 4, 3]{SMALL}", "seeds[2]", "3; it is in the list already"),
    (f"seeds = {{ fist = 3, count = 2 }}{SMALL}", "seeds.fist", "unknown key; did you mean 'first'?"),
    (f"seeds = {{ first = 3 }}{SMALL}", "seeds.count", "missing"),
    (f"seeds = [4294967296]{SMALL}", "seeds[0]", "4294967296; it must be a whole number, 0 .. 4294967295"),
    (f"[defaults]\nlable = 1{SMALL}", "defaults.lable", "unknown key; known keys: instance, "),
    (f'[defaults]\ndelay = "fixed"{SMALL}', "defaults.delay", "no delays 'fixed'; known forms: none, fixed:DELAY"),
    (f"[defaults]\noracle = 3{SMALL}", "defaults.oracle", "3; it must be a text"),
    (game_of("episodes = 3"), "games[1].instance", "missing; it must be given"),
    (game_of('instance = "tiny"'), "games[1]", "give either episodes or steps"),
    (game_of(TINY + "steps = 9"), "games[1]", "give either episodes or steps"),
    (game_of(TINY + "episode = 9"), "games[1].episode", "unknown key; did you mean 'episodes'?"),
    (game_of('instance = "tiny"\nepisodes = 0'), "games[1].episodes", "0; it must be a whole number, 1 .. "),
    (game_of('instance = "tiny"\nepisodes = "9"'), "games[1].episodes", '"9"; it must be a whole number'),
    (game_of('instance = "tiny"\nepisodes = 9.5'), "games[1].episodes", "9.5; it must be a whole number"),
    (game_of('instance = "tiny"\nepisodes = [5, 9.5]'), "games[1].episodes[1]", "9.5; it must be a whole number"),
    (game_of('instance = "tiny"\nepisodes = []'), "games[1].episodes", "[]; an empty list leaves nothing to run"),
    (game_of('instance = "tiny"\nepisodes = [9, 9]'), "games[1].episodes[1]", "9; it is in the list already"),
    (game_of('instance = "rivers-wim"\nepisodes = 9'), "games[1].instance", "did you mean 'river-swim'? known names: "),
    (game_of("instance = { n_states = 3 }\nepisodes = 9"), "games[1].instance.name", "missing; it must be given"),
    (game_of("instance = 3\nepisodes = 9"), "games[1].instance", "3; it must be a text"),
    (game_of('instance = "no.npz"\nepisodes = 9'), "games[1].instance", "no.npz cannot be read: No such file"),
    (
        game_of('instance = { name = "tiny", states = 3 }\nepisodes = 9'),
        "games[1].instance.states",
        "unknown key; did you mean 'n_states'? known keys: n_steps, n_states, n_actions, seed, concentration",
    ),
    (
        game_of('instance = { name = "tiny", n_states = [3, "four"] }\nepisodes = 9'),
        "games[1].instance.n_states[1]",
        '"four"; it must be a whole number',
    ),
    (
        game_of('instance = { name = "grid", slip = 1.5 }\nepisodes = 9'),
        "games[1].instance.slip",
        "1.5; it must be between 0 and 1",
    ),
    (
        game_of('instance = { name = "lock", code = [1, 0] }\nepisodes = 9'),
        "games[1].instance.code[0]",
        "1; it must be a list",
    ),
    (
        game_of('instance = { name = "lock", code = [[1, 7]] }\nepisodes = 9'),
        "games[1].instance",
        "code[1] = 7; it must be between 0 and 1",
    ),
    (game_of(TINY + 'losses = "swop"'), "games[1].losses", "\"swop\"; did you mean 'swap'? known names: nominal"),
    (
        game_of(TINY + 'losses = { name = "seasonal", period = -3 }'),
        "games[1].losses.period",
        "-3; it must be finite and above 0",
    ),
    (game_of(TINY + 'losses = { name = "swap", first = nan }'), "games[1].losses.first", "NaN; it must be a whole"),
    (game_of(TINY + 'losses = { name = "beta", concentration = inf }'), "games[1].losses", "concentration = inf; it"),
    (game_of(TINY + 'losses = "gone.csv"'), "games[1].losses", "gone.csv cannot be read: No such file"),
    (
        game_of(TINY + 'losses = { name = "gone.csv", first = 3 }'),
        "games[1].losses.first",
        "unknown key; nothing can be set here",
    ),
    (game_of(TINY + 'delay = "fixed:-1"'), "games[1].delay", "-1; it must be a whole number, 0 .. "),
    (game_of(TINY + 'delay = ["none", "long"]'), "games[1].delay[1]", "no delays 'long'; known forms: none"),
    (game_of(TINY + 'feedback = "none"'), "games[1].feedback", "'none'; give 'bandit', 'full' or 'aggregate'"),
    (game_of(TINY + "unknown = 1"), "games[1].unknown", "1; it must be true or false"),
    (game_of(TINY + 'unknown = true\nradius = "wide"'), "games[1].radius", "'wide'; known names: own, paper, jin-2020"),
    (game_of(TINY + "radius_scale = 0"), "games[1].radius_scale", "0.0; it must be above 0 and finite"),
    (game_of(TINY + "radius_scale = inf"), "games[1].radius_scale", "inf; it must be above 0 and finite"),
    (game_of(TINY + 'comparator = "simplex"'), "games[1].comparator", '"simplex"; known names: auto'),
    (
        game_of(TINY + 'comparator = "milp"'),
        "games[1].comparator",
        "'second' has no runs; it fits nothing: 'second' with 'ftpl': milp does not solve MarkovPolicies",
    ),
    (game_of('instance = "server-farm"\nsteps = 40\nunknown = true'), "games[1].unknown", "true; a stream of steps"),
    (
        game_of('instance = "server-farm"\nsteps = 40\ndelay = "fixed:2"'),
        "games[1].delay",
        "'fixed:2'; a stream of steps",
    ),
    (
        game_of('instance = { name = "server-farm", n_steps = 30 }\nsteps = 40'),
        "games[1].instance.n_steps",
        "30; a stream of steps has as many as its game, 40",
    ),
    (
        game_of('instance = "server-farm"\nsteps = 40'),
        "games[1]",
        "'second' has no runs; it fits nothing: 'second' with 'ftpl': ftpl plays episodes, not one stream",
    ),
    (game_of(TINY + 'learners = "ftpl"'), "games[1].learners", '"ftpl"; it must be a list of labels'),
    (
        game_of(TINY + 'learners = ["ftpl", "o-rep"]'),
        "games[1].learners[1]",
        "'o-rep'; known labels: ftpl",
    ),
    (game_of('instance = "tiny"\nepisodes = 20'), "games[1]", "the same as 'tiny' of games[0]"),
    (game_of(TINY) + game_of(TINY).partition('ftpl"')[2], "games[2].label", '"second"; another entry has it already'),
    (learner_of('label = "x"'), "learners[1].name", "missing; it must be given"),
    (learner_of('name = "ftlp"'), "learners[1].name", "\"ftlp\"; did you mean 'ftpl'? known names: "),
    (learner_of('name = "ftpl"\nspeed = 3'), "learners[1].speed", "unknown key; known keys: label, name, oracle"),
    (
        learner_of('name = "ftpl"\nrate = 0.3'),
        "learners[1].rate",
        "unknown key; it is a setting of 'ftpl': write settings = { rate = 0.3 }",
    ),
    (
        learner_of('name = ["fpl", "ftpl-shared"]\nlimit = 3'),
        "learners[1].limit",
        "unknown key; it is a setting of 'ftpl-shared': write settings = { limit = 3 }",
    ),
    (
        learner_of('name = "ftpl"\noracle = "lp"\nthreads = 2'),
        "learners[1].threads",
        "unknown key; it is a setting of 'lp': write oracle = { name = \"lp\", threads = 2 }",
    ),
    (
        game_of(TINY + "n_states = 4"),
        "games[1].n_states",
        "unknown key; it is a setting of 'tiny': write instance = { name = \"tiny\", n_states = 4 }",
    ),
    (learner_of('name = "ftpl"\noracle = "dpp"'), "learners[1].oracle", "\"dpp\"; did you mean 'dp'?"),
    (
        learner_of('name = "ftpl"\noracle = { name = "lp", time = 3 }'),
        "learners[1].oracle.time",
        "unknown key; known keys: seconds, gap, threads",
    ),
    (
        learner_of('name = "ftpl"\noracle = { name = "lp", threads = [1, 0] }'),
        "learners[1].oracle.threads[1]",
        "0; it must be at least 1",
    ),
    (learner_of('name = "o-reps"\nprojection = "simplex"'), "learners[1].projection", '"simplex"; known names: cvxpy'),
    (learner_of('name = "ftpl"\nmultiplier = 0'), "learners[1].multiplier", "0.0; it must be above 0 and finite"),
    (learner_of('name = "ftpl"\nmultiplier = "2"'), "learners[1].multiplier", '"2"; it must be a number'),
    (learner_of('name = "ftpl"\nsettings = 3'), "learners[1].settings", "3; it must be a table"),
    (
        learner_of('name = "ftpl"\nsettings = { rte = 3 }'),
        "learners[1].settings.rte",
        "unknown key; did you mean 'rate'? known keys: rate, limit",
    ),
    (
        learner_of('name = "ftpl"\nsettings = { rate = "x" }'),
        "learners[1].settings.rate",
        '"x"; it must be a number or ',
    ),
    (
        learner_of('name = "ftpl"\nsettings = { limit = 0 }'),
        "learners[1].settings.limit",
        "'ftpl limit=0' has no runs; it fits nothing: 'tiny' with 'ftpl limit=0': limit = 0; ",
    ),
    (
        learner_of('name = "hedge-infinite"'),
        "learners[1]",
        "'hedge-infinite' has no runs; it fits nothing: 'tiny' with 'hedge-infinite': hedge-infinite plays one stream",
    ),
    (
        learner_of('name = "hedge-infinite"\ngames = ["tiny"]'),
        "learners[1].games",
        "'tiny' cannot be paired with it: hedge-infinite plays one stream of steps",
    ),
    (learner_of('name = "fpl"\ngames = []'), "learners[1].games", "[]; it must be a list of labels"),
    (
        game_of(TINY + 'unknown = true\nlearners = ["o-reps"]') + '[[learners]]\nname = "o-reps"',
        "games[1].learners",
        "'o-reps' cannot be paired with it: o-reps needs a kernel",
    ),
    (
        learner_of('name = "ftpl"\noracle = "milp"'),
        "learners[1].oracle",
        "'ftpl oracle=milp' has no runs; it fits nothing: 'tiny' with 'ftpl oracle=milp': milp does not solve",
    ),
    (
        learner_of('name = "o-reps"\noracle = "lp"'),
        "learners[1].oracle",
        "lp; o-reps does not use it; its options: projection, multiplier",
    ),
    (game_of(TINY + 'comparator = { name = "lp", gap = -1 }'), "games[1].comparator.gap", "-1"),
    (f"checkpoints = 100001\n{SMALL}", "checkpoints", "100001; it must be a whole number, 2 .. 100000"),
    (
        learner_of('name = "fpl"\nmultiplier = 1e200') + "[tune]\nmultipliers = [1, 1e200]",
        "tune.multipliers[1]",
        "1e+200; times the multiplier 1e+200 of 'fpl' it must be above 0 and finite",
    ),
    (f"{SMALL}\n[tune]\nseeds = 3", "tune.multipliers", "missing; it must be given"),
    (f"{SMALL}\n[tune]\nmultipliers = [1, -2]", "tune.multipliers[1]", "-2; it must be a number above 0 and finite"),
    (f"{SMALL}\n[tune]\nmultipliers = 2", "tune.multipliers", "2; it must be a list of numbers"),
    (f"{SMALL}\n[tune]\nmultipliers = [1, 1.0]", "tune.multipliers[1]", "1.0; it is in the list already"),
    (f"{SMALL}\n[tune]\nmultipliers = [1]\nseeds = [1, 2]", "tune.seeds", "[1, 2]; it must be a whole number"),
    (f"{SMALL}\n[tune]\nmultipliers = [1]\nrounds = 0", "tune.rounds", "0; it must be a whole number, at least 1"),
    (f"{SMALL}\n[tune]\nmultipliers = [1]\ngrid = {{ limit = [1] }}", "tune", "give either grid or multipliers"),
    (f"{SMALL}\n[tune]\ngrid = [1, 2]", "tune.grid", "[1, 2]; it must be a table with lists of values"),
    (f"{SMALL}\n[tune]\ngrid = {{}}", "tune.grid", "{}; it must be a table with lists of values"),
    (f"{SMALL}\n[tune]\ngrid = {{ limit = 3 }}", "tune.grid.limit", "3; it must be a list of values to try"),
    (f"{SMALL}\n[tune]\ngrid = {{ limit = [3, 3] }}", "tune.grid.limit[1]", "3; it is in the list already"),
    (f"{SMALL}\n[tune]\ngrid = {{ limit = [[3]] }}", "tune.grid.limit[0]", "it must be a finite number, a text or"),
    (f'{SMALL}\n[tune]\ngrid = {{ limit = ["3"] }}', "tune.grid.limit[0]", '"3"; it must be a whole number'),
    (f"{SMALL}\n[tune]\ngrid = {{ multiplier = [0] }}", "tune.grid.multiplier[0]", "0; it must be a number above 0"),
    (
        f"{SMALL}\n[tune]\ngrid = {{ limt = [3] }}",
        "tune.grid.limt",
        "no learner has this setting; did you mean 'limit'?",
    ),
    (f"{SMALL}\n[tune]\ngrid = {{ oracle = [1] }}", "tune.grid.oracle", "known settings: multiplier, rate, limit"),
    (f"{SMALL}\n[tune]\ngrid = {{ limit = [3, 0] }}", "tune.grid.limit[1]", "'ftpl' refuses it: 0; "),
    (
        f"{SMALL}\n[tune]\ngrid = {{ multiplier = {list(range(1, 201))}, limit = {list(range(1, 61))} }}",
        "tune.grid",
        "its lists make 12000 combinations; at most 10000",
    ),
    (f'{SMALL}\n[tune]\nmultipliers = [1]\nsearch = "halvin"', "tune.search", "did you mean 'halving'?"),
    (f"{SMALL}\n[tune]\nmultipliers = [1]\nsearch = {{ factor = 2 }}", "tune.search.name", "missing; it must be given"),
    (
        f'{SMALL}\n[tune]\nmultipliers = [1]\nsearch = {{ name = "halving", factor = 1 }}',
        "tune.search.factor",
        "1; it must be a whole number, 2 .. 100",
    ),
    (
        f'{SMALL}\n[tune]\nmultipliers = [1]\nsearch = {{ name = "grid", factor = 2 }}',
        "tune.search.factor",
        "unknown key; nothing can be set here",
    ),
    (
        learner_of('name = "fpl"\ntune = { multiplier = [1, 2, 4] }') + "[tune]\nmultipliers = [1, 2]",
        "learners[1].tune",
        "its lists make 3 combinations; [tune] has 2, and every learner gets as many tries",
    ),
    (
        learner_of('name = "fpl"\ntune = { limit = [1, 2] }') + "[tune]\nmultipliers = [1, 2]",
        "learners[1].tune.limit",
        "'fpl' does not have it; known settings: multiplier",
    ),
    (
        learner_of('name = "soft-leader"\ntune = { multiplier = [1, 2] }') + "[tune]\nmultipliers = [1, 2]",
        "learners[1].tune.multiplier",
        "'soft-leader' tunes its rate itself: leave it out",
    ),
    (
        learner_of('name = "fpl"\ntune = { multiplier = [1, 2] }'),
        "learners[1].tune",
        "there is no [tune] with seeds and a grid for all",
    ),
    (f'baseline = "no"\n{SMALL}', "baseline", '"no"; it must be true or false'),
    (f"{SMALL}\n[tune]\nmultipliers = [1]\nround = 5", "tune.round", "unknown key; did you mean 'rounds'?"),
    (
        learner_of(
            f'name = "fpl"\nmultiplier = {list(range(1, 201))}\noracle = {{ name = "lp", gap = [{"1e-9, " * 60}] }}'
        ),
        "learners[1]",
        "its lists make 12000 combinations; at most 10000 are allowed",
    ),
]


@pytest.mark.parametrize(
    "shared",
    [
        '[defaults]\noracle = "lp"\n[[learners]]\nname = "ftpl"\n[[learners]]\nname = "o-reps"\n',
        '[[learners]]\nname = ["ftpl", "o-reps"]\noracle = "lp"\n',
    ],
    ids=["by the defaults", "by an entry"],
)
def test_learners_may_share_an_oracle_that_not_all_of_them_use(shared: str) -> None:
    game = '[[games]]\ninstance = "tiny"\nepisodes = 9\nradius = "jin-2020"\nunknown = false\n'
    made = Spec.parse(f"seeds = 1\n{shared}{game}")
    assert {learner.partition(" ")[0] for _, learner in made.pairs} == {"ftpl", "o-reps"}


@pytest.mark.parametrize(("text", "path", "message"), WRONG, ids=[f"{path}: {text[:24]}" for _, path, text in WRONG])
def test_a_mistake_is_named_with_its_key_its_value_and_the_rule(text: str, path: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        Spec.parse(text)
    assert caught.value.path == path
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    if "not TOML" not in message:
        with pytest.raises(SpecError) as again:
            Spec.from_dict(tomllib.loads(text))
        assert (again.value.path, str(again.value)) == (path, str(caught.value))


FULL = """
title = "all keys"
seeds = { first = 3, count = 2 }
checkpoints = 7
[defaults]
losses = "uniform"
[[learners]]
name = "ftpl"
label = "mine \\"é\\""
oracle = ["dp", { name = "lp", gap = [1e-7, 1e-9] }]
settings = { limit = [3, 4] }
[[games]]
instance = { name = "lock", code = [[1, 0], [0, 1, 1]], jam = [0.0, 0.1] }
episodes = 20
unknown = [true, false]
learners = ["mine \\"é\\""]
[tune]
multipliers = [1, 0.5]
rounds = 5
"""


def test_toml_json_and_dictionaries_give_the_same_spec(tmp_path: Path) -> None:
    toml, content = Spec.parse(FULL), tomllib.loads(FULL)
    (tmp_path / "spec.json").write_text(json.dumps(content), encoding="utf-8")
    for spec in (Spec.from_dict(content), Spec.load(tmp_path / "spec.json", toml.folder or None)):
        assert [run.settings for run in spec.first()] == [run.settings for run in toml.first()]
        assert (spec.title, spec.pairs, spec.tune) == (toml.title, toml.pairs, toml.tune)
        assert tomllib.loads(spec.text) == content
        assert spec.titled == spec.text


def test_values_of_python_stand_for_those_of_toml() -> None:
    game = {"instance": {"name": "tiny", "n_states": np.int64(2)}, "episodes": (20, 30), "feedback": None}
    spec = Spec.from_dict({"seeds": range(3, 5), "games": [game], "learners": ({"name": "ftpl"},)}, name="mine.toml")
    assert (spec.seeds, [game.episodes for game in spec.games.values()]) == ((3, 4), [20, 30])
    assert Spec.parse(spec.text).first() == spec.first()
    assert spec.title == "mine"
    with pytest.raises(SpecError, match=r"games\[0\].feedback\[0\]: null; leave it out instead"):
        Spec.from_dict({"games": [{**game, "feedback": [None, "full"]}], "learners": [{"name": "ftpl"}]})


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not JSON: "), ("[]", "not a JSON object"), ('{"seed": 1}', "seed")]
)
def test_a_file_that_is_no_spec_in_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "spec.json").write_text(text)
    with pytest.raises(SpecError, match=message):
        Spec.load(tmp_path / "spec.json")


def test_an_error_carries_the_field_to_blame_also_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(InvalidInput("3; it must be 4", "limit")))
    assert (str(error), error.field, error.detail) == ("limit = 3; it must be 4", "limit", "3; it must be 4")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"gone.toml: cannot be read"):
        Spec.load(tmp_path / "gone.toml")
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(SpecError, match=r"latin.toml: cannot be read: .*utf-8"):
        Spec.load(tmp_path / "latin.toml")


def test_what_is_read_from_a_file_is_part_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "losses.npz"
    text = f'instance = "tiny"\nepisodes = 4\nlosses = "{path}"'
    np.savez(path, losses=np.zeros((4, 3, 3, 2)))
    before, _ = spec(text).first()
    assert execute(before.settings).curve is not None
    np.savez(path, losses=np.ones((4, 3, 3, 2)))
    after, _ = spec(text).first()
    assert before.id != after.id
    failure = execute(before.settings).failure
    assert failure is not None
    assert "has changed since" in failure.message
    np.savez(path, losses=np.ones((3, 3, 3, 2)))
    with pytest.raises(SpecError, match=r"games\[0\].losses: 4 rounds; .*losses.npz has 3"):
        spec(text)


# --- grids ------------------------------------------------------------------------------------------------------------

SCALARS = st.one_of(st.integers(-5, 5), st.booleans(), st.text("abc", max_size=3))
VALUES = st.recursive(
    st.one_of(SCALARS, st.lists(SCALARS, min_size=1, max_size=3, unique_by=json.dumps)),
    lambda inner: st.dictionaries(st.text("xyz", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=6,
)


def unrolled(value: Any) -> list[Any]:
    """The points of a grid, by the definition."""
    if isinstance(value, dict):
        return [dict(zip(value, one, strict=True)) for one in product(*map(unrolled, value.values()))]
    return value if isinstance(value, list) else [value]


@given(st.dictionaries(st.text("kl", min_size=1, max_size=3), VALUES, max_size=3))
@settings(max_examples=100, deadline=None)
def test_a_grid_is_the_product_of_its_lists(table: dict[str, Any]) -> None:
    if any(isinstance(value, list) and any(one in value[:i] for i, one in enumerate(value)) for value in _all(table)):
        return  # 1 and true are equal in Python; lists with both are refused
    points = [point.values for point in expanded("", table)]
    assert json.dumps(points) == json.dumps(unrolled(table))
    assert json.dumps(points) == json.dumps([point.values for point in expanded("", table)])


def _all(value: Any) -> list[Any]:
    return [value, *(deeper for one in value.values() for deeper in _all(one))] if isinstance(value, dict) else [value]


@given(
    st.lists(st.integers(5, 60), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(["none", "fixed:2", "uniform:0:4"]), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from([0.25, 0.5, 2.0, 3.0]), min_size=1, max_size=3, unique=True),
    st.integers(1, 3),
)
@settings(max_examples=8, deadline=None)
def test_expansion_is_deterministic_complete_and_free_of_repetition(
    episodes: list[int], delays: list[str], multipliers: list[float], seeds: int
) -> None:
    text = (
        f'seeds = {seeds}\n[[games]]\ninstance = "tiny"\nepisodes = {episodes}\ndelay = {json.dumps(delays)}\n'
        f'[[learners]]\nname = "ftpl"\nmultiplier = {multipliers}\n[[learners]]\nname = "o-reps"\n'
        "[tune]\nmultipliers = [0.7, 1]\nseeds = 2\nrounds = 8\n"
    )
    made, again = Spec.parse(text), Spec.parse(text)
    assert made == again
    runs = made.first()
    assert [one.id for one in runs] == [one.id for one in again.first()]
    games, learners = len(episodes) * len(delays), len(multipliers) + 1
    assert (len(made.games), len(made.learners)) == (games, learners)
    assert len(runs) == games * (learners * (seeds + 2 * 2) + seeds)
    distinct = {json.dumps(one.settings.to_json(), sort_keys=True) for one in runs}
    # Tries of games that are cut to the same length are the same run, whatever the game is called.
    assert len({one.id for one in runs}) == len(distinct)
    theory = [one for one in runs if one.role is Role.THEORY]
    assert len({one.id for one in theory}) == len(theory) == prod((games, learners, seeds))
    assert len({(one.game, one.learner, one.settings.seed) for one in theory}) == len(theory)


# --- tuning -----------------------------------------------------------------------------------------------------------

TUNED = """
seeds = [4294967295, 0]
[[games]]
label = "short"
instance = "tiny"
episodes = 10
[[games]]
label = "long"
instance = "tiny"
episodes = 50
delay = "fixed:1"
[[games]]
label = "stream"
instance = { name = "random-parked", n_states = 2, n_actions = 2 }
steps = 60
[[learners]]
name = "ftpl"
[[learners]]
name = "o-reps"
multiplier = 3
[[learners]]
name = "hedge-infinite"
[tune]
multipliers = [0.5, 1, 4]
seeds = 2
rounds = 30
"""


def test_every_learner_gets_the_same_tries() -> None:
    made = Spec.parse(TUNED)
    tries = [one for one in made.first() if one.role is Role.TUNING]
    budgets = {
        (game, learner): sorted(
            (one.settings.learner.multiplier / made.learners[learner].multiplier, one.settings.seed)
            for one in tries
            if (one.game, one.learner) == (game, learner)
        )
        for game, learner in made.pairs
    }
    (budget,) = {tuple(budget) for budget in budgets.values()}
    assert len(budget) == 3 * 2
    assert {multiplier for multiplier, _ in budget} == {0.5, 1.0, 4.0}
    for game in made.games:
        (length,) = {one.settings.game.length for one in tries if one.game == game}
        assert length == min(30, made.games[game].length)


def test_tries_use_no_seed_of_the_evaluation() -> None:
    made = Spec.parse(TUNED)
    tried = {one.settings.seed for one in made.first() if one.role is Role.TUNING}
    assert max(made.seeds) == SEEDS_BEGIN - 1
    assert tried.isdisjoint(made.seeds)
    assert min(tried) >= SEEDS_BEGIN


@given(st.lists(st.integers(0, SEEDS_BEGIN - 1), min_size=1, max_size=5, unique=True), st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_no_list_of_seeds_meets_those_of_the_tries(seeds: list[int], count: int) -> None:
    assert set(seeds).isdisjoint(Tune.read("tune", {"multipliers": [1], "seeds": count}).seeds)


def test_tuned_runs_wait_for_all_tries_and_take_the_best_multiplier() -> None:
    made = Spec.parse(TUNED)
    tries = [one for one in made.first() if one.role is Role.TUNING]

    def regret(one: Planned) -> float:
        factor = one.settings.learner.multiplier / made.learners[one.learner].multiplier
        goal = {"ftpl": 4.0, "o-reps": 0.5, "hedge-infinite": 4.0}[one.learner]
        late = one.settings.seed - SEEDS_BEGIN  # the second seed must count as much as the first
        return abs(factor - goal) - late * 10 if factor != 1.0 else 130.0 * late - 60.0

    known = {one.id: regret(one) for one in tries}
    second = made.second(known.get)
    assert second is not None
    assert {one.role for one in second} == {Role.TUNED}
    assert {(one.learner, one.settings.learner.multiplier) for one in second} == {
        ("ftpl", 4.0),
        ("o-reps", 1.5),
        ("hedge-infinite", 4.0),
    }
    assert {one.settings.seed for one in second} == set(made.seeds)
    assert len(second) == len(made.pairs) * 2
    assert all(one.settings.game == made.games[one.game] for one in second)
    for gone in known:
        assert made.second(lambda id, gone=gone: None if id == gone else known[id]) is None  # type: ignore[misc]


def test_a_try_that_failed_is_never_the_best_and_ties_go_to_theory() -> None:
    made = Spec.parse(TUNED)
    tries = {one.id: one for one in made.first() if one.role is Role.TUNING}

    def failing(id: str) -> float:
        one = tries[id]
        factor = one.settings.learner.multiplier / made.learners[one.learner].multiplier
        return inf if factor == 0.5 and one.settings.seed == SEEDS_BEGIN else -1e9 if factor == 0.5 else 7.0

    second = made.second(failing) or []
    assert {one.settings.learner.multiplier for one in second} == {1.0, 3.0}
    everything = made.second(lambda id: inf) or []
    assert {one.settings.learner.multiplier for one in everything} == {1.0, 3.0}


def test_without_a_tune_block_nothing_is_tuned() -> None:
    assert Spec.parse(SMALL).second(lambda id: None) == []


# --- settings ---------------------------------------------------------------------------------------------------------

NAMES = st.text("abc-", min_size=1, max_size=6)
PLAIN = st.one_of(
    st.integers(-(10**20), 10**20),
    st.booleans(),
    st.text(max_size=4),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.integers(0, 3), max_size=3),
)
NAMED = st.builds(Named, NAMES, st.dictionaries(NAMES, PLAIN, max_size=3))
POSITIVE = st.floats(1e-300, 1e300)
WHOLE = st.integers(1, 2**62)


def games(**length: st.SearchStrategy[int]) -> st.SearchStrategy[GameSettings]:
    return st.builds(
        GameSettings,
        NAMED,
        NAMED,
        delay=NAMES,
        feedback=st.sampled_from([None, "bandit", "full"]),
        unknown=st.booleans(),
        radius=NAMES,
        radius_scale=POSITIVE,
        comparator=st.none() | NAMED,
        **length,
    )


LEARNERS = st.builds(
    LearnerSettings,
    NAMES,
    st.none() | NAMED,
    st.none() | NAMED,
    POSITIVE,
    st.dictionaries(NAMES, PLAIN, max_size=3),
)
GAMES = games(episodes=WHOLE) | games(steps=WHOLE)
RUNS = st.builds(RunSettings, GAMES, LEARNERS, st.integers(0, 2**62), st.integers(2, 100))


@given(RUNS)
@settings(max_examples=60, deadline=None)
def test_settings_survive_a_file(run: RunSettings) -> None:
    back = RunSettings.from_json(json.loads(json.dumps(run.to_json())))
    assert back == run
    assert back.id == run.id


@given(RUNS, RUNS)
@settings(max_examples=40, deadline=None)
def test_ids_differ_iff_settings_differ(one: RunSettings, other: RunSettings) -> None:
    assert (one.id == other.id) == (plain(one) == plain(other))
    for changed in (
        RunSettings(one.game, one.learner, one.seed ^ 1, one.checkpoints),
        RunSettings(one.game, one.learner, one.seed, one.checkpoints + 1),
        RunSettings(other.game, one.learner, one.seed, one.checkpoints),
        RunSettings(one.game, other.learner, one.seed, one.checkpoints),
    ):
        assert (one.id == changed.id) == (plain(one) == plain(changed))


def plain(run: RunSettings) -> str:
    """What decides a run, as JSON in which 1.0 is 1."""
    return json.dumps(run.to_json(), sort_keys=True).replace(".0,", ",").replace(".0}", "}").replace(".0]", "]")


def test_whole_numbers_are_the_same_run_however_they_are_written() -> None:
    ids = {spec(learners=f'name = "ftpl"\nmultiplier = {written}').first()[0].id for written in ("2", "2.0", "2e0")}
    assert len(ids) == 1
    rates = {spec(learners=f'name = "ftpl"\nsettings.rate = {written}').first()[0].id for written in ("2", "2.0")}
    assert len(rates) == 1


# --- files that come with the package ---------------------------------------------------------------------------------

runner = CliRunner()


def test_the_new_spec_runs_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert runner.invoke(app, ["new", str(path)]).exit_code == 0
    made = Spec.load(path)
    assert len(made.games) == 4
    assert {one.role for one in made.first()} == {Role.THEORY, Role.TUNING, Role.BASELINE}
    assert {(one.game, one.learner) for one in made.skipped} >= {("unknown", "o-reps")}
    shortest = {one.learner: one for one in made.first() if one.role is Role.TUNING}
    for one in shortest.values():
        assert execute(one.settings).failure is None


def test_a_new_spec_does_not_overwrite_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("mine")
    refused = runner.invoke(app, ["new", str(path)])
    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    assert path.read_text() == "mine"
    assert runner.invoke(app, ["new", str(path), "--force"]).exit_code == 0
    assert Spec.load(path).games
    assert "cannot be written" in runner.invoke(app, ["new", str(tmp_path / "no" / "a.toml")]).stderr


def test_the_demo_names_everything_that_it_promises() -> None:
    made = Spec.load(EXAMPLES / "head_to_head.toml")
    played = {
        game: {made.learners[learner].name for each, learner in made.pairs if each == game} for game in made.games
    }
    assert {"ftpl-shared", "o-reps", "ftpl-adaptive", "o-reps-adaptive", "soft-leader"} == played["known"]
    assert {"ftpl-shared", "uob-reps", "ftpl-adaptive"} <= played["unknown"]
    assert {"ftpl-shared", "delayed-uob-reps", "delayed-uob-ftrl"} <= played["unknown, delayed"]
    assert {"ftpl-infinite", "hedge-infinite"} == played["stream"]
    oracles = [made.learners[learner].oracle for game, learner in made.pairs if game == "two oracles"]
    assert [oracle and oracle.name for oracle in oracles] == ["dp", "lp"]
    assert not made.skipped
    assert made.tune
    for planned in made.first():
        arrange(planned.settings)


def test_learners_that_tune_themselves_bend_below_half_the_regret_of_uniform_play_in_the_demo() -> None:
    made = Spec.load(EXAMPLES / "head_to_head.toml")
    runs = [one for one in made.independent() if one.settings.seed == 1 and one.game in ("known", "delayed")]
    uniform = {one.game: _regret(one)[1] for one in runs if one.role is Role.BASELINE}
    learning = [one for one in runs if one.learner in made.self_tuned]
    assert len(learning) == 6
    for one in learning:
        before, whole = _regret(one)
        assert whole < uniform[one.game] / 2
        assert whole < 2 * before * 0.8  # a straight line would have twice the regret of the first half


def _regret(one: Planned) -> tuple[float, float]:
    """The regret after half of the rounds, and after all of them."""
    curve = execute(one.settings).curve
    assert curve is not None
    regret = np.subtract(curve.paid, curve.best)
    return float(np.interp(curve.rounds[-1] / 2, curve.rounds, regret)), float(regret[-1])


def test_the_tries_of_all_pairings_take_turns() -> None:
    made = spec(learners='name = ["ftpl", "o-reps"]\n[tune]\nmultipliers = [1, 2]\nseeds = 1')
    tries = [one for one in made.first() if one.role is Role.TUNING]
    assert [one.settings.learner.name for one in tries] == ["ftpl", "o-reps", "ftpl", "o-reps"]


def test_a_learner_that_tunes_itself_is_not_tried_with_multipliers() -> None:
    learners = [
        {"name": "ftpl-shared"},
        {"name": "soft-leader"},
        {"name": "soft-leader", "settings": {"rate": "theory"}},
    ]
    games = [{"instance": "tiny", "episodes": 5}]
    read = Spec.from_dict({"games": games, "learners": learners, "tune": {"multipliers": [1, 4], "seeds": 1}})
    tried = [run.settings.learner for run in read.first() if run.role is Role.TUNING]
    assert sorted(learner.name for learner in tried) == ["ftpl-shared"] * 2 + ["soft-leader"] * 2
    assert all(learner.settings for learner in tried if learner.name == "soft-leader")
    second = read.second(lambda run: 1.0)
    assert second is not None
    assert {run.learner for run in second} == {run.learner for run in read.first() if run.role is Role.TUNING}
