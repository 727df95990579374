"""The planning contract: which policy is cheapest for these costs?

An oracle is a frozen bag of settings; `bind` compiles the model of one domain and keeps warm state in a planner;
`minimize` answers a batch. The objective is always the exact value of the returned policy, evaluated here, and
the bound follows from its values: with `V` the values of a policy,

    any policy costs at least `V[0, initial] + sum_h min_{s,a} (c + P V[h+1] - V[h])`,

because the chances of the pairs of one step sum to 1. For an optimal policy the sum is zero. Within budgets a plan is
a `BudgetedPlan` of `amdp.oracles.budgets`: its policy may be randomized, and prices of the budgets prove its bound.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from amdp import registry
from amdp.arrays import Actions, Costs, Floats, Policies, Values, floats, one_hot, require_finite
from amdp.errors import InvalidInput, Unsolved, UnsupportedDomain
from amdp.model.domains import BudgetedPolicies, Domain, World, as_domain
from amdp.model.endless import EndlessPolicies
from amdp.model.several_models import MultiModel
from amdp.oracles.exclusive import Exclusive

GROUP = "amdp.oracles"
PlanningDomain = Domain | EndlessPolicies | MultiModel  # a `Domain` can be played in a game as well
BoundT = TypeVar("BoundT", bound="Bound", covariant=True)


class Status(StrEnum):
    """How a solve ended: with a proved optimum, with a policy and a bound, or without a policy."""

    OPTIMAL = "optimal"  # bound and objective meet
    FEASIBLE = "feasible"  # a limit was hit: a policy, its value, and a bound that holds
    FAILED = "failed"  # no policy


class Report(NamedTuple):
    """What produced an answer, and what it took: time, iterations, nodes, restarts."""

    oracle: str  # its name, as in `amdp.oracle(name)`
    seconds: float = 0.0
    iterations: int = 0
    nodes: int = 0
    rebuilds: int = 0  # cold restarts after a rejected answer
    solver: str = ""  # name and version
    note: str = ""
    improved: int = 0  # answers called optimal by the solver of which backward induction made cheaper ones


def relative(gap: float, objective: float) -> float | None:
    """A gap as a part of what the policy costs, without its sign; None if it costs nothing."""
    return gap / abs(objective) if objective else None


def one_line(answer: Any) -> str:
    """Who answered, how the solve ended, and how much is proved: the `repr` of a plan and of a projection."""
    note = f" ({answer.report.note})" if answer.report.note else ""
    proof = f"objective {answer.objective:.6g}, bound {answer.bound:.6g}, gap {answer.gap:.2g}"
    return f"{answer.report.oracle}: {answer.status}, {proof}{note}"


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The policy for one cost array, its value, and a bound that proves how good it is."""

    actions: Actions  # [h, s], or [s] for stationary policies
    objective: float  # the exact value of `actions`
    bound: float  # no policy is cheaper
    status: Status
    values: Values  # [h, s], the certificate; [s] without an end; [m, h, s] over several models
    report: Report
    n_actions: int

    __repr__ = one_line

    @property
    def gap(self) -> float:
        """How much cheaper another policy could be: the absolute gap."""
        return self.objective - self.bound

    @property
    def relative_gap(self) -> float | None:
        """The gap as a part of the objective, without its sign; None if that is 0."""
        return relative(self.gap, self.objective)

    @property
    def policy(self) -> Policies:
        """The chance of each action, `[h, s, a]` (or `[s, a]`)."""
        return one_hot(self.actions, self.n_actions)


