"""Worlds by name: `build("river-swim", n_states=4)` is `river_swim(n_states=4)`.

`gym:FrozenLake-v1` is an environment of gymnasium, `my_module:my_world` a function of one's own.
"""

from collections.abc import Callable
from typing import Any

from amdp import options, own_code, registry
from amdp.errors import InvalidInput
from amdp.instances import classic, communicating, gymnasium_tables, hard, random_worlds
from amdp.instances.base import Instance
from amdp.text import suggestion

World = Callable[..., Instance]  # all of its parameters are settings, and have defaults

EPISODIC = (random_worlds.tiny, *classic.EPISODIC, *random_worlds.EPISODIC)  # the smallest first
BUDGETED = classic.BUDGETED
COMMUNICATING = (*communicating.COMMUNICATING, *random_worlds.COMMUNICATING, *hard.COMMUNICATING)


def standard() -> dict[str, World]:
    """The functions that build worlds for episodes, by short name."""
    return {world.__name__.replace("_", "-"): world for world in EPISODIC}


def budgeted() -> dict[str, World]:
    """The functions that build worlds for episodes with budgets, by short name."""
    return {world.__name__.replace("_", "-"): world for world in BUDGETED}


def continuing() -> dict[str, World]:
    """The functions that build worlds for an infinite horizon, by short name: homogeneous and communicating."""
    return {world.__name__.replace("_", "-"): world for world in COMMUNICATING}


def every() -> dict[str, World]:
    """All of them: for episodes, with budgets, and for an infinite horizon."""
    return standard() | budgeted() | continuing()


def build(name: str, **settings: Any) -> Instance:
    """The world of that name, with settings by keyword."""
    make = world(name)
    registry.require_options(name, make, settings)
    registry.require_defaults(name, make)
    options.require_kinds(name, make, settings)
    made = make(**settings)
    if not isinstance(made, Instance):
        raise InvalidInput(f"{name!r} returned {type(made).__name__}; it must return an amdp.instances.Instance")
    return made


def world(name: str) -> World:
    """The function that builds the world of that name."""
    if name.startswith(f"{own_code.GYM}:"):
        return gymnasium_tables.by_name(name)
    if own_code.is_own(name):
        return own_code.find(name)  # type: ignore[no-any-return]
    known = every()
    if name not in known:
        raise InvalidInput(f"no instance {name!r}; {suggestion(name, known)}known names: {', '.join(known)}")
    return known[name]
