"""`amdp solve`: the cheapest policy of a world, with its proof."""

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.status import Status as Spinner
from rich.table import Table

from amdp import registry
from amdp.commands import completion
from amdp.commands.refusals import clear_errors
from amdp.commands.screen import Screen, unmarked
from amdp.errors import InvalidInput, MissingDependency, UnsupportedDomain
from amdp.instances import Instance, build, load
from amdp.model.domains import Domain, StationaryPolicies
from amdp.oracles.base import GROUP, Plan, Planner, PlanningOracle, Status, bind, oracle
from amdp.oracles.stationary.clock import Progress

SHOWN = 12  # steps and states of a policy that fit a screen
FILES = (".npz", ".json")


class Policies(StrEnum):
    """Which policies may be chosen."""

    MARKOV = "markov"
    STATIONARY = "stationary"


def solve(
    world: Annotated[
        str,
        typer.Argument(
            help="A .npz or .json file with p, initial, costs; or `amdp instances`.",
            autocompletion=completion.instances,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--oracle", help="See `amdp oracles`; dp, or auto if stationary.", autocompletion=completion.oracles
        ),
    ] = None,
    policies: Annotated[
        Policies, typer.Option("--domain", help="markov: a rule for each step; stationary: one rule for all steps.")
    ] = Policies.MARKOV,
    seconds: Annotated[float | None, typer.Option(help="Time limit.")] = None,
    gap: Annotated[float | None, typer.Option(help="Relative gap that counts as optimal.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the solver.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Find the cheapest policy of a world, with a proof.

    Example: amdp solve world.npz --domain stationary --oracle auto --seconds 10
    """
    with clear_errors():
        instance = load(world) if Path(world).suffix in FILES else build(world)
        asked = ("dp" if policies is Policies.MARKOV else "auto") if name is None else name
        given = {"seconds": seconds, "gap": gap, "threads": threads}
        domain = _domain(instance, policies)
        chosen = _oracle(asked, {option: value for option, value in given.items() if value is not None}, domain)
        title = f"{asked}: {instance.name}"
        waiting = unmarked(f"{title} (the first solve on a machine compiles for some seconds)")
        with Screen(stderr=True).status(waiting) as spinner:
            planner = _bound(asked, chosen, domain)
            _listen(planner, _show_progress(title, spinner))
            plans = planner.minimize(instance.costs[None]).require(Status.OPTIMAL, Status.FEASIBLE)
        if as_json:
            typer.echo(json.dumps(_as_dict(asked, plans[0]), indent=2))
            return
        _show(instance.name, asked, plans[0])


def _domain(instance: Instance, policies: Policies) -> Domain:
    if policies is Policies.MARKOV:
        return instance.domain
    return StationaryPolicies(instance.kernel, instance.initial)


def _oracle(name: str, options: dict[str, Any], domain: Domain) -> PlanningOracle:
    """The oracle, made with options; if it lacks one, the refusal names those that have it."""
    lacking = [option for option in options if option not in registry.known_options(registry.find(GROUP, name))]
    if lacking:
        others = [other for other in registry.names(GROUP) if _takes(other, lacking, domain)]
        remedy = f"--oracle {', '.join(others)}" if others else "no oracle for these policies has it"
        raise InvalidInput(f"{name!r} has no option {lacking[0]!r}; it is an option of: {remedy}")
    return oracle(name, **options)


def _takes(name: str, options: list[str], domain: Domain) -> bool:
    """Whether an installed oracle that solves the domain has these options."""
    try:
        found = registry.find(GROUP, name)
    except MissingDependency:
        return False
    return set(options) <= set(registry.known_options(found)) and bool(found().supports(domain))


def _bound(name: str, chosen: PlanningOracle, domain: Domain) -> Planner:
    """The planner; a refusal names the oracle that solves all domains of the kind."""
    remedy = "auto" if isinstance(domain, StationaryPolicies) else "dp"
    try:
        return bind(chosen, domain)
    except UnsupportedDomain as problem:
        raise UnsupportedDomain(f"{problem}; --oracle {remedy} does" if name != remedy else str(problem)) from problem


def _listen(planner: Planner, listener: Callable[[Progress], None]) -> None:
    """Long solves report; the others have nothing to say."""
    if hasattr(planner, "on_progress"):
        planner.on_progress = listener


def _show_progress(title: str, spinner: Spinner) -> Callable[[Progress], None]:
    def show(now: Progress) -> None:
        bounds = f"incumbent {now.incumbent:.6g}, bound {now.bound:.6g}, gap {now.gap:.2g}"
        spinner.update(unmarked(f"{title}: {bounds}, {now.nodes} nodes, {now.seconds:.1f} s"))

    return show


def _as_dict(name: str, plan: Plan) -> dict[str, Any]:
    return {
        "oracle": name,
        "status": plan.status,
        "objective": plan.objective,
        "bound": plan.bound,
        "gap": plan.gap,
        "seconds": plan.report.seconds,
        "iterations": plan.report.iterations,
        "nodes": plan.report.nodes,
        "rebuilds": plan.report.rebuilds,
        "solver": plan.report.solver,
        "note": plan.report.note,
        "actions": plan.actions.tolist(),
        "values": plan.values.tolist(),
    }


def _show(world: str, name: str, plan: Plan) -> None:
    screen = Screen()
    facts = Table(show_header=False, title=f"{world} by {name}")
    for key, value in _as_dict(name, plan).items():
        if key not in ("oracle", "actions", "values") and value != "":
            facts.add_row(key, f"{value:.10g}" if isinstance(value, float) else str(value))
    screen.print(facts)
    rules = plan.actions.reshape(-1, plan.actions.shape[-1])  # one row for all steps if the policy is stationary
    steps, states = rules.shape
    stationary = plan.actions.ndim == 1
    title = "action at each state" if stationary else "action at each step and state"
    policy = Table("step", *(f"s={s}" for s in range(min(states, SHOWN))), title=title)
    for h in range(min(steps, SHOWN)):
        policy.add_row("all" if stationary else str(h), *(str(a) for a in rules[h, :SHOWN]))
    screen.print(policy)
    if steps > SHOWN or states > SHOWN:
        screen.print(f"(first {SHOWN} of {steps} steps and {states} states; --json gives all)")
