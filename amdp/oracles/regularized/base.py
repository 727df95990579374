"""The contract of regularized minimization: which occupancy measure is cheapest, a regularizer added?

    minimize `<q, c> + sum psi(q[h, s, a])` over the occupancy measures `q` of one kernel,

the sum over the pairs that can be reached. With a price `v[h, s]` for each state of each step, reduced costs
`r = c + P v[h+1] - v[h]`, and `q(r)` the mass at which `psi'(q) = -r`, every occupancy measure `x` has

    <x, c> + sum psi(x)  =  v[0, initial] + sum (x r + psi(x))  >=  v[0, initial] + sum (q(r) r + psi(q(r))),

because each pair alone does best with `q(r)`. The right side is the dual value of the prices, and the difference of
both sides is `sum D(x, q(r))`, a sum of Bregman distances: it is the gap, computed without cancellation. So prices
prove an answer, and are where the next solve starts. For the optimum `x*` it follows that `sum D(x, x*)` is at most
the gap of `x`, too.
"""

from abc import abstractmethod
from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats, require_finite
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, MarkovPolicies, World, as_domain
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Bound, Oracle, created, is_oracle
from amdp.oracles.projection.base import Projection
from amdp.oracles.regularized.regularizers import Regularizer

GROUP = "amdp.regularized"
ONE_KERNEL = "; a regularizer of the pairs proves its answers by the prices of one kernel"


class Minimizer(Projection):
    """The measure of least regularized cost, with the prices that prove it; its fields are those of a projection."""


@runtime_checkable
class RegularizedOracle(Oracle["RegularizedSolver"], Protocol):
    """Settings of a method. `requires` names the packages that it must be able to import."""


class RegularizedSolver(Bound, solves="minimize"):
    """A method bound to the occupancy measures of one kernel."""

    oracle: RegularizedOracle
    domain: MarkovPolicies
    group, role, verb = GROUP, "regularized", "minimize regularized costs over"
    within_budgets = "a learner that projects, such as o-reps"

    @classmethod
    def require_fit(cls, oracle: Oracle[Bound], domain: Any, blamed: str = "", remedy: str = ONE_KERNEL) -> None:
        super().require_fit(oracle, domain, blamed, remedy)

    @abstractmethod
    def minimize(self, cost: Floats, regularizer: Regularizer, near: Minimizer | None = None) -> Minimizer:
        """The measure of least `<q, cost> + regularizer`; `near`, an earlier answer, only warms the start.

        Whatever is returned is proved optimal; otherwise `Unsolved` carries what was found.
        """

    def checked(self, cost: ArrayLike, regularizer: Regularizer) -> Floats:
        """`cost` as an array of finite numbers that fits the domain; that and no regularizer are `InvalidInput`."""
        if not isinstance(regularizer, Regularizer):
            raise InvalidInput(f"{regularizer!r}; give one, such as Tsallis(1.0) + LogBarrier(0.1)", "regularizer")
        result = floats("cost", cost, "hsa")
        if result.shape != self.domain.shape:
            raise InvalidInput(f"cost has shape {result.shape}; the domain asks for {self.domain.shape}")
        require_finite("cost", result, "hsa")
        return result

    def start(self, near: Minimizer | None) -> Floats | None:
        """The prices of an earlier answer, or `InvalidInput` if it has another shape."""
        if near is None:
            return None
        if near.prices.shape != self.domain.shape[:2]:
            raise InvalidInput(f"near has prices {near.prices.shape}; the domain asks for {self.domain.shape[:2]}")
        return near.prices


def is_one_kernel(domain: Domain) -> bool:
    """Whether a domain has the occupancy measures of one kernel: Markov policies with known transitions."""
    return isinstance(domain, MarkovPolicies) and isinstance(domain.dynamics, SingleKernel)


def regularized(name: str, **options: Any) -> RegularizedOracle:
    """The method registered under `name`, `"newton"` or `"cvxpy"`, with its options."""
    return created(GROUP, name, options)  # type: ignore[no-any-return]


def bind_regularized(oracle: str | RegularizedOracle, domain: Domain | World) -> RegularizedSolver:
    """A solver for many costs and regularizers over one domain."""
    chosen = created(GROUP, oracle, {}) if isinstance(oracle, str) else oracle
    bound = chosen.bind(as_domain(domain)) if is_oracle(chosen) else None
    if not isinstance(bound, RegularizedSolver):
        raise InvalidInput(f"{chosen!r} does not minimize regularized costs; give a name, such as 'newton'")
    return bound


def minimize_regularized(
    oracle: str | RegularizedOracle,
    domain: Domain | World,
    cost: ArrayLike,
    regularizer: Regularizer,
    near: Minimizer | None = None,
) -> Minimizer:
    """The occupancy measure of least `<q, cost> + regularizer`, for a cost `[h, s, a]` of any sign."""
    return bind_regularized(oracle, domain).minimize(floats("cost", cost, "hsa"), regularizer, near)
