"""Solve the built-in worlds with every oracle: values, bounds and seconds in one table."""

from time import perf_counter

from rich.console import Console
from rich.progress import track
from rich.table import Table

import amdp
from amdp.registry import names


def solve(world: amdp.instances.Instance, oracle: str) -> list[str]:
    """One row: a first solve, and a second one after a small change of costs (with a warm start where there is one)."""
    try:
        planner = amdp.bind(oracle, world)
    except amdp.UnsupportedDomain:
        return [f"  {oracle}", "too many", "", "", ""]
    first = planner.minimize(world.costs[None])[0]
    changed = world.costs.copy()
    changed[:, world.initial, 0] += 0.01
    began = perf_counter()
    planner.minimize(changed[None])
    again = perf_counter() - began
    values = [f"{value:.9f}" for value in (first.objective, first.bound)]
    return [f"  {oracle}", *values, f"{1e3 * first.report.seconds:.2f}", f"{1e3 * again:.2f}"]


def main() -> None:
    console = Console()
    table = Table("world (steps, states, actions)", "objective", "bound", "first, ms", "again, ms")
    worlds = amdp.instances.standard()
    oracles = [name for name in names("amdp.oracles") if amdp.oracle(name).supports(worlds["tiny"]().domain)]
    for name in ("tiny", "random-sparse"):  # compile and import before the clock runs
        for oracle in oracles:
            solve(worlds[name](), oracle)
    for name in track(worlds, "solving", console=console, transient=True):
        world = worlds[name]()
        table.add_row(f"{name} {world.shape}", style="bold")
        for oracle in oracles:
            table.add_row(*solve(world, oracle), end_section=oracle == oracles[-1])
    console.print(table)


if __name__ == "__main__":
    main()
