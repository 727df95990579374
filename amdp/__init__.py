"""Adversarial Markov decision processes: no-regret learners on planning oracles that prove their answers."""

from amdp.arrays import one_hot, step_major
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

__all__ = [
    "AmdpError",
    "BernsteinBox",
    "CertificateRejected",
    "Checked",
    "Dynamics",
    "EmptyConfidenceSet",
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
    "Segment",
    "SparseKernel",
    "SpecError",
    "StationaryPolicies",
    "Status",
    "Unsolved",
    "UnsupportedDomain",
    "bind",
    "bind_projection",
    "evaluate",
    "occupancy",
    "one_hot",
    "oracle",
    "plan",
    "project",
    "projection",
    "step_major",
    "values",
]
