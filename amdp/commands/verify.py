"""`amdp verify`: checks the statements of the paper on the library, one by one."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from amdp.commands.screen import AsJson, Screen, clear_errors, complain, leave, print_json
from amdp.errors import InvalidInput
from amdp.verification import Effort, Verdict
from amdp.verification.base import Check
from amdp.verification.page import write
from amdp.verification.runs import Verified, chosen, false_alarm
from amdp.verification.runs import verify as verified

MARKS = {
    Verdict.HOLDS: Text("holds", "green"),
    Verdict.FAILS: Text("FAILS", "red"),
    Verdict.OUT_OF_REACH: Text("out of reach", "yellow"),
}


def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Checks by name; all if none is given.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer samples: about half a minute for all.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same findings.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="Run everything with so many seeds in a row, from --seed on.")] = 1,
    listed: Annotated[bool, typer.Option("--list", help="List the checks without running them.")] = False,
    page: Annotated[Path | None, typer.Option(help="Write the findings as a Markdown page, with figures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check the statements of the paper: which hold, which fail, and whose bounds are trivial at playable sizes.

    The exit code is 3 if a statement fails.

    Example: amdp verify --quick

    Example: amdp verify switch-law --seed 7

    Example: amdp verify --quick --seeds 20
    """
    with clear_errors():
        wanted = chosen(list(dict.fromkeys(names or [])))
        if page and (names or listed):
            raise InvalidInput("--page writes all findings: give it without names of checks and without --list")
        if page and (page.is_dir() or not page.parent.is_dir()):
            raise InvalidInput(f"{page} cannot be written: give a file in a folder that is there")
        if listed:
            _list(wanted, as_json)
            return
        effort = Effort.QUICK if quick else Effort.FULL
        if as_json:
            done = [result for each in range(seed, seed + seeds) for result in verified(wanted, effort, each)]
            print_json([_plain(result) for result in done])
        else:
            done = _watched(wanted, effort, seed, seeds)
        if page:
            for file in write(done, effort, page):
                complain(f"wrote {file}")
    leave(failed=any(result.finding.verdict is Verdict.FAILS for result in done))


def _watched(wanted: list[Check], effort: Effort, seed: int, seeds: int) -> list[Verified]:
    """Run the checks: a live table in a terminal, otherwise a line for each check; a line for each further seed."""
    screen = Screen()
    done: list[Verified] = []
    if not screen.is_terminal:
        for result in verified(wanted, effort, seed):
            done.append(result)
            verdict, text = result.finding.verdict, result.finding.text
            typer.echo(f"{verdict:12} {result.check.name:24} {result.seconds:6.1f} s  {text}")
    else:
        with Live(_checklist(wanted, done), console=screen, refresh_per_second=4) as live:
            for result in verified(wanted, effort, seed):
                done.append(result)
                live.update(_checklist(wanted, done))
    for each in range(seed + 1, seed + seeds):
        more = list(verified(wanted, effort, each))
        failed = [result.check.name for result in more if result.finding.verdict is Verdict.FAILS]
        screen.print(f"seed {each}: {_verdicts(more)}" + f"; fails: {', '.join(failed)}" * bool(failed))
        done += more
    rate = seeds * false_alarm(wanted)
    screen.print(f"{_verdicts(done)}; chance of a false alarm: {f'at most {rate:.2g}' if rate else 'none'}")
    return done


def _verdicts(done: list[Verified]) -> str:
    counts = {verdict: sum(result.finding.verdict is verdict for result in done) for verdict in Verdict}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def _checklist(wanted: list[Check], done: list[Verified]) -> Table:
    table = Table("", Column("check", no_wrap=True), "finding", "s", expand=True)
    for result in done:
        mark = MARKS[result.finding.verdict]
        table.add_row(mark, result.check.name, result.finding.text, f"{result.seconds:.1f}")
    for i, check in enumerate(wanted[len(done) :]):
        table.add_row(Text("..." if i == 0 else "", "bold"), check.name, Text(check.claim, "dim"), "")
    return table


def _list(wanted: list[Check], as_json: bool) -> None:
    if as_json:
        print_json([_described(check) for check in wanted])
        return
    table = Table(Column("check", no_wrap=True), "statement, claim, and mistakes that the check rejects", expand=True)
    for check in wanted:
        mistakes = f"Rejects: {', '.join(check.rejects)}"
        table.add_row(check.name, f"{check.statement}\nClaim: {check.claim}\n{mistakes}", end_section=True)
    Screen().print(table)


def _described(check: Check) -> dict[str, Any]:
    names = ("name", "statement", "claim", "correction", "exact", "simulated", "false_alarm", "false_alarm_rate")
    return {name: getattr(check, name) for name in names} | {"rejects": list(check.rejects)}


def _plain(result: Verified) -> dict[str, Any]:
    finding = result.finding
    return (
        _described(result.check)
        | asdict(finding)
        | {
            "margin": finding.margin,
            "seconds": result.seconds,
            "seed": result.seed,
        }
    )
