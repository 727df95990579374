"""An instance is a ready world: a transition kernel, an initial state, and one nominal cost table."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from amdp import options
from amdp.arrays import Floats, floats, in_each_step, require_finite, require_index, require_whole
from amdp.errors import InvalidInput
from amdp.model.domains import MarkovPolicies, StationaryPolicies
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel, require_dense
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


@dataclass(frozen=True, eq=False, repr=False)
class Instance:
    """Dynamics, initial state and nominal costs `[h, s, a]`, in [0, 1] in all built-in worlds."""

    name: str
    kernel: SingleKernel
    costs: Floats
    initial: int = 0
    scale: Scale = Scale()

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

    def __repr__(self) -> str:
        steps, states, actions = self.shape
        return f"Instance({self.name}, {steps} steps, {states} states, {actions} actions, initial state {self.initial})"

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        return self.kernel.shape

    @property
    def domain(self) -> MarkovPolicies:
        """All Markov policies of this world, as they are played in episodes."""
        return MarkovPolicies(self.kernel, self.initial)

    @property
    def stationary(self) -> StationaryPolicies:
        """All stationary policies of this world, as they are played in a stream of steps."""
        return StationaryPolicies(self.kernel, self.initial)


def generator(seed: Seed) -> np.random.Generator:
    """The generator of a seed of at least 0, or the generator itself."""
    return seed if isinstance(seed, np.random.Generator) else options.generator(seed)


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


def require_count(name: str, value: object, least: int = 1) -> None:
    """Refuse what is not a whole number, or is below `least`."""
    require_whole(name, value, least)


def require_chance(name: str, value: float) -> None:
    """Refuse what is not a probability."""
    if not 0.0 <= value <= 1.0:
        raise InvalidInput(f"{value!r}; it must be between 0 and 1", name)


def require_amount(name: str, value: float) -> None:
    """Refuse a negative or infinite amount."""
    if not 0.0 <= value < np.inf:
        raise InvalidInput(f"{value!r}; it must be finite and not negative", name)
