"""An instance is a ready world: a transition kernel, an initial state, and one nominal cost table."""

from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats, in_each_step, require_finite, require_index, require_whole
from amdp.errors import InvalidInput
from amdp.model.budgets import Budgets
from amdp.model.domains import BudgetedPolicies, EpisodeDomain, MarkovPolicies, StationaryPolicies
from amdp.model.segments import Shape
from amdp.model.transitions import Kernel, SingleKernel, require_dense
from amdp.text import RULE, is_name, quoted

Total = TypeVar("Total", float, Floats)
Seed = int | np.random.Generator  # a generator is used as it is

USUAL_SEED = 20240  # random worlds are the same ones in every call, unless another seed is given
USUAL_STREAM = 1000  # steps of a world for an infinite horizon, unless a game says how many


@dataclass(frozen=True)
class Scale:
    """A total cost in the units of its source: `offset + unit * total`; a negative unit turns it into a reward."""

    offset: float = 0.0
    unit: float = 1.0

    def original(self, total: Total) -> Total:
        """The total that the source would have reported."""
        return self.offset + self.unit * total


NO_SCALE = Scale()


@dataclass(frozen=True, eq=False, repr=False)
class Instance:
    """Dynamics, initial state and nominal costs `[h, s, a]`, in [0, 1] in all built-in worlds; perhaps budgets."""

    name: str
    kernel: SingleKernel
    costs: Floats
    initial: int = 0
    scale: Scale = NO_SCALE
    budgets: Budgets | None = None  # that policies have to keep in an episode

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise InvalidInput(f"{quoted(self.name)}; {RULE}", "name")
        if not isinstance(self.kernel, SingleKernel):
            raise InvalidInput(f"kernel is a {type(self.kernel).__name__}; it must be a Kernel or a SparseKernel")
        require_index("initial", self.initial, self.kernel.shape[1])
        costs = floats("costs", self.costs, "hsa")
        if costs.shape != self.kernel.shape:
            raise InvalidInput(f"costs has shape {costs.shape}; the kernel asks for {self.kernel.shape}")
        require_finite("costs", costs[:1] if costs.strides[0] == 0 else costs, "hsa")
        object.__setattr__(self, "costs", costs)
        if self.budgets is not None:
            domain = BudgetedPolicies(self.kernel, self.budgets, self.initial)  # refuses what cannot be kept
            object.__setattr__(self, "budgets", domain.budgets)

    def __repr__(self) -> str:
        steps, states, actions = self.shape
        budgets = "" if self.budgets is None else f", {self.budgets}"
        sizes = f"{steps} steps, {states} states, {actions} actions, initial state {self.initial}"
        return f"Instance({self.name}, {sizes}{budgets})"

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        return self.kernel.shape

    @property
    def domain(self) -> EpisodeDomain:
        """All Markov policies of this world that keep its budgets, as they are played in episodes."""
        if self.budgets is not None:
            return BudgetedPolicies(self.kernel, self.budgets, self.initial)
        return MarkovPolicies(self.kernel, self.initial)

    def with_budgets(self, budgets: Budgets) -> Self:
        """The same world with budgets that policies have to keep, instead of those that it has."""
        return replace(self, budgets=budgets)

    @property
    def stationary(self) -> StationaryPolicies:
        """All stationary policies of this world, as they are played in a stream of steps; not with budgets."""
        if self.budgets is not None:
            raise InvalidInput(f"{self.name} has budgets, which are those of an episode; a stream of steps has none")
        return StationaryPolicies(self.kernel, self.initial)


def homogeneous(
    name: str, rows: Floats, costs: ArrayLike, n_steps: int, initial: int = 0, scale: Scale = NO_SCALE
) -> Instance:
    """A world with the same rows `[s, a, y]` and the same costs `[s, a]` in each of `n_steps` steps."""
    return Instance(name, Kernel.homogeneous(rows, n_steps), repeated(costs, n_steps), initial, scale)


def costs_but_at(free: int, rows: Floats) -> Floats:
    """Costs `[s, a]` of a world with these rows: 1 in every state, and 0 in one."""
    costs = np.ones(rows.shape[:2])
    costs[free] = 0.0
    return costs


def generator(seed: Seed) -> np.random.Generator:
    """The generator of a seed of at least 0, or the generator itself."""
    if isinstance(seed, np.random.Generator):
        return seed
    require_whole("seed", seed, 0)
    return np.random.default_rng(seed)


def dirichlet(rng: np.random.Generator, concentration: float, shape: tuple[int, ...]) -> Floats:
    """Rows of this shape, each Dirichlet over the last axis with all parameters equal to `concentration`."""
    return rng.dirichlet(np.full(shape[-1], concentration), size=shape[:-1])


def repeated(costs: ArrayLike, n_steps: int) -> Floats:
    """The same costs `[s, a]` in each step, without a copy."""
    return in_each_step("costs", floats("costs", costs, "sa"), n_steps)


def no_rows(n_states: int, n_actions: int) -> Floats:
    """Rows `[s, a, y]` of a homogeneous dense kernel, all zero, if there is room for it."""
    require_dense(1, n_states, n_actions)
    return np.zeros((n_states, n_actions, n_states))


def costs_of_rewards(rewards: Floats, n_steps: int, best: float, worst: float) -> tuple[Floats, Scale]:
    """Costs `(best - reward) / (best - worst)` in [0, 1], and the scale that turns `n_steps` of them into a return."""
    span = best - worst if best > worst else 1.0
    return np.clip((best - rewards) / span, 0.0, 1.0), Scale(n_steps * best, -span)


def shrunk(costs: Floats) -> tuple[Floats, Scale]:
    """Costs of at least 0, divided by the largest one, and the scale that undoes it."""
    largest = float(costs.max()) or 1.0
    return costs / largest, Scale(0.0, largest)


def require_counts(least: int = 1, /, **counts: object) -> None:
    """Refuse the first argument that is not a whole number, or is below `least`."""
    for name, value in counts.items():
        require_whole(name, value, least)


def require_chances(**chances: float) -> None:
    """Refuse the first argument that is not a probability."""
    for name, value in chances.items():
        if not 0.0 <= value <= 1.0:
            raise InvalidInput(f"{value!r}; it must be between 0 and 1", name)


def require_amounts(**amounts: float) -> None:
    """Refuse the first argument that is negative or infinite."""
    for name, value in amounts.items():
        if not 0.0 <= value < np.inf:
            raise InvalidInput(f"{value!r}; it must be finite and not negative", name)
