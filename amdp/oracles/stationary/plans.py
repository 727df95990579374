"""Plans of stationary policies, whose values are worked out when someone reads them."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from amdp import kernels
from amdp.arrays import Costs, Floats, Values
from amdp.errors import InvalidInput
from amdp.oracles.base import Plans
from amdp.oracles.stationary.chains import Chains

VALUE_TOLERANCE = 1e-9  # relative to steps times the largest cost: two evaluations of a policy do not differ by more
UNREAD: Values = np.empty((0, 0, 0))  # stands for values that no one has read


@dataclass(frozen=True, eq=False)
class StationaryPlans(Plans):
    """Plans whose values are worked out when they are first read: learners ask for policies only."""

    chains: Chains = field(kw_only=True, repr=False)
    costs: Costs = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.values is UNREAD:
            object.__delattr__(self, "values")

    def __getattr__(self, name: str) -> Any:
        if name != "values":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        values = np.empty(self.costs.shape[:3])
        for cost, actions, to_go in zip(self.costs, self.actions, values, strict=True):
            laid = np.require(cost, requirements=["C", "W"])
            kernels.search.chains.costs_to_go(self.chains.rows, laid, actions.astype(np.int64), to_go)
        self._require_same(values[:, 0, self.chains.initial])
        object.__setattr__(self, "values", values)
        return values

    def _require_same(self, objective: Floats) -> None:
        largest = np.abs(self.costs).max(axis=(1, 2, 3))
        if (np.abs(objective - self.objective) > VALUE_TOLERANCE * self.costs.shape[1] * largest).any():
            raise InvalidInput("costs has changed since the plans were made; read their values before")

    def __reduce__(self) -> tuple[Any, ...]:
        return Plans, tuple(getattr(self, one.name) for one in fields(Plans))