@dataclass(frozen=True, eq=False, repr=False)
class Plans:
    """The plans for a batch of cost arrays; `status` is the worst of theirs."""

    actions: Actions  # [n, h, s], or [n, s]
    objective: Floats  # [n]
    bound: Floats  # [n]
    status: Status
    values: Values  # [n, h, s]
    report: Report
    n_actions: int
    statuses: tuple[Status, ...] | None = None  # [n], where they may differ

    def __repr__(self) -> str:
        return f"{self.report.oracle}: {self.status}, {len(self)} plans"

    @property
    def gap(self) -> Floats:
        """How much cheaper other policies could be `[n]`; infinite where there is no policy."""
        gaps: Floats = self.objective - self.bound
        return gaps

    @property
    def relative_gap(self) -> Floats:
        """The gaps as parts of the objectives `[n]`, without their signs; NaN where the objective is 0 or infinite."""
        known = np.isfinite(self.objective) & (self.objective != 0.0)
        parts: Floats = np.where(known, self.gap, np.nan) / np.where(known, np.abs(self.objective), 1.0)
        return parts

    @property
    def policies(self) -> Policies:
        """The chance of each action, `[n, h, s, a]` (or `[n, s, a]`)."""
        return one_hot(self.actions, self.n_actions)

    def draws(self, rng: np.random.Generator) -> Actions:
        """Deterministic policies `[n, h, s]` (or `[n, s]`), which visit each pair with the chance that the plans do."""
        return self.actions

    def require(self, *accepted: Status) -> Self:
        """Itself, if its status is accepted; otherwise `Unsolved` with the reason."""
        if self.status in accepted:
            return self
        reason = f": {self.report.note}" if self.report.note else ""
        raise Unsolved(f"{self.report.oracle} ended {self.status}{reason}", self)

    def __len__(self) -> int:
        return len(self.objective)

    def __getitem__(self, i: int) -> Plan:
        status = self.statuses[i] if self.statuses else self.status
        numbers = float(self.objective[i]), float(self.bound[i])
        return Plan(self.actions[i], *numbers, status, self.values[i], self.report, self.n_actions)

    def __iter__(self) -> Iterator[Plan]:
        return (self[i] for i in range(len(self)))


class Listed(NamedTuple):
    """All policies that a planner chooses from, and how near to the cheapest its answer must be."""

    policies: Actions  # [n, s], stationary ones: action 0 where a policy never comes
    gap: float  # relative to steps times the largest cost


class Oracle(Protocol[BoundT]):
    """Settings of a method. `requires` names the packages that it must be able to import."""

    requires: ClassVar[tuple[str, ...]]

    # Any: an oracle names the domains that it knows, is asked about every domain, and refuses the others.
    def supports(self, domain: Any) -> bool:
        """Whether `bind` would accept the domain."""
        ...

    def bind(self, domain: Any) -> BoundT:
        """Compile the model of a domain."""
        ...


class Bound(Exclusive, ABC):
    """An oracle bound to a domain. Pickled, it travels as its oracle and domain, and binds again on arrival.

    It solves for one thread at a time: a second one waits. After a solve that raised, the next one starts afresh.
    """

    group: ClassVar[str]  # of the entry points of its oracles
    role: ClassVar[str]  # the argument that an oracle which does not fit is blamed on
    verb: ClassVar[str]  # what it does with a domain
    within_budgets: ClassVar[str]  # names of those that do it within budgets too

    domain: Domain  # planners of other domains name theirs

    def __init__(self, oracle: "Oracle[Bound]", domain: PlanningDomain) -> None:
        if not isinstance(domain, PlanningDomain):
            raise InvalidInput(f"{type(domain).__name__} is not a domain; wrap the kernel: MarkovPolicies(kernel)")
        self.require_fit(oracle, domain)
        self.oracle = oracle
        self.domain = domain  # type: ignore[assignment]
        self.name = registry.name_of(self.group, type(oracle))  # of the class, where it has none

    @classmethod
    def require_fit(cls, oracle: "Oracle[Bound]", domain: PlanningDomain, blamed: str = "", remedy: str = "") -> None:
        """Refuse an oracle that does not support the domain, or that lacks a package."""
        name = registry.name_of(cls.group, type(oracle))
        if not oracle.supports(domain):
            if isinstance(domain, BudgetedPolicies):
                remedy = f": it does not know budgets, which may ask for a randomized policy; use {cls.within_budgets}"
            raise UnsupportedDomain(f"{name} does not {cls.verb} {describe(domain)}{remedy}", blamed or cls.role)
        registry.require(name, oracle.requires)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.oracle.bind, (self.domain,)


@runtime_checkable
class PlanningOracle(Oracle["Planner"], Protocol):
    """Settings of a planning method. `requires` names the packages that it must be able to import."""


@runtime_checkable
class ExportingOracle(PlanningOracle, Protocol):
    """An oracle that solves a model, and can write it to a file for other solvers."""

    def export(self, domain: Domain, cost: ArrayLike, path: str | Path) -> None:
        """Write the model for one `cost` `[h, s, a]` to a `.lp` or `.mps` file; one that stands there is replaced."""
        ...


