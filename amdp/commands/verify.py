"""`amdp verify`: the paper's statements, one by one."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from amdp.commands.refusals import clear_errors
from amdp.commands.screen import Screen, complain
from amdp.errors import InvalidInput
from amdp.verification import Effort, Verdict
from amdp.verification.base import Check
from amdp.verification.page import write
from amdp.verification.runs import Verified, chosen, false_alarm
from amdp.verification.runs import verify as verified

FAILED = 3  # the exit code if a statement does not hold
MARKS = {
    Verdict.HOLDS: Text("holds", "green"),
    Verdict.FAILS: Text("FAILS", "red"),
    Verdict.OUT_OF_REACH: Text("out of reach", "yellow"),
}


def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Checks by name; all if none is given.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer samples: about a minute for all.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same findings.")] = 1,
    listed: Annotated[bool, typer.Option("--list", help="Say what there is to check, and check nothing.")] = False,
    page: Annotated[Path | None, typer.Option(help="Write the findings as a Markdown page, with figures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check the statements of the paper: which hold, which fail, and which say nothing at sizes that can be played.

    Exit code 3 if one fails.

    Example: amdp verify --quick

    Example: amdp verify switch-law --seed 7
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
            done = list(verified(wanted, effort, seed))
            typer.echo(json.dumps([_plain(one) for one in done], indent=2))
        else:
            done = _watched(wanted, effort, seed)
        if page:
            for file in write(done, effort, seed, page):
                complain(f"wrote {file}")
    if any(one.finding.verdict is Verdict.FAILS for one in done):
        raise typer.Exit(FAILED)


def _watched(wanted: list[Check], effort: Effort, seed: int) -> list[Verified]:
    """A checklist that fills in, or a line for each check if nobody watches."""
    screen = Screen()
    done: list[Verified] = []
    if not screen.is_terminal:
        for one in verified(wanted, effort, seed):
            done.append(one)
            typer.echo(f"{one.finding.verdict:12} {one.check.name:24} {one.seconds:6.1f} s  {one.finding.text}")
    else:
        with Live(_checklist(wanted, done), console=screen, refresh_per_second=4) as live:
            for one in verified(wanted, effort, seed):
                done.append(one)
                live.update(_checklist(wanted, done))
    counts = {verdict: sum(one.finding.verdict is verdict for one in done) for verdict in Verdict}
    found = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    rate = false_alarm(wanted)
    screen.print(f"{found}; chance of a false alarm: {f'at most {rate:.2g}' if rate else 'none'}")
    return done


def _checklist(wanted: list[Check], done: list[Verified]) -> Table:
    table = Table("", "check", "found", "s", expand=True)
    for one in done:
        table.add_row(MARKS[one.finding.verdict], one.check.name, one.finding.text, f"{one.seconds:.1f}")
    for i, check in enumerate(wanted[len(done) :]):
        table.add_row(Text("..." if i == 0 else "", "bold"), check.name, Text(check.claim, "dim"), "")
    return table


def _list(wanted: list[Check], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([_described(check) for check in wanted], indent=2))
        return
    table = Table("check", "statement", "claim", "rejects", expand=True)
    for check in wanted:
        table.add_row(check.name, check.statement, check.claim, "\n".join(check.rejects), end_section=True)
    Screen().print(table)


def _described(check: Check) -> dict[str, Any]:
    kept = ("name", "statement", "claim", "correction", "exact", "simulated")
    alarm = {"false_alarm": str(check.false_alarm), "false_alarm_rate": check.false_alarm.rate}
    return {name: getattr(check, name) for name in kept} | alarm | {"rejects": list(check.rejects)}


def _plain(one: Verified) -> dict[str, Any]:
    return _described(one.check) | asdict(one.finding) | {"margin": one.finding.margin, "seconds": one.seconds}
