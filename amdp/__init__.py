"""Adversarial Markov decision processes: no-regret learners on planning oracles that prove their answers.

Plan with an oracle, play a learner in a game, compare learners:

    world = amdp.instances.river_swim(n_states=6)
    print(amdp.plan("lp", world, world.costs))

    game = amdp.Game(world, losses="bernoulli", rounds=2000, delay="fixed:50")
    print(amdp.play(game, "ftpl-shared", seed=1))

    amdp.compare("spec.toml", out="results").report()

Every name below is imported when it is first used, so that `import amdp` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amdp import algorithms, errors, experiments, game, instances, losses, model, oracles, report, testing
    from amdp.algorithms.named import learner
    from amdp.arrays import one_hot, step_major
    from amdp.comparison import Results, compare
    from amdp.errors import (
        AmdpError,
        CertificateRejected,
        EmptyConfidenceSet,
        InvalidInput,
        MissingDependency,
        OracleError,
        SpecError,
        Unsolved,
        UnsupportedDomain,
    )
    from amdp.game.games import Game
    from amdp.game.run import Run, play, rounds
    from amdp.model.confidence import BernsteinBox, Radius
    from amdp.model.domains import MarkovPolicies, StationaryPolicies
    from amdp.model.dynamics import Dynamics
    from amdp.model.evaluation import evaluate, occupancy, values
    from amdp.model.segments import Pairs, Segment
    from amdp.model.transitions import Kernel, SparseKernel
    from amdp.oracles.base import Plan, Planner, PlanningOracle, Plans, Report, Status, bind, oracle, plan
    from amdp.oracles.checked import Checked
    from amdp.oracles.projection.base import (
        Projection,
        ProjectionOracle,
        Projector,
        bind_projection,
        project,
        projection,
    )

__version__ = "0.1.0"

_ROOMS = ("algorithms", "errors", "experiments", "game", "instances", "losses", "model", "oracles", "report", "testing")
_HOMES = {
    "algorithms.named": ("learner",),
    "arrays": ("one_hot", "step_major"),
    "comparison": ("Results", "compare"),
    "errors": (
        "AmdpError",
        "CertificateRejected",
        "EmptyConfidenceSet",
        "InvalidInput",
        "MissingDependency",
        "OracleError",
        "SpecError",
        "Unsolved",
        "UnsupportedDomain",
    ),
    "game.games": ("Game",),
    "game.run": ("Run", "play", "rounds"),
    "model.confidence": ("BernsteinBox", "Radius"),
    "model.domains": ("MarkovPolicies", "StationaryPolicies"),
    "model.dynamics": ("Dynamics",),
    "model.evaluation": ("evaluate", "occupancy", "values"),
    "model.segments": ("Pairs", "Segment"),
    "model.transitions": ("Kernel", "SparseKernel"),
    "oracles.base": ("Plan", "Planner", "PlanningOracle", "Plans", "Report", "Status", "bind", "oracle", "plan"),
    "oracles.checked": ("Checked",),
    "oracles.projection.base": (
        "Projection",
        "ProjectionOracle",
        "Projector",
        "bind_projection",
        "project",
        "projection",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AmdpError",
    "BernsteinBox",
    "CertificateRejected",
    "Checked",
    "Dynamics",
    "EmptyConfidenceSet",
    "Game",
    "InvalidInput",
    "Kernel",
    "MarkovPolicies",
    "MissingDependency",
    "OracleError",
    "Pairs",
    "Plan",
    "Planner",
    "PlanningOracle",
    "Plans",
    "Projection",
    "ProjectionOracle",
    "Projector",
    "Radius",
    "Report",
    "Results",
    "Run",
    "Segment",
    "SparseKernel",
    "SpecError",
    "StationaryPolicies",
    "Status",
    "Unsolved",
    "UnsupportedDomain",
    "algorithms",
    "bind",
    "bind_projection",
    "compare",
    "errors",
    "evaluate",
    "experiments",
    "game",
    "instances",
    "learner",
    "losses",
    "model",
    "occupancy",
    "one_hot",
    "oracle",
    "oracles",
    "plan",
    "play",
    "project",
    "projection",
    "report",
    "rounds",
    "step_major",
    "testing",
    "values",
]


if not TYPE_CHECKING:  # type checkers know every name from above, and refuse others

    def __getattr__(name: str) -> Any:
        if name in _ROOMS:
            return import_module(f"amdp.{name}")
        if name not in _HOME_OF:
            raise AttributeError(f"module 'amdp' has no attribute {name!r}")
        value = getattr(import_module(f"amdp.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