class Planner(Bound, solves="minimize"):
    """A planning oracle bound to a domain."""

    oracle: PlanningOracle
    group, role, verb = GROUP, "oracle", "solve"
    within_budgets = "lagrangian, lp, cvxpy or pulp"

    def __init__(self, oracle: PlanningOracle, domain: PlanningDomain) -> None:
        super().__init__(oracle, domain)
        self._shape: tuple[int, ...] = domain.shape if isinstance(domain, Domain) else domain.cost_shape

    @abstractmethod
    def minimize(self, costs: Costs) -> Plans:
        """The cheapest policy for each of `costs` `[n, h, s, a]`."""

    @property
    def listed(self) -> Listed | None:
        """The policies to choose from, if they are few: who knows what each pays need not ask who is the cheapest."""
        return None

    def shaped(self, costs: ArrayLike) -> Costs:
        """`costs` as an array that fits the domain, or `InvalidInput`; a sweep looks for NaN and infinity itself."""
        axes = cost_axes(self.domain, costs, batch="n")
        result = floats("costs", costs, axes)
        asked = self._shape[len(self._shape) + 1 - len(axes) :]
        if result.shape[1:] != asked:
            sizes = ", ".join(map(str, asked))
            raise InvalidInput(f"costs has shape {result.shape}; the domain asks for (n, {sizes})")
        return result

    def checked(self, costs: ArrayLike) -> Costs:
        """`costs` as an array of finite numbers that fits the domain, or `InvalidInput`."""
        result = self.shaped(costs)
        require_finite("costs", result, cost_axes(self.domain, result, batch="n"))
        return result


def cost_axes(domain: PlanningDomain, cost: ArrayLike, batch: str = "") -> str:
    """The axes of a cost array over a domain; where several forms are accepted, of the one with as many axes."""
    known = ("hsa",) if isinstance(domain, Domain) else domain.cost_axes
    forms = [batch + axes for axes in known]
    return forms[0] if len(forms) == 1 else next((axes for axes in forms if len(axes) == np.ndim(cost)), forms[0])


def oracle(name: str, **options: Any) -> PlanningOracle:
    """The oracle registered under `name`, such as `"dp"` or `"lp"`, with its options by neutral names."""
    return created(GROUP, name, options)  # type: ignore[no-any-return]


def created(group: str, name: str, options: dict[str, Any]) -> Any:
    """An oracle of an entry-point group, or of one's own; what lacks a member of an oracle is refused."""
    chosen = registry.create(group, name, options)
    if not is_oracle(chosen):
        raise InvalidInput(f"{name!r} is no oracle: it lacks {', '.join(_lacking(chosen))}; see amdp.oracles.base")
    return chosen


def bind(oracle: str | PlanningOracle, domain: PlanningDomain | World) -> Planner:
    """A planner for many solves over one domain, or the domain of a world: the model is compiled once."""
    chosen = created(GROUP, oracle, {}) if isinstance(oracle, str) else oracle
    if not is_oracle(chosen):
        raise InvalidInput(f"{chosen!r} is not an oracle; give a name, such as 'dp', or an oracle")
    planner = chosen.bind(domain if isinstance(domain, EndlessPolicies | MultiModel) else as_domain(domain))
    if not isinstance(planner, Planner):
        raise InvalidInput(f"{chosen!r} is bound to a {type(planner).__name__}; bind must return an amdp.Planner")
    return planner


def is_oracle(chosen: object) -> bool:
    """Whether it has the members of an `Oracle`; `isinstance` with a protocol takes longer than most plans."""
    return not _lacking(chosen)


def _lacking(chosen: object) -> list[str]:
    return [member for member in ("requires", "supports", "bind") if not hasattr(chosen, member)]


def plan(oracle: str | PlanningOracle, domain: PlanningDomain | World, cost: ArrayLike) -> Plan:
    """The cheapest policy of a domain or a world for one `cost` `[h, s, a]`; `Unsolved` if none was found.

    Without an end costs are `[s, a]`; over several models `[m, h, s, a]`, or `[h, s, a]` for all of them.
    """
    planner = bind(oracle, domain)
    costs = floats("cost", cost, cost_axes(planner.domain, cost))[None]
    return planner.minimize(costs).require(Status.OPTIMAL, Status.FEASIBLE)[0]


def describe(domain: object) -> str:
    """The kind of a domain in words: `MarkovPolicies over Kernel`."""
    if isinstance(domain, MultiModel):
        return f"MultiModel of {describe(domain.models[0])}"
    return f"{type(domain).__name__} over {type(getattr(domain, 'dynamics', None)).__name__}"
