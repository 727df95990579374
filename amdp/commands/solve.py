"""`amdp solve`: an optimal policy of a world under its own costs, with a proof of optimality."""

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.status import Status as Spinner
from rich.table import Table

from amdp import registry
from amdp.algorithms.task import USUAL_ORACLES
from amdp.arrays import Bools, Policies
from amdp.commands import completion
from amdp.commands.endless import endless
from amdp.commands.loading import stopwatch
from amdp.commands.screen import (
    AsJson,
    PolicyClass,
    Screen,
    WorldSettings,
    clear_errors,
    complain,
    print_json,
    settings,
    unmarked,
)
from amdp.errors import InvalidInput, MissingDependency, UnsupportedDomain
from amdp.game.games import WORLD_FILES
from amdp.instances import Instance, build, load
from amdp.model.domains import Domain
from amdp.options import require_kinds
from amdp.oracles.base import (
    GROUP,
    ExportingOracle,
    Plan,
    Planner,
    PlanningDomain,
    PlanningOracle,
    Status,
    bind,
    oracle,
)
from amdp.oracles.budgets import BudgetedPlan
from amdp.oracles.model_files import require_model_suffix
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import Progress
from amdp.text import suggestion

MAX_SHOWN = 12  # steps and states of a policy that fit a screen of 80 columns
USUAL = "Without it: dp for markov policies, lagrangian within budgets, auto for stationary ones."
GAP = (
    "Absolute gap that counts as optimal, in units of what the best policy pays; stationary: of steps times the "
    "largest cost."
)
LINE_WIDTH = 77  # of progress: with the spinner before it, less than 80
COUNTED = ("iterations", "nodes", "rebuilds", "solver", "note")
REPORT = ("seconds", *COUNTED)
GAPS = ("absolute_gap", "relative_gap")


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
        PolicyClass | None,
        typer.Option(
            "--domain",
            help="markov, as without it: the action depends on step and state; stationary: on the state alone.",
        ),
    ] = None,
    discount: Annotated[
        float | None, typer.Option(help="For ever, stationary: the discounted sum of costs, by this factor below 1.")
    ] = None,
    average: Annotated[bool, typer.Option("--average", help="For ever, stationary: the average cost a step.")] = False,
    world: WorldSettings = None,
    seconds: Annotated[float | None, typer.Option(help="Time limit of the oracle.")] = None,
    gap: Annotated[float | None, typer.Option(help=GAP)] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the oracle.")] = None,
    more: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE for the oracle, such as solver=CBC or formulation=value; repeatable."),
    ] = None,
    solver_options: Annotated[
        list[str] | None,
        typer.Option("--option", help="KEY=VALUE for its solver, by the solver's own name; repeatable."),
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Show the solver's own log, on standard error.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write the model to a .lp or .mps file, then solve; an old file is replaced.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find a policy of least expected cost in a world, and prove how close to optimal it is.

    Example: amdp solve world.npz --domain stationary --oracle auto --seconds 10

    Example: amdp solve random-parked --domain stationary --world n_states=3

    Example: amdp solve tiny --oracle pulp --set solver=CBC --log --export tiny.lp

    Example: amdp solve river-swim --discount 0.95
    """
    with clear_errors(), stopwatch() as clock:
        if export is not None:
            require_model_suffix(export)
        own = settings("--option", solver_options or ())
        given = {"seconds": seconds, "gap": gap, "threads": threads, "log": log or None, "options": own or None}
        options = _together(given, settings("--set", more or ()))
        built = instance_of(instance, settings("--world", world or ()))
        domain: PlanningDomain
        if average or discount is not None:
            if policies is not None:
                raise InvalidInput("--domain: for ever the policies are stationary; leave it out")
            usual, (domain, cost) = "policy-iteration", endless(built, discount, average)
        else:
            domain, cost = built.stationary if policies is PolicyClass.STATIONARY else built.domain, built.costs
            usual = USUAL_ORACLES[type(domain)]
        name = usual if oracle_name is None else oracle_name
        chosen = _oracle(name, options, domain)
        if export is not None:
            if not isinstance(domain, Domain):
                raise InvalidInput("--export: planning for ever has no model to write")
            _exporting(name, chosen, domain).export(domain, built.costs, export)
            complain(f"wrote {export}")
        waiting = unmarked(f"{name}: {built.name} (the first solve on a machine compiles)")
        screen = Screen(stderr=True)
        with nullcontext() if log else screen.status(waiting) as spinner:
            planner = _planner(chosen, domain, usual if name != usual else None)
            if isinstance(planner, StationaryPlanner):
                if planner.reason:
                    screen.print(f"{name} {planner.reason}")  # before the search, which may be long
                planner.on_progress = partial(_show_progress, spinner) if spinner else None
            clock.begin()
            plans = planner.minimize(cost[None]).require(Status.OPTIMAL, Status.FEASIBLE)
            spent = clock.read()
    answer = _as_dict(name, plans[0]) | {"solving_seconds": spent.working, "loading_seconds": spent.loading}
    if export is not None:
        answer["model"] = str(export)
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


def _together(options: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """The options that are given, with those of `--set`; one that has a word of its own is not given twice."""
    given = {option: value for option, value in options.items() if value is not None}
    twice = [option for option in more if option in given]
    if twice:
        word = "option" if twice[0] == "options" else twice[0]
        raise InvalidInput(f"--set {twice[0]} and --{word} are both given; one is enough")
    return {**given, **more}


def _oracle(name: str, options: dict[str, Any], domain: PlanningDomain) -> PlanningOracle:
    """The oracle with these options; an option that it lacks is refused with the names of oracles that have it."""
    kind = registry.find(GROUP, name)
    lacking = [option for option in options if option not in registry.known_options(kind)]
    if lacking:
        others = [other for other, known in _solving(domain) if set(lacking) <= set(registry.known_options(known))]
        nearest = suggestion(lacking[0], registry.known_options(kind)) or "no oracle for these policies has it"
        remedy = f"it is an option of: --oracle {', '.join(others)}" if others else nearest.rstrip("; ")
        raise InvalidInput(f"{name!r} has no option {lacking[0]!r}; {remedy}")
    require_kinds(name, kind, options)
    return oracle(name, **options)


def _exporting(name: str, chosen: PlanningOracle, domain: PlanningDomain) -> ExportingOracle:
    """The oracle as one that writes its model; one that has none is refused with the names of those that do."""
    if isinstance(chosen, ExportingOracle):
        return chosen
    others = ", ".join(other for other, kind in _solving(domain) if hasattr(kind, "export"))
    raise InvalidInput(f"--export: {name!r} has no model to write; those that have one: --oracle {others}")


def _solving(domain: PlanningDomain) -> Iterator[tuple[str, Any]]:
    """The installed oracles that solve a domain, with their names."""
    for name in registry.names(GROUP):
        try:
            kind = registry.find(GROUP, name)
        except MissingDependency:
            continue
        if kind().supports(domain):
            yield name, kind


def _planner(chosen: PlanningOracle, domain: PlanningDomain, remedy: str | None) -> Planner:
    """The oracle bound to the domain; a refusal names another oracle, which solves all domains of the kind."""
    try:
        return bind(chosen, domain)
    except UnsupportedDomain as problem:
        raise UnsupportedDomain(f"{problem}; --oracle {remedy} does" if remedy else str(problem)) from problem


def _show_progress(spinner: Spinner, now: Progress) -> None:
    spinner.update(unmarked(progress_line(now)))


def progress_line(now: Progress) -> str:
    """How far a solve has come, in one line: the most important first, and what does not fit is left out."""
    parts = [f"{now.seconds:.0f} s", f"objective {now.incumbent:.5g}", f"bound {now.bound:.5g}"]
    if now.claim is not None:
        parts.append(f"solver claims {now.claim:.5g}")
    parts.append(f"absolute gap {now.gap:.2g}")
    if now.relative_gap is not None:
        parts.append(f"relative gap {now.relative_gap:.2g}")
    parts.append(f"{now.nodes} nodes")
    line = parts[0]
    for part in parts[1:]:
        line = f"{line}, {part}" if len(line) + len(part) + 2 <= LINE_WIDTH else line
    return line


def _as_dict(name: str, plan: Plan) -> dict[str, Any]:
    return {
        "oracle": name,
        "status": plan.status,
        "objective": plan.objective,
        "bound": plan.bound,
        "gap": plan.gap,  # the absolute gap by its old name
        "absolute_gap": plan.gap,
        "relative_gap": plan.relative_gap,
        **{name: getattr(plan.report, name) for name in REPORT},
        **(_within_budgets(plan) if isinstance(plan, BudgetedPlan) else {"actions": plan.actions.tolist()}),
        "values": plan.values.tolist(),
    }


def _within_budgets(plan: BudgetedPlan) -> dict[str, Any]:
    """The chances of actions, for the plan may be randomized, and what it uses of each budget."""
    numbers = (column.tolist() for column in (plan.use, plan.budgets.limits, plan.prices))
    rows = zip(plan.budgets.names, *numbers, strict=True)
    budgets = {name: {"use": use, "limit": limit, "price": price} for name, use, limit, price in rows}
    return {"budgets": budgets, "policy": plan.policy.tolist()}


def _show(world: str, answer: dict[str, Any], plan: Plan) -> None:
    screen = Screen()
    facts = Table(show_header=False, title=f"{world} by {answer['oracle']}")
    for key, text in _facts(answer):
        facts.add_row(key, text)
    screen.print(facts)
    stationary = plan.policy.ndim == 2
    screen.print("action at each state" if stationary else "action at each step (row) and state (column)")
    screen.print(_policy(plan))
    if drawn := int(_mixed(plan.policy).sum()):
        screen.print(f"(a dot: actions are drawn, at {drawn} of all places; --json gives their chances)")
    steps, states = (1, *plan.policy.shape[:-1])[-2:]
    if max(steps, states) > MAX_SHOWN:
        screen.print(f"({_first(steps)} steps and {_first(states)} states; --json gives all)")


def _facts(answer: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What there is to say: a count of zero says that the oracle does not count such things, or had no need to."""
    yield from ((key, str(answer[key])) for key in ("oracle", "status"))
    yield from ((key, f"{answer[key]:.10g}") for key in ("objective", "bound"))
    yield from ((key.replace("_", " "), f"{answer[key]:.3g}") for key in GAPS if answer[key] is not None)
    for name, budget in answer.get("budgets", {}).items():
        yield name, f"uses {budget['use']:.6g} of {budget['limit']:g}; a unit more would save {budget['price']:.6g}"
    yield from ((key, str(answer[key])) for key in COUNTED if answer[key])
    yield "solving", f"{answer['solving_seconds']:.3g} seconds"
    yield "loading", f"{answer['loading_seconds']:.3g} seconds: the world, the oracle, machine code"


def _first(count: int) -> str:
    return str(count) if count <= MAX_SHOWN else f"first {MAX_SHOWN} of {count}"


def _policy(plan: Plan) -> Table:
    """The first actions `[h, s]` of a policy, or `[s]` of a stationary one; a dot where actions are drawn."""
    stationary = plan.policy.ndim == 2
    rules = np.where(_mixed(plan.policy), -1, plan.policy.argmax(axis=-1))
    rules = np.atleast_2d(rules)[:MAX_SHOWN, :MAX_SHOWN]
    table = Table("step", *map(str, range(rules.shape[1])))
    for h, actions in enumerate(rules):
        table.add_row("all" if stationary else str(h), *("." if action < 0 else str(action) for action in actions))
    return table


def _mixed(policy: Policies) -> Bools:
    """Where a policy draws its action, `[h, s]` or `[s]`."""
    return np.asarray(policy.max(axis=-1) < 1.0)
