"""`amdp compare`: all runs of a spec, as many at a time as there are workers; stopped and called again, it goes on."""

import json
import shlex
import sys
from math import inf, isfinite, nan
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

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
    workers: Annotated[int | None, typer.Option(help="Processes, one thread each; as many as cores.")] = None,
    dask: Annotated[str | None, typer.Option(help="Instead: the address of a running Dask scheduler.")] = None,
    shard: Annotated[str, typer.Option(help="i/n: only every n-th run, from the i-th on. For arrays of jobs.")] = "1/1",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Play again what failed before.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no tables and figures at the end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing while it runs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON instead of a table.")] = False,
) -> None:
    """Play every learner of a spec in every game with every seed, and compare their regret.

    Finished runs are kept whatever happens; the same command goes on where it stopped. Several may share a folder.
    The exit code is 0 if all is well, 1 for an error in what was asked for or on the disk, 3 if some runs failed, and
    130 after Ctrl-C.

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
    """The page, once all runs are there; what is in its way is said, and the runs are kept."""
    if not outcome.complete or not all(store.file(one.id).exists() for one in asked(spec, store)):
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
        "runs": len({one.id for one in planned}),
        **vars(outcome),
        "report": str(page) if page else None,
        "regret": [_row(key, finals) for key, finals in _finals(planned, store).items()],
    }


def _finals(planned: list[Planned], store: Store) -> dict[tuple[str, str, Role], list[float]]:
    """The last regret of each finished run, by game, learner and role."""
    found: dict[tuple[str, str, Role], list[float]] = {}
    for one in planned:
        regret = store.final_regret(one.id) if one.role is not Role.TUNING else None
        if regret is not None and regret < inf:
            found.setdefault((one.game, one.learner, one.role), []).append(regret)
    return found


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
    headings = ("game", "learner", "tuned by", "runs", "final regret, mean and 95 % interval")
    table = Table(*headings, title=summary["title"])
    for row in summary["regret"]:
        ends = Estimate(*(np.array(nan if row[key] is None else row[key]) for key in ("mean", "low", "high")))
        cells = (row["game"], row["learner"], TUNED_BY[row["role"]], str(row["runs"]), interval(ends))
        table.add_row(*cells)
    screen = Screen()
    screen.print(table)
    if summary["report"]:
        screen.say(f"report: {summary['report']}")


def _advise(outcome: Outcome, shard: Shard) -> None:
    """What to do next, where something is left."""
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
    given = [word for word in sys.argv[1:] if word not in more]
    return shlex.join(["amdp", *given, *more])
