"""Learners by short name: each name stands for a recipe, which tunes the learner for its task as theory says.

Other packages add theirs in the entry-point group `amdp.learners`; `my_module:Uniform` is what a file of one's own
defines, a recipe or a class.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np

from amdp import options, registry
from amdp.algorithms.base import Learner
from amdp.algorithms.task import SOLVERS, EpochSetup, Recipe, Task, WatchedTask
from amdp.errors import AmdpError, InvalidInput
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.transitions import Kernel
from amdp.oracles import base as planning
from amdp.oracles.base import PlanningOracle
from amdp.oracles.projection import base as projecting
from amdp.oracles.projection.base import ProjectionOracle

GROUP = "amdp.learners"
MEMBERS = ("feedback", "start", "observe", "weigh", "learn")  # of a learner
SOLVER_GROUPS = {"oracle": planning.GROUP, "projection": projecting.GROUP}  # entry points of the solvers


def learner(
    name: str,
    domain: Domain,
    rounds: int,
    total_delay: int = 0,
    oracle: str | PlanningOracle | None = None,
    multiplier: float = 1.0,
    projection: str | ProjectionOracle | None = None,
    **settings: Any,
) -> Learner[Any]:
    """The learner of that name, tuned for a game; `settings` are keywords of its recipe, `multiplier` scales its rate.

    Those that play a stream in epochs, such as `ftpl-infinite`, come with more: see `from_task`.
    """
    task = WatchedTask(domain, rounds, total_delay, oracle, projection, multiplier, name)
    built = from_task(task, **settings)
    if isinstance(built, EpochSetup):
        raise InvalidInput(f"{name} plays a stream in epochs; build it with amdp.algorithms.named.from_task")
    require_read(task)
    return built


def from_task(task: Task, **settings: Any) -> Learner[Any] | EpochSetup:
    """What the recipe named `task.learner` builds: a learner, with more if it plays a stream in epochs."""
    build = recipe(task.learner)
    registry.require_options(task.learner, build, settings)
    options.require_kinds(task.learner, build, {key: _python(value) for key, value in settings.items()})
    for name, usual in options.defaults(build).items():  # what the recipe does not compute stays as it was given
        task.setting(name, settings.get(name), usual)
    built = build(task, **settings)
    if not isinstance(built, EpochSetup):
        _require_members(task.learner, built)
    return built


def recipe(name: str) -> Recipe:
    """The recipe of that name; a class of learners is one whose settings are the arguments of the class."""
    found = registry.find(GROUP, name)
    return _recipe_of_class(name, found) if isinstance(found, type) else found


def _recipe_of_class(name: str, kind: Any) -> Recipe:
    _require_members(name, kind)
    registry.require_defaults(name, kind)

    def build(task: Task, **settings: Any) -> Learner[Any]:
        task.require_no_multiplier()
        made: Learner[Any] = kind(**settings)
        return made

    build.__signature__, build.__doc__ = signature(kind), kind.__doc__  # type: ignore[attr-defined]
    return build


def _require_members(name: str, candidate: Any) -> None:
    """Refuse what lacks a method of a learner."""
    lacking = [member for member in MEMBERS if not hasattr(candidate, member)]
    if lacking:
        kind = candidate.__name__ if isinstance(candidate, type) else f"a {type(candidate).__name__}"
        raise InvalidInput(f"{name!r} is no learner: {kind} has no {', '.join(lacking)}; see amdp.algorithms.base")


def settings(task: Task, **given: Any) -> dict[str, Any]:
    """The settings of the learner named `task.learner` with their values: theory's for the task, if not `given`.

    The rate is the one that is played, the multiplier in it; None stands for what has no value before the game.
    """
    watched = WatchedTask(**{each.name: getattr(task, each.name) for each in fields(task)})
    from_task(watched, **given)
    return watched.settings


def tunes_itself(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether the learner of that name, with these settings, has a rate that no multiplier can scale."""
    task = Task(MarkovPolicies(Kernel(np.ones((1, 1, 1, 1)))), 1, multiplier=2.0, learner=name)
    try:
        from_task(task, **settings)
    except AmdpError as problem:
        return problem.field == "multiplier"
    except Exception:  # a defect of somebody's recipe: it shows when the learner is played
        return False
    return False


def require_read(task: WatchedTask, options: Iterable[str] = SOLVERS) -> None:
    """Refuse those of the solvers `options` that were chosen for a learner whose recipe did not read them."""
    for option, value in task.unread.items():
        if option in options:
            known = [*sorted(task.read), "multiplier", *registry.known_options(recipe(task.learner))]
            chosen = value if isinstance(value, str) else registry.name_of(SOLVER_GROUPS[option], value.__class__)
            raise InvalidInput(f"{chosen}; {task.learner} does not use it; its options: {', '.join(known)}", option)


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
