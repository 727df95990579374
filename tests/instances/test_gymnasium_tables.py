import json
from types import SimpleNamespace
from typing import Any, Literal

import gymnasium
import numpy as np
import pytest

from amdp import registry
from amdp.errors import InvalidInput, MissingDependency
from amdp.experiments.building import arrange
from amdp.experiments.execution import execute
from amdp.experiments.settings import RunSettings
from amdp.experiments.spec import Spec
from amdp.instances import Instance, build, from_gymnasium
from amdp.model.evaluation import values
from amdp.oracles.base import plan
from amdp.oracles.markov.dynamic_programming import BackwardInduction

Terminal = Literal["absorb", "restart"]
MODES: tuple[Terminal, ...] = ("absorb", "restart")
HORIZON = 12
ENVIRONMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "lake-4x4": ("FrozenLake-v1", {"is_slippery": False}),
    "lake-4x4-slippery": ("FrozenLake-v1", {"is_slippery": True}),
    "lake-8x8": ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": False}),
    "lake-8x8-slippery": ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": True}),
    "cliff": ("CliffWalking-v1", {}),
    "cliff-slippery": ("CliffWalking-v1", {"is_slippery": True}),
    "taxi": ("Taxi-v4", {}),
    "taxi-in-rain": ("Taxi-v4", {"is_rainy": True}),
}


def make(name: str) -> Any:
    identifier, options = ENVIRONMENTS[name]
    return gymnasium.make(identifier, **options)


def walked_return(env: Any, choose: Any, horizon: int, terminal: str) -> float:
    """The expected return by walking the dictionaries; `choose(h, s, q)` turns the values of actions into one."""
    table, start = env.unwrapped.P, env.unwrapped.initial_state_distrib
    later = dict.fromkeys(table, 0.0)
    for h in reversed(range(horizon)):
        again = sum(chance * later[s] for s, chance in enumerate(start)) if terminal == "restart" else 0.0
        now = {}
        for s, actions in table.items():
            q = [
                sum(chance * (reward + (again if ends else later[y])) for chance, y, reward, ends in actions[a])
                for a in range(len(actions))
            ]
            now[s] = choose(h, s, q)
        later = now
    return float(sum(chance * later[s] for s, chance in enumerate(start)))


def best_return(instance: Instance) -> float:
    return instance.scale.original(plan(BackwardInduction(), instance.domain, instance.costs).objective)


@pytest.mark.parametrize("terminal", MODES)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_random_policy_returns_what_walking_the_table_returns(name: str, terminal: Terminal) -> None:
    env = make(name)
    instance = from_gymnasium(env, HORIZON, terminal)
    steps, states, actions = instance.shape
    policy = np.random.default_rng(3).dirichlet(np.ones(actions), size=(1, steps, states))
    drawn_first = steps - HORIZON
    expected = walked_return(env, lambda h, s, q: np.dot(policy[0, h + drawn_first, s], q), HORIZON, terminal)
    total = float(values(instance.kernel, policy, instance.costs[None])[0, 0, instance.initial])
    assert instance.scale.original(total) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("terminal", MODES)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_cheapest_policy_has_the_greatest_return(name: str, terminal: Terminal) -> None:
    env = make(name)
    expected = walked_return(env, lambda h, s, q: max(q), HORIZON, terminal)
    assert best_return(from_gymnasium(env, HORIZON, terminal)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("terminal", MODES)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_costs_lie_between_zero_and_one_and_the_domain_is_accepted(name: str, terminal: Terminal) -> None:
    instance = from_gymnasium(make(name), 5, terminal)
    assert instance.domain.shape == instance.shape
    assert instance.costs.min() >= 0.0
    assert instance.costs.max() <= 1.0


@pytest.mark.parametrize(("horizon", "reached"), [(5, 0.0), (6, 1.0), (30, 1.0)])
def test_six_steps_cross_the_lake_and_holes_are_no_way_out(horizon: int, reached: float) -> None:
    assert best_return(from_gymnasium(make("lake-4x4"), horizon)) == pytest.approx(reached, abs=1e-12)


def test_the_cliff_is_passed_in_thirteen_steps() -> None:
    assert best_return(from_gymnasium("CliffWalking-v1", 40)) == pytest.approx(-13.0, abs=1e-9)


def test_restarting_crosses_the_lake_again_and_again() -> None:
    assert best_return(from_gymnasium(make("lake-4x4"), 18, "restart")) == pytest.approx(3.0, abs=1e-12)


def test_repeated_successors_are_summed() -> None:
    matrix = from_gymnasium(make("lake-4x4-slippery"), 3).kernel.matrix(0)
    np.testing.assert_allclose(matrix[[0]].toarray()[0, [0, 4]], [2 / 3, 1 / 3])


def test_ended_states_of_the_cliff_do_not_walk_on() -> None:
    instance = from_gymnasium("CliffWalking-v1", 3)
    goal, ended, down = 47, 48, 2
    into_goal = instance.kernel.matrix(0)[[(goal - 12) * 4 + down]].toarray()[0]
    assert into_goal[ended] == 1.0
    np.testing.assert_array_equal(instance.costs[:, ended], 0.0)
    assert not instance.kernel.reachable(instance.initial)[:, goal].any()


def test_taxi_draws_its_start_in_a_free_first_step() -> None:
    env = make("taxi")
    instance = from_gymnasium(env, 4)
    assert instance.shape == (5, 502, 6)
    assert instance.initial == 501
    np.testing.assert_array_equal(instance.costs[:, 501], 0.0)
    drawn = instance.kernel.occupancy(np.full((1, 5, 502, 6), 1 / 6), 501)[0, 1].sum(axis=1)
    np.testing.assert_allclose(drawn[:500], env.unwrapped.initial_state_distrib, atol=1e-15)


def test_an_environment_without_an_end_gets_no_state_for_it() -> None:
    endless = SimpleNamespace(P=[[[(1.0, 0, 2.0, False)], [(1.0, 0, 2.0, False)]]], initial_state_distrib=[1.0])
    instance = from_gymnasium(SimpleNamespace(unwrapped=endless), 3)
    assert instance.shape == (3, 1, 2)
    assert best_return(instance) == 6.0


def test_fickle_passengers_are_refused() -> None:
    env = gymnasium.make("Taxi-v4", fickle_passenger=True)
    with pytest.raises(InvalidInput, match="Taxi-v4 has fickle_passenger=True, which its table does not show"):
        from_gymnasium(env, 5)


def table(**changes: Any) -> Any:
    """One state, one action, with something changed."""
    fields = {"P": [[[(1.0, 0, 0.0, False)]]], "initial_state_distrib": [1.0]} | changes
    return SimpleNamespace(unwrapped=SimpleNamespace(**fields))


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("Blackjack-v1", "Blackjack-v1 has no table 'P'; readable are environments with one, such as FrozenLake"),
        ("NoSuchLake-v1", "gymnasium cannot make 'NoSuchLake-v1': "),
        (7, "env is a int; give a gymnasium environment or the id of one"),
        (table(initial_state_distrib=[0.5, 0.5]), "initial_state_distrib has 2 entries for 1 states"),
        (table(initial_state_distrib=[0.5]), r"initial_state_distrib\[n=0\] sums to 0.5; every row must sum to 1"),
        (table(initial_state_distrib=[0.0]), "initial_state_distrib is all zero; it must sum to 1"),
        (table(P=[[[(1.0, 3, 0.0, False)]]]), r"P\[0\]\[0\] leads to state 3; there are 1 states"),
        (table(P=[[[(0.7, 0, 0.0, False)]]]), "sums to 0.7; every row must sum to 1"),
        (
            table(P=[[[(1.0, 0, 0.0, False)]], []], initial_state_distrib=[1.0, 0.0]),
            r"P\[1\] has 0 actions, P\[0\] has 1; all must have as many",
        ),
    ],
)
def test_what_has_no_table_is_refused(env: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_gymnasium(env, 5)


def test_bad_options_are_refused_with_the_rule() -> None:
    with pytest.raises(InvalidInput, match="terminal = 'stop'; it must be 'absorb' or 'restart'"):
        from_gymnasium("CliffWalking-v1", 5, "stop")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="horizon = 0; it must be a whole number, at least 1"):
        from_gymnasium("CliffWalking-v1", 0)


