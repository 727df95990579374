"""`amdp solve`: an optimal policy of a world under its own costs, with a proof of optimality."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.status import Status as Spinner
from rich.table import Table

from amdp import registry
from amdp.commands import completion
from amdp.commands.endless import endless
from amdp.commands.loading import stopwatch
from amdp.commands.screen import (
    AsJson,
    PolicyClass,
    Screen,
    WorldSettings,
    clear_errors,
    gap_text,
    print_json,
    settings,
    unmarked,
)
from amdp.errors import InvalidInput, MissingDependency, UnsupportedDomain
from amdp.game.games import WORLD_FILES
from amdp.instances import Instance, build, load
from amdp.model.domains import StationaryPolicies
from amdp.oracles.base import GROUP, Plan, Planner, PlanningDomain, PlanningOracle, Status, bind, oracle
from amdp.oracles.stationary.search import Progress

MAX_SHOWN = 12  # steps and states of a policy that fit a screen of 80 columns
USUAL = "Without it: dp for markov policies, auto for stationary ones, policy-iteration for ever."
GAP = "Gap that counts as optimal, as a part of what the best policy pays; stationary: of steps times the largest cost."
COUNTED = ("iterations", "nodes", "rebuilds", "solver", "note")
REPORT = ("seconds", *COUNTED)


def solve(
    instance: Annotated[
        str,
        typer.Argument(
            help="A name of `amdp instances`, or a .npz or .json file with p, initial and costs.",
            autocompletion=completion.instances,
        ),
    ],
    oracle_name: Annotated[
        str | None, completion.option(completion.oracles, f"A name of `amdp oracles`. {USUAL}", "--oracle")
    ] = None,
    policies: Annotated[
        PolicyClass,
        typer.Option("--domain", help="markov: the action depends on step and state; stationary: on the state alone."),
    ] = PolicyClass.MARKOV,
    discount: Annotated[
        float | None, typer.Option(help="For ever, stationary: the discounted sum of costs, by this factor below 1.")
    ] = None,
    average: Annotated[bool, typer.Option("--average", help="For ever, stationary: the average cost a step.")] = False,
    world: WorldSettings = None,
    seconds: Annotated[float | None, typer.Option(help="Time limit of the oracle.")] = None,
    gap: Annotated[float | None, typer.Option(help=GAP)] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the oracle.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find a policy of least expected cost in a world, and prove how close to optimal it is.

    Example: amdp solve world.npz --domain stationary --oracle auto --seconds 10

    Example: amdp solve random-parked --domain stationary --world n_states=3

    Example: amdp solve river-swim --discount 0.95
    """
    with clear_errors(), stopwatch() as clock:
        built = instance_of(instance, settings("--world", world or ()))
        options = {"seconds": seconds, "gap": gap, "threads": threads}
        domain: PlanningDomain
        if average or discount is not None:
            usual, (domain, cost) = "policy-iteration", endless(built, discount, average)
        else:
            is_markov = policies is PolicyClass.MARKOV
            usual, cost = "dp" if is_markov else "auto", built.costs
            domain = built.domain if is_markov else StationaryPolicies(built.kernel, built.initial)
        name = usual if oracle_name is None else oracle_name
        chosen = _oracle(name, {option: value for option, value in options.items() if value is not None}, domain)
        title = f"{name}: {built.name}"
        waiting = unmarked(f"{title} (the first solve on a machine compiles for some seconds)")
        with Screen(stderr=True).status(waiting) as spinner:
            planner = _planner(chosen, domain, usual if name != usual else None)
            if hasattr(planner, "on_progress"):
                planner.on_progress = partial(_show_progress, title, spinner)
            clock.begin()
            plans = planner.minimize(cost[None]).require(Status.OPTIMAL, Status.FEASIBLE)
            spent = clock.read()
    answer = _as_dict(name, plans[0]) | {"solving_seconds": spent.working, "loading_seconds": spent.loading}
    if as_json:
        print_json(answer)
    else:
        _show(built.name, answer, plans[0])


