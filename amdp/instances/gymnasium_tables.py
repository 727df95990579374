"""Read the transition tables of Gymnasium's toy-text environments (FrozenLake, CliffWalking, Taxi).

`env.unwrapped.P[s][a]` lists `(chance, next state, reward, terminated)`. A list may name one next state several times
(walls), and what follows a `terminated` entry means nothing: CliffWalking's goal has ordinary rows.

`by_name("gym:FrozenLake-v1")` is the world of an id, for specs and the command line; its settings are the options of
the environment, `n_steps` and `terminal`. The id ends in a version, which gymnasium raises when the dynamics change, so
name and settings are enough to build the same world again; records hold the version of gymnasium besides.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import Any, Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp import own_code, registry
from amdp.arrays import Bools, Floats, floats, require_distributions
from amdp.errors import InvalidInput, MissingDependency
from amdp.instances.base import Instance, costs_of_rewards, repeated, require_counts
from amdp.instances.entrance import with_start
from amdp.model.transitions import SparseKernel
from amdp.text import suggestion

Terminal = Literal["absorb", "restart"]
USUAL_STEPS = 100  # of a world by name whose environment has no limit of steps
UNUSED = ("self", "render_mode")  # arguments of environments that are no settings


def by_name(name: str) -> Callable[..., Instance]:
    """The function that builds the world of a name such as `gym:FrozenLake-v1`, with the environment's options.

    It has `n_steps` steps, by default the limit of the environment, and one more if the start is random.
    """
    _require_gymnasium(name)
    spec, own = _spec(name)

    def build(**settings: Any) -> Instance:
        steps = settings.pop("n_steps", usual.default)
        require_counts(n_steps=steps)
        terminal = settings.pop("terminal", "absorb")
        with closing(_make(spec.id, settings)) as env:
            return from_gymnasium(env, steps, terminal)

    keyword = Parameter.KEYWORD_ONLY
    usual = Parameter("n_steps", keyword, default=spec.max_episode_steps or USUAL_STEPS, annotation=int)
    end = Parameter("terminal", keyword, default="absorb", annotation=Terminal)
    given = [each.replace(default=spec.kwargs.get(each.name, each.default), kind=keyword) for each in own]
    build.__signature__ = Signature([usual, end, *given])  # type: ignore[attr-defined]
    return build


def _spec(name: str) -> tuple[Any, list[Parameter]]:
    """What gymnasium has registered under the id in a name, and the options of its environment."""
    import gymnasium
    from gymnasium.envs.registration import load_env_creator

    identifier = name.removeprefix(f"{own_code.GYM}:")
    if "?" in identifier:
        raise InvalidInput(f"{name!r}; options are settings of the instance, such as --world map_name=8x8")
    try:
        spec = gymnasium.spec(identifier)
        creator = load_env_creator(spec.entry_point)
    except (gymnasium.error.Error, ImportError, AttributeError) as problem:
        tables = [each for each, spec in gymnasium.registry.items() if "toy_text" in str(spec.entry_point)]
        near = suggestion(identifier, gymnasium.registry)
        known = ", ".join(each for each in tables if "Blackjack" not in each)
        raise InvalidInput(f"no {name!r}; {near}environments with a table: {known} ({problem})") from problem
    with suppress(NameError):  # a type that is imported for type checkers only: the kinds of values stay unchecked
        return spec, _options(signature(creator, eval_str=True))
    return spec, _options(signature(creator))


def _options(given: Signature) -> list[Parameter]:
    return [
        each for each in given.parameters.values() if each.name not in UNUSED and each.kind is not Parameter.VAR_KEYWORD
    ]


def from_gymnasium(env: Any, horizon: int, terminal: Terminal = "absorb") -> Instance:
    """The first `horizon` steps of an environment (or of the id of one) as a world with a sparse kernel.

    States keep their numbers; wrappers are not in the table and are ignored, a time limit too. `terminated` entries
    lead, under `"absorb"`, to one more state `S` in which nothing happens and no reward is paid; under `"restart"`,
    to the start distribution. If the start is random (Taxi), the world has an entrance: see `with_start`. Its first
    step costs nothing and draws the start, and there are `horizon + 1` steps.

    The cost of a pair is `(best - E[reward]) / (best - worst)`, with `best` and `worst` over all entries of the table
    and, if there is an absorbing state, its reward 0. So every policy's expected return over `horizon` steps is
    `scale.original(total cost)`, and the cheapest policy has the greatest return. The absorbing state is therefore
    free only if no reward is above 0: in FrozenLake, where only the goal pays, a hole costs 1 a step.
    """
    require_counts(horizon=horizon)
    if terminal not in get_args(Terminal):
        raise InvalidInput(f"{terminal!r}; it must be 'absorb' or 'restart'", "terminal")
    if isinstance(env, str):
        _require_gymnasium("from_gymnasium")
        with closing(_make(env)) as made:
            return from_gymnasium(made, horizon, terminal)
    name = _name(env)
    table, start = _tables(name, env.unwrapped)
    absorbs = terminal == "absorb" and bool(table.ends.any())
    rows = _rows(table, start, absorbs)
    rewards = np.zeros((rows.shape[1], table.n_actions))
    rewards[: table.n_states] = table.summed(table.chance * table.reward).reshape(table.n_states, table.n_actions)
    paid = np.append(table.reward[table.chance > 0], [0.0] if absorbs else [])
    costs, scale = costs_of_rewards(rewards, horizon, float(paid.max()), float(paid.min()))
    label = f"{name}-restart" if terminal == "restart" else name
    kernel = SparseKernel.homogeneous(rows, horizon)
    world = Instance(label, kernel, repeated(costs, horizon), int(np.argmax(start)), scale)
    is_random = np.count_nonzero(start) > 1
    return with_start(world, np.append(start, [0.0] * absorbs)) if is_random else world


@dataclass(frozen=True, eq=False)
class _Table:
    """All entries of `P`, one after the other."""

    n_states: int
    n_actions: int
    pair: NDArray[np.int64]  # s * A + a
    chance: Floats
    successor: NDArray[np.int64]
    reward: Floats
    ends: Bools

    def summed(self, weights: Floats) -> Floats:
        """The sum of a weight of each entry over the entries of a pair, `[s*a]`."""
        return np.bincount(self.pair, weights, self.n_states * self.n_actions).astype(np.float64)


def _rows(table: _Table, start: Floats, absorbs: bool) -> Any:
    """Rows `[s*a, y]`; entries that end the episode lead to one more state that absorbs, or to the start."""
    kept, shape = ~table.ends, (table.n_states * table.n_actions, table.n_states)
    places = (table.pair[kept], table.successor[kept])
    going_on = scipy.sparse.coo_array((table.chance[kept], places), shape=shape).tocsr()  # sums repeated successors
    ending = scipy.sparse.csr_array(table.summed(table.chance * table.ends)[:, None])
    if not absorbs:
        return going_on + ending @ scipy.sparse.csr_array(start[None])
    ended = np.zeros((table.n_actions, table.n_states + 1))
    ended[:, -1] = 1.0
    parts = [scipy.sparse.hstack([going_on, ending]), scipy.sparse.csr_array(ended)]
    return scipy.sparse.vstack(parts, format="csr")


def _require_gymnasium(user: str) -> None:
    if registry.missing(("gymnasium",)):
        raise MissingDependency(f'{user} needs gymnasium: pip install "amdp[gym]"')


def _make(name: str, options: dict[str, Any] | None = None) -> Any:
    import gymnasium

    try:
        return gymnasium.make(name, **(options or {}))
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, LookupError) as problem:
        raise InvalidInput(f"gymnasium cannot make {name!r}: {problem}") from problem


def _name(env: Any) -> str:
    if not hasattr(env, "unwrapped"):
        raise InvalidInput(f"env is a {type(env).__name__}; give a gymnasium environment or the id of one")
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(env.unwrapped).__name__


def _tables(name: str, raw: Any) -> tuple[_Table, Floats]:
    if getattr(raw, "fickle_passenger", False):
        raise InvalidInput(f"{name} has fickle_passenger=True, which its table does not show; make it without")
    for attribute in ("P", "initial_state_distrib"):
        if not hasattr(raw, attribute):
            raise InvalidInput(
                f"{name} has no table {attribute!r}; readable are environments with one, "
                "such as FrozenLake, CliffWalking and Taxi"
            )
    table = _flattened(name, raw.P)
    start = floats("initial_state_distrib", raw.initial_state_distrib, "s")
    if len(start) != table.n_states:
        raise InvalidInput(f"{name}: initial_state_distrib has {len(start)} entries for {table.n_states} states")
    require_distributions("initial_state_distrib", start[None], "ns")
    if not start.any():
        raise InvalidInput(f"{name}: initial_state_distrib is all zero; it must sum to 1")
    return table, start


def _flattened(name: str, p: Any) -> _Table:
    n_states, n_actions = len(p), len(p[0])
    for s in range(n_states):
        if len(p[s]) != n_actions:
            raise InvalidInput(f"{name}: P[{s}] has {len(p[s])} actions, P[0] has {n_actions}; all must have as many")
    pairs = range(n_states * n_actions)
    entries = [(pair, *entry) for pair in pairs for entry in p[pair // n_actions][pair % n_actions]]
    kinds = (np.int64, np.float64, np.int64, np.float64, np.bool_)
    columns = zip(*entries, strict=True)
    arrays: list[Any] = [np.array(column).astype(kind) for column, kind in zip(columns, kinds, strict=True)]
    table = _Table(n_states, n_actions, *arrays)
    outside = (table.successor < 0) | (table.successor >= n_states)
    if outside.any():
        i = int(np.argmax(outside))
        s, a = divmod(int(table.pair[i]), n_actions)
        raise InvalidInput(f"{name}: P[{s}][{a}] leads to state {table.successor[i]}; there are {n_states} states")
    return table
