"""The small domains on which the checks run, and the two checks that planning and projection oracles share."""

import pickle

import numpy as np

from amdp.errors import UnsupportedDomain
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, MarkovPolicies, StationaryPolicies
from amdp.model.transitions import Kernel, SparseKernel
from amdp.oracles.base import PlanningOracle, describe
from amdp.oracles.projection.base import ProjectionOracle

SHAPE = (4, 3, 2)  # H, S, A; the stationary policies, 8, and the Markov policies, 4096, can be enumerated
ROUNDING_TOLERANCE = 1e-9  # of sums of a few numbers of size 1


def sample_kernel() -> Kernel:
    """A kernel `P[h, s, a]` with random rows, always the same one."""
    steps, states, actions = SHAPE
    return Kernel(np.random.default_rng(1).dirichlet(np.ones(states), size=(steps, states, actions)))


def sample_domains() -> list[Domain]:
    """One small domain of each kind: Markov policies over a kernel, a sparse kernel and a box; stationary policies."""
    kernel = sample_kernel()
    steps, states, _ = kernel.shape
    sparse = SparseKernel([kernel.matrix(h) for h in range(steps)])
    lower, upper = np.maximum(0.0, kernel.p - 0.1), np.minimum(1.0, kernel.p + 0.1)
    deterministic = np.eye(states)[kernel.p[0].argmax(axis=-1)]
    return [
        MarkovPolicies(kernel),
        MarkovPolicies(sparse),
        MarkovPolicies(BernsteinBox(lower, upper)),
        StationaryPolicies(Kernel.homogeneous(kernel.p[0], steps)),
        StationaryPolicies(Kernel.homogeneous(deterministic, steps)),
    ]


def require_frozen_settings(oracle: PlanningOracle | ProjectionOracle, protocol: type) -> None:
    """Require the methods of the protocol, an equal copy with an equal hash after pickling, and a telling `repr`."""
    assert isinstance(oracle, protocol), f"{oracle!r} lacks supports, bind or requires"
    copy = pickle.loads(pickle.dumps(oracle))
    assert hash(oracle) == hash(copy), "a pickled oracle hashes differently"
    assert copy == oracle, "a pickled oracle comes back different"
    assert type(oracle).__name__ in repr(oracle), f"{oracle!r} does not name its class"
    assert all(isinstance(name, str) for name in oracle.requires), "requires must be a tuple of package names"


def require_supports_agrees_with_bind(oracle: PlanningOracle | ProjectionOracle) -> None:
    """Require that `bind` accepts the sample domains that `supports` accepts, at least one, and no others."""
    accepted = [oracle.supports(domain) for domain in sample_domains()]
    assert any(accepted), "the oracle supports none of the sample domains"
    for domain, supported in zip(sample_domains(), accepted, strict=True):
        assert _binds(oracle, domain) == supported, f"supports and bind disagree on {describe(domain)}"


def _binds(oracle: PlanningOracle | ProjectionOracle, domain: Domain) -> bool:
    try:
        oracle.bind(domain)
    except UnsupportedDomain:
        return False
    return True