def instance_of(name: str, options: dict[str, Any]) -> Instance:
    """The world of a name with these settings, or of a file, which takes none."""
    if Path(name).suffix not in WORLD_FILES:
        return build(name, **options)
    if options:
        raise InvalidInput(f"--world {next(iter(options))}: what is read from a file has no settings")
    return load(name)


def _oracle(name: str, options: dict[str, Any], domain: PlanningDomain) -> PlanningOracle:
    """The oracle with these options; an option that it lacks is refused with the names of oracles that have it."""
    lacking = [option for option in options if option not in registry.known_options(registry.find(GROUP, name))]
    if lacking:
        others = [other for other in registry.names(GROUP) if _takes(other, lacking, domain)]
        remedy = f"--oracle {', '.join(others)}" if others else "no oracle for these policies has it"
        raise InvalidInput(f"{name!r} has no option {lacking[0]!r}; it is an option of: {remedy}")
    return oracle(name, **options)


def _takes(name: str, options: list[str], domain: PlanningDomain) -> bool:
    """Whether an installed oracle that solves the domain has these options."""
    try:
        candidate = registry.find(GROUP, name)
    except MissingDependency:
        return False
    return set(options) <= set(registry.known_options(candidate)) and bool(candidate().supports(domain))


def _planner(chosen: PlanningOracle, domain: PlanningDomain, remedy: str | None) -> Planner:
    """The oracle bound to the domain; a refusal names another oracle, which solves all domains of the kind."""
    try:
        return bind(chosen, domain)
    except UnsupportedDomain as problem:
        raise UnsupportedDomain(f"{problem}; --oracle {remedy} does" if remedy else str(problem)) from problem


def _show_progress(title: str, spinner: Spinner, now: Progress) -> None:
    bounds = f"incumbent {now.incumbent:.6g}, bound {now.bound:.6g}, gap {gap_text(now.gap, now.incumbent)}"
    spinner.update(unmarked(f"{title}: {bounds}, {now.nodes} nodes, {now.seconds:.1f} s"))


def _as_dict(name: str, plan: Plan) -> dict[str, Any]:
    return {
        "oracle": name,
        "status": plan.status,
        "objective": plan.objective,
        "bound": plan.bound,
        "gap": plan.gap,
        "relative_gap": plan.gap / abs(plan.objective) if plan.objective else None,
        **{name: getattr(plan.report, name) for name in REPORT},
        "actions": plan.actions.tolist(),
        "values": plan.values.tolist(),
    }


def _show(world: str, answer: dict[str, Any], plan: Plan) -> None:
    screen = Screen()
    facts = Table(show_header=False, title=f"{world} by {answer['oracle']}")
    for key, text in _facts(answer):
        facts.add_row(key, text)
    screen.print(facts)
    stationary = plan.actions.ndim == 1
    screen.print("action at each state" if stationary else "action at each step (row) and state (column)")
    screen.print(_policy(plan))
    steps, states = np.atleast_2d(plan.actions).shape
    if max(steps, states) > MAX_SHOWN:
        screen.print(f"({_first(steps)} steps and {_first(states)} states; --json gives all)")


def _facts(answer: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What there is to say: a count of zero says that the oracle does not count such things, or had no need to."""
    yield from ((key, str(answer[key])) for key in ("oracle", "status"))
    yield from ((key, f"{answer[key]:.10g}") for key in ("objective", "bound"))
    yield "gap", gap_text(answer["gap"], answer["objective"])
    yield from ((key, str(answer[key])) for key in COUNTED if answer[key])
    yield "solving", f"{answer['solving_seconds']:.3g} seconds"
    yield "loading", f"{answer['loading_seconds']:.3g} seconds: the world, the oracle, machine code"


def _first(count: int) -> str:
    return str(count) if count <= MAX_SHOWN else f"first {MAX_SHOWN} of {count}"


def _policy(plan: Plan) -> Table:
    """The first actions `[h, s]` of a policy, or `[s]` of a stationary one."""
    stationary = plan.actions.ndim == 1
    rules = np.atleast_2d(plan.actions)[:MAX_SHOWN, :MAX_SHOWN]
    table = Table("step", *map(str, range(rules.shape[1])))
    for h, actions in enumerate(rules):
        table.add_row("all" if stationary else str(h), *map(str, actions))
    return table