def test_without_gymnasium_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r'from_gymnasium needs gymnasium: pip install "amdp\[gym\]"'):
        from_gymnasium("CliffWalking-v1", 5)


def test_a_world_by_name_is_that_of_the_environment_with_these_options() -> None:
    named = build("gym:FrozenLake-v1", map_name="8x8", is_slippery=False, n_steps=HORIZON, terminal="restart")
    made = from_gymnasium(make("lake-8x8"), HORIZON, "restart")
    assert named.shape == made.shape
    assert best_return(named) == best_return(made)
    assert (named.kernel.matrix(0) != made.kernel.matrix(0)).nnz == 0


def test_a_world_by_name_has_as_many_steps_as_the_environment_allows() -> None:
    assert build("gym:FrozenLake-v1").shape == (100, 17, 4)
    assert build("gym:Taxi-v4", n_steps=3).shape == (4, 502, 6)


def test_worlds_of_gymnasium_in_specs_and_records() -> None:
    world = {"name": "gym:FrozenLake-v1", "n_steps": 5, "is_slippery": [True, False]}
    games, learners = [{"instance": world, "episodes": 5}], [{"name": "ftpl-shared"}]
    spec = Spec.from_dict({"games": games, "learners": learners})
    assert list(spec.games) == ["gym:FrozenLake-v1 is_slippery=true", "gym:FrozenLake-v1 is_slippery=false"]
    record = execute(spec.first()[1].settings)
    again = RunSettings.from_json(json.loads(record.to_bytes())["settings"])
    assert arrange(again).game.world.shape == (5, 17, 4)
    assert record.made["versions"]["gymnasium"] == gymnasium.__version__
    assert record.failure is None


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("gym:FrozenLak-v1", {}, "did you mean 'FrozenLake-v1'"),
        ("gym:FrozenLake-v99", {}, "FrozenLake-v1"),
        ("gym:Blackjack-v1", {}, "no table 'P'"),
        ("gym:FrozenLake-v1?map_name=8x8", {}, "--world map_name=8x8"),
        ("gym:FrozenLake-v1", {"map_nam": "8x8"}, "did you mean 'map_name'"),
        ("gym:FrozenLake-v1", {"map_name": "9x9"}, "cannot make"),
        ("gym:FrozenLake-v1", {"is_slippery": 1}, "true or false"),
        ("gym:FrozenLake-v1", {"n_steps": 0}, "n_steps = 0"),
    ],
)
def test_wrong_names_and_options_are_refused(name: str, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        build(name, **settings)


def test_a_name_of_gymnasium_needs_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "missing", lambda packages: list(packages))
    with pytest.raises(MissingDependency, match=r"gym:FrozenLake-v1 needs gymnasium: pip install"):
        build("gym:FrozenLake-v1")
