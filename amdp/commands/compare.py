"""`amdp compare`: plays all runs of a spec in parallel; called again, it plays those that are missing."""

import json
import shlex
import sys
from math import inf, isfinite, nan
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Column, Table

from amdp.commands.refusals import INTERRUPTED, clear_errors, interruptible
from amdp.commands.screen import Screen, complain
from amdp.errors import AmdpError, InvalidInput
from amdp.experiments import manifest
from amdp.experiments.engines import DaskCluster, Engine, LocalPool
from amdp.experiments.frame import asked
from amdp.experiments.progress import watcher
from amdp.experiments.runner import Outcome, Shard, run
from amdp.experiments.spec import Planned, Role, Spec
from amdp.experiments.storage import Store
from amdp.report import write
from amdp.report.statistics import Estimate
from amdp.report.tables import interval, mean_of

SOME_FAILED = 3  # the exit code
TUNED_BY = {Role.THEORY: "theory", Role.TUNED: "grid"}


def compare(
    spec: Annotated[Path, typer.Argument(help="A .toml file: games, learners, seeds. `amdp new` writes one.")],
    out: Annotated[Path, typer.Option(help="The folder for the runs. Runs that are there already are not repeated.")],
    workers: Annotated[
        int | None, typer.Option(help="Number of processes, one thread each; without it, one for each core.")
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Instead of processes: the address of a Dask scheduler.")] = None,
    shard: Annotated[str, typer.Option(help="i/n: play the i-th of n parts of the runs, for arrays of jobs.")] = "1/1",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Play runs again that failed before.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no tables and figures at the end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON instead of a table.")] = False,
) -> None:
    """Play every learner of a spec in every game with every seed, and compare their regret.

    Finished runs are kept; the same command plays those that are missing. Several commands may share a folder.

    Exit codes: 0 all runs finished, 1 an error of the spec or the disk, 3 some runs failed, 130 after Ctrl-C.

    Example: amdp compare spec.toml --out results --workers 8
    """
    with clear_errors(), Store(out) as store:
        with interruptible() as stop:
            wanted = Spec.load(spec, manifest.origin(spec))
            shown = watcher(Screen(stderr=True), quiet)
            outcome = run(wanted, store, _engine(workers, dask), shown, Shard.parse(shard), retry_failed, stop)
        page = None if no_report else _report(wanted, store, outcome)
        summary = _summary(wanted, store, outcome, page)
    if as_json:
        typer.echo(json.dumps(summary, indent=2, allow_nan=False))
    else:
        _show(summary)
    _advise(outcome, Shard.parse(shard))
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    if outcome.failed:
        raise typer.Exit(SOME_FAILED)


def _engine(workers: int | None, dask: str | None) -> Engine:
    if workers is not None and dask is not None:
        raise InvalidInput("--workers are processes of this machine; a Dask cluster has its own")
    return LocalPool(workers) if dask is None else DaskCluster(dask)


def _report(spec: Spec, store: Store, outcome: Outcome) -> Path | None:
    """Write the report if all runs are there; an error in it is printed, and the runs are kept."""
    if not outcome.complete or not all(store.file(planned.id).exists() for planned in asked(spec, store)):
        return None
    try:
        return write(spec, store, store.folder / "report").page
    except AmdpError as problem:
        complain(f"no report: {problem}")
        return None
    except KeyboardInterrupt as stopped:
        complain(f"all runs are there; {shlex.join(['amdp', 'report', str(store.folder)])} writes the page")
        raise typer.Exit(INTERRUPTED) from stopped


def _summary(spec: Spec, store: Store, outcome: Outcome, page: Path | None) -> dict[str, Any]:
    planned = asked(spec, store)
    return {
        "title": spec.title,
        "folder": str(store.folder),
        "runs": len({each.id for each in planned}),
        **vars(outcome),
        "report": str(page) if page else None,
        "regret": [_row(key, finals) for key, finals in _finals(planned, store).items()],
    }


def _finals(planned: list[Planned], store: Store) -> dict[tuple[str, str, Role], list[float]]:
    """The final regret of each finished run, by game, learner and role."""
    finals: dict[tuple[str, str, Role], list[float]] = {}
    for each in planned:
        regret = store.final_regret(each.id) if each.role is not Role.TUNING else None
        if regret is not None and regret < inf:
            finals.setdefault((each.game, each.learner, each.role), []).append(regret)
    return finals


def _row(key: tuple[str, str, Role], finals: list[float]) -> dict[str, Any]:
    ends = (float(part[0]) for part in mean_of(finals))
    mean, low, high = (value if isfinite(value) else None for value in ends)
    game, learner, role = key
    return {
        "game": game,
        "learner": learner,
        "role": str(role),
        "runs": len(finals),
        "mean": mean,
        "low": low,
        "high": high,
    }


def _show(summary: dict[str, Any]) -> None:
    regret = Column("final regret,\nmean [95 % interval]", no_wrap=True)
    table = Table("game", "learner", "tuned by", "runs", regret, title=summary["title"])
    for row in summary["regret"]:
        ends = Estimate(*(np.array(nan if row[key] is None else row[key]) for key in ("mean", "low", "high")))
        cells = (row["game"], row["learner"], TUNED_BY[row["role"]], str(row["runs"]), interval(ends))
        table.add_row(*cells)
    screen = Screen()
    screen.print(table)
    if summary["report"]:
        screen.say(f"report: {summary['report']}")


def _advise(outcome: Outcome, shard: Shard) -> None:
    """Print the command that plays missing or failed runs."""
    if outcome.interrupted:
        complain(f"stopped: {outcome.missing} runs are missing, finished ones are kept. Go on with: {_same_command()}")
    elif outcome.failed:
        complain(f"{len(outcome.failed)} runs failed. Play them again with: {_same_command('--retry-failed')}")
    if outcome.tuning and not outcome.interrupted:
        complain(
            f"{outcome.tuning} tuning runs of other shards than {shard} are missing; the tuned runs follow when all "
            f"shards have ended and each is called again: {_same_command()}"
        )


def _same_command(*more: str) -> str:
    arguments = [word for word in sys.argv[1:] if word not in more]
    return shlex.join(["amdp", *arguments, *more])
