"""One policy for several models at once: it does not see in which one it is, and pays the weighted sum of its costs.

So a policy is sought that does well under several estimates of the same dynamics, as in medical decisions. This is
NP-hard, over Markov policies too (Steimle, Kaufman and Denton: Multi-model Markov decision processes, 2021).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Actions, Floats, floats, refuse
from amdp.errors import InvalidInput
from amdp.model.domains import MarkovPolicies, StationaryPolicies
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel

Model = MarkovPolicies | StationaryPolicies


@dataclass(frozen=True, eq=False)
class MultiModel:
    """The policies of several models, all `MarkovPolicies` or all `StationaryPolicies` of one shape, and weights `[m]`.

    Without weights, all models weigh the same and the weights sum to 1. Costs are `[m, h, s, a]`, or `[h, s, a]` if
    they are the same in all models.
    """

    models: Sequence[Model]
    weights: Sequence[float] | Floats | None = None
    cost_axes: ClassVar[tuple[str, ...]] = ("mhsa", "hsa")

    def __post_init__(self) -> None:
        models = tuple(self.models)
        if not models:
            raise InvalidInput("models is empty; give at least one domain")
        for m, model in enumerate(models):
            _require_like(m, model, models[0])
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "weights", _weights(self.weights, len(models)))

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        return self.models[0].shape

    @property
    def cost_shape(self) -> tuple[int, ...]:
        """Of the costs in all models."""
        return len(self.models), *self.shape

    @property
    def kernels(self) -> tuple[SingleKernel, ...]:
        """The transitions of each model."""
        found = (model.dynamics for model in self.models)
        return tuple(kernel for kernel in found if isinstance(kernel, SingleKernel))

    @property
    def is_stationary(self) -> bool:
        """Whether one rule holds in all steps."""
        return isinstance(self.models[0], StationaryPolicies)

    @cached_property
    def decisions(self) -> NDArray[np.int64]:
        """The number of the decision that is made at each step and state, `[h, s]`.

        This is all in which Markov and stationary policies differ: a Markov policy decides at each step and state, a
        stationary one at each state.
        """
        steps, states, _ = self.shape
        if self.is_stationary:
            return np.broadcast_to(np.arange(states), (steps, states))
        return np.arange(steps * states).reshape(steps, states)

    @cached_property
    def n_decisions(self) -> int:
        """How many decisions make a policy."""
        return int(self.decisions.max()) + 1

    @cached_property
    def open_decisions(self) -> NDArray[np.int64]:
        """The decisions that matter: some policy comes to them in some model."""
        models = zip(self.kernels, self.models, strict=True)
        reached = np.any([kernel.reachable(model.initial) for kernel, model in models], axis=0)
        return np.unique(self.decisions[reached])

    def summed(self, places: Floats) -> Floats:
        """Numbers at places, `[h, s, ...]`, summed for each decision, `[d, ...]`."""
        if self.is_stationary:
            total: Floats = places.sum(axis=0)
            return total
        return places.reshape(-1, *places.shape[2:])

    def by_place(self, choices: NDArray[np.integer]) -> Actions:
        """The actions `[n, h, s]` of policies that are given by their decisions `[n, d]`."""
        return np.asarray(choices, dtype=np.int32)[:, self.decisions]


def _require_like(m: int, model: object, first: Model) -> None:
    if not isinstance(model, Model) or type(model) is not type(first):
        kinds = f"{type(first).__name__}, {type(model).__name__}" if m else type(model).__name__
        raise InvalidInput(f"{kinds}; give MarkovPolicies of each model, or StationaryPolicies of each", f"models[{m}]")
    if not isinstance(model.dynamics, SingleKernel):
        raise InvalidInput(f"it is over a {type(model.dynamics).__name__}; give a kernel", f"models[{m}]")
    if model.shape != first.shape:
        raise InvalidInput(f"it has the shape {model.shape}; the first has {first.shape}", f"models[{m}]")


def _weights(given: Sequence[float] | Floats | None, n_models: int) -> Floats:
    if given is None:
        return np.full(n_models, 1.0 / n_models)
    weights = floats("weights", given, "m")
    if len(weights) != n_models:
        raise InvalidInput(f"weights has {len(weights)} entries; there are {n_models} models")
    refuse("weights", weights, ~(np.isfinite(weights) & (weights >= 0.0)), "m", "must be finite and not negative")
    if not weights.any():
        raise InvalidInput("weights is all zero; some model must count")
    return weights
