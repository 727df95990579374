"""Domains: the policies that an oracle may choose from, over given dynamics."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from amdp.arrays import Bools, require_index
from amdp.errors import InvalidInput
from amdp.kernels.rows import ReachedStates
from amdp.model.budgets import KEPT, Budgets
from amdp.model.dynamics import CompiledDynamics, Dynamics
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel


@dataclass(frozen=True, eq=False)
class MarkovPolicies:
    """All policies that may choose by step and state: one rule for each step."""

    dynamics: Dynamics
    initial: int = 0

    def __post_init__(self) -> None:
        _require_domain(self.dynamics, self.initial)

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        return self.dynamics.shape

    @cached_property
    def reached(self) -> ReachedStates:
        """The states that a policy can be in at each step; over a set of kernels, all."""
        if isinstance(self.dynamics, SingleKernel):
            return _listed(self.dynamics.reachable(self.initial))
        return _all_states(self.shape)


@dataclass(frozen=True, eq=False)
class StationaryPolicies:
    """All policies that choose by state alone: one rule for all steps of a homogeneous kernel."""

    dynamics: SingleKernel
    initial: int = 0

    def __post_init__(self) -> None:
        _require_domain(self.dynamics, self.initial)
        if not getattr(self.dynamics, "is_homogeneous", False):
            raise InvalidInput("stationary policies need a homogeneous kernel: see Kernel.homogeneous")

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        return self.dynamics.shape

    @property
    def reached(self) -> ReachedStates:
        """All states: a stationary policy is entered anywhere."""
        return _all_states(self.shape)


@dataclass(frozen=True, eq=False)
class BudgetedPolicies:
    """All policies that choose by step and state, at random if need be, and that keep budgets in expectation.

    Over one known kernel: what a policy uses is then linear in its occupancy measure. The cheapest policy may have to
    be randomized: with `m` budgets there is one that mixes at most `m + 1` deterministic policies.
    """

    dynamics: SingleKernel
    budgets: Budgets
    initial: int = 0

    def __post_init__(self) -> None:
        _require_domain(self.dynamics, self.initial)
        if not isinstance(self.dynamics, SingleKernel):
            raise InvalidInput(
                f"budgets need one known kernel, not a {type(self.dynamics).__name__}: over a set of kernels what a "
                "policy uses is not one number"
            )
        if not isinstance(self.budgets, Budgets):
            raise InvalidInput(f"{type(self.budgets).__name__}; give Budgets(usage, limits)", "budgets")
        object.__setattr__(self, "budgets", self.budgets.over(self.shape))
        self._require_each_kept()

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        return self.dynamics.shape

    @property
    def unlimited(self) -> MarkovPolicies:
        """The same policies without the budgets."""
        return MarkovPolicies(self.dynamics, self.initial)

    @cached_property
    def reached(self) -> ReachedStates:
        """The states that a policy can be in at each step, whether it keeps the budgets or not."""
        return self.unlimited.reached

    def _require_each_kept(self) -> None:
        """Refuse a budget that no policy keeps; whether all can be kept together is found when an oracle is bound."""
        budgets = self.budgets
        least = self.dynamics.cheapest(budgets.usage).values[:, 0, self.initial]
        missed = (least - budgets.limits) / budgets.sizes
        if missed.max() > KEPT:
            i = int(missed.argmax())
            raise InvalidInput(
                f"{budgets.limits[i]:g} for {budgets.names[i]!r}; every policy uses at least {least[i]:.6g}, "
                f"{least[i] - budgets.limits[i]:.3g} more",
                f"limits[{i}]",
            )


EpisodeDomain = MarkovPolicies | BudgetedPolicies  # a rule for each step
Domain = MarkovPolicies | StationaryPolicies | BudgetedPolicies


@runtime_checkable
class World(Protocol):
    """What has a domain of its own, such as an `Instance`."""

    @property
    def domain(self) -> Domain:
        """The policies that are meant where nothing else is said."""
        ...


def as_domain(given: Domain | World) -> Domain:
    """The domain itself, or that of a world."""
    return given.domain if isinstance(given, World) else given


def _require_domain(dynamics: Dynamics, initial: int) -> None:
    # To compare with a protocol takes longer than to narrow a box, which is done every round.
    if not isinstance(dynamics, CompiledDynamics | Dynamics):
        raise InvalidInput(f"{type(dynamics).__name__} is not a kernel or a set of kernels; wrap the array: Kernel(p)")
    given: object = initial
    if not isinstance(given, int | np.integer) and np.ndim(given) == 1:  # type: ignore[arg-type]
        remedy = "amdp.instances.with_start(world, start) puts an entrance before it, which draws the first state"
        raise InvalidInput(f"{initial}; a world begins in one state: {remedy}", "initial")
    require_index("initial", initial, dynamics.shape[1])
    dynamics.require_closed(initial)


@lru_cache(maxsize=64)
def _all_states(shape: Shape) -> ReachedStates:
    return _listed(np.ones(shape[:2], dtype=bool))


def _listed(reached: Bools) -> ReachedStates:
    steps, states = np.nonzero(reached)
    # Both arrays lie in one: the copy is in one piece, so that kernels are compiled for one layout alone.
    return ReachedStates(np.searchsorted(steps, np.arange(len(reached) + 1)), states.copy())
