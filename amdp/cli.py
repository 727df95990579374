"""The command line: `amdp play`, `amdp solve`, and lists of what there is."""

import json
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from amdp import __version__, registry
from amdp.commands.lists import instances, learners
from amdp.commands.play import play
from amdp.commands.refusals import clear_errors
from amdp.errors import MissingDependency
from amdp.instances import load
from amdp.oracles.base import GROUP, Plan, PlanningOracle, Status, bind, describe, oracle
from amdp.testing import sample_domains

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, help=__doc__)
app.command()(play)
app.command()(instances)
app.command()(learners)
SHOWN = 12  # steps and states of a policy that fit a screen


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"amdp {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Adversarial Markov decision processes on planning oracles that prove their answers."""


@app.command()
def oracles(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """List the oracles: what each one solves, and what is missing to use it.

    Example: amdp oracles
    """
    with clear_errors():
        found = [_describe_oracle(name) for name in registry.names(GROUP)]
        if as_json:
            typer.echo(json.dumps(found, indent=2, allow_nan=False))
            return
        _show_oracles(found)


@app.command()
def solve(
    file: Annotated[Path, typer.Argument(help="A world: .npz or .json with p, initial, costs.")],
    name: Annotated[str, typer.Option("--oracle", help="See `amdp oracles`.")] = "dp",
    seconds: Annotated[float | None, typer.Option(help="Time limit.")] = None,
    gap: Annotated[float | None, typer.Option(help="Relative gap that counts as optimal.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the solver.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Find the cheapest policy of a world, with a proof.

    Example: amdp solve world.npz --oracle lp --seconds 10
    """
    with clear_errors():
        instance = load(file)
        given = {"seconds": seconds, "gap": gap, "threads": threads}
        chosen = oracle(name, **{option: value for option, value in given.items() if value is not None})
        with Console(stderr=True).status(
            f"{name}: {instance.name} (the first solve on a machine compiles for some seconds)"
        ):
            plans = (
                bind(chosen, instance.domain).minimize(instance.costs[None]).require(Status.OPTIMAL, Status.FEASIBLE)
            )
        if as_json:
            typer.echo(json.dumps(_as_dict(name, plans[0]), indent=2))
            return
        _show(instance.name, name, plans[0])


def _describe_oracle(name: str) -> dict[str, Any]:
    try:
        made: PlanningOracle = oracle(name)
    except MissingDependency as problem:
        return {"name": name, "solves": [], "options": {}, "missing": str(problem).partition(": ")[2]}
    options = {option: getattr(made, option) for option in registry.known_options(type(made))}
    return {
        "name": name,
        "solves": [describe(domain) for domain in sample_domains() if made.supports(domain)],
        "options": {option: None if value == inf else value for option, value in options.items()},
        "missing": registry.remedy(registry.missing(made.requires)),
    }


def _show_oracles(found: list[dict[str, Any]]) -> None:
    policies = list(dict.fromkeys(type(domain).__name__ for domain in sample_domains()))
    table = Table(
        "oracle", *(f"{kind.removesuffix('Policies')}\npolicies over" for kind in policies), "options", "installed"
    )
    for row in found:
        solves = [_after(f"{kind} over ", row["solves"]) for kind in policies]
        options = "\n".join(name if value is None else f"{name}={value}" for name, value in row["options"].items())
        table.add_row(row["name"], *solves, options, row["missing"] or "yes", end_section=True)
    Console().print(table)


def _after(prefix: str, texts: list[str]) -> str:
    return "\n".join(text.removeprefix(prefix) for text in texts if text.startswith(prefix))


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
    console = Console()
    facts = Table(show_header=False, title=f"{world} by {name}")
    for key, value in _as_dict(name, plan).items():
        if key not in ("oracle", "actions", "values") and value != "":
            facts.add_row(key, f"{value:.10g}" if isinstance(value, float) else str(value))
    console.print(facts)
    steps, states = plan.actions.shape
    policy = Table("step", *(f"s={s}" for s in range(min(states, SHOWN))), title="action at each step and state")
    for h in range(min(steps, SHOWN)):
        policy.add_row(str(h), *(str(a) for a in plan.actions[h, :SHOWN]))
    console.print(policy)
    if steps > SHOWN or states > SHOWN:
        console.print(f"(first {SHOWN} of {steps} steps and {states} states; --json gives all)")
