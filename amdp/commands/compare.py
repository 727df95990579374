"""`amdp compare`: plays all runs of a spec in parallel; called again, it plays those that are missing."""

import shlex
import sys
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from amdp.commands.screen import INTERRUPTED, Screen, Workers, clear_errors, complain, interruptible, leave, print_json
from amdp.errors import AmdpError, InvalidInput
from amdp.experiments import manifest
from amdp.experiments.engines import DaskCluster, Engine, LocalPool
from amdp.experiments.progress import watcher
from amdp.experiments.runner import Outcome, Shard, run
from amdp.experiments.spec import Role, Spec
from amdp.experiments.storage import Store
from amdp.report import StoredRuns, write_runs
from amdp.report.results import Contest, Series
from amdp.report.tables import NONE, SHARE, interval, mean_of


def compare(
    spec: Annotated[Path, typer.Argument(help="A .toml file: games, learners, seeds. `amdp new` writes one.")],
    out: Annotated[Path, typer.Option(help="The folder for the runs. Runs that are there already are not repeated.")],
    workers: Workers = None,
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
        runs = StoredRuns.gather(wanted, store)
        page = None if no_report or not outcome.complete else _report(runs, out)
    series = [(contest, series) for contest in runs.contests for series in contest.shown]
    if as_json:
        counts = {"title": wanted.title, "folder": str(out), "runs": runs.asked, **vars(outcome)}
        print_json({**counts, "report": str(page) if page else None, "regret": [_row(*each) for each in series]})
    else:
        _show(wanted, series, page)
    _advise(outcome, Shard.parse(shard))
    leave(interrupted=outcome.interrupted, failed=bool(outcome.failed))


def _engine(workers: int | None, dask: str | None) -> Engine:
    if workers is not None and dask is not None:
        raise InvalidInput("--workers are processes of this machine; a Dask cluster has its own")
    return LocalPool(workers) if dask is None else DaskCluster(dask)


def _report(runs: StoredRuns, folder: Path) -> Path | None:
    """Write the report if all runs are there; an error in it is printed, and the runs are kept."""
    if runs.missing or runs.waiting:
        return None
    try:
        return write_runs(runs, folder / "report").page
    except AmdpError as problem:
        complain(f"no report: {problem}")
        return None
    except KeyboardInterrupt as stopped:
        complain(f"all runs are there; {shlex.join(['amdp', 'report', str(folder)])} writes the page")
        raise typer.Exit(INTERRUPTED) from stopped


def _row(contest: Contest, series: Series) -> dict[str, Any]:
    ends = (float(part[0]) for part in mean_of(series.final))
    regret = zip(("mean", "low", "high"), (value if isfinite(value) else None for value in ends), strict=True)
    which = {"game": series.game, "learner": series.learner, "role": str(series.role)}
    shares = contest.shares(series)
    share = {SHARE.replace(" ", "_"): float(shares.mean())} if len(shares) else {}
    return {**which, "runs": len(series.seeds), **dict(regret), **share}


def _show(spec: Spec, runs: list[tuple[Contest, Series]], page: Path | None) -> None:
    regret = Column("final regret,\nmean [95 % interval]", no_wrap=True)
    share = [SHARE.replace(" of ", " of\n")] if any(contest.baseline for contest, _ in runs) else []
    who = (Column(name, overflow="fold") for name in ("game", "learner"))  # a name is never cut
    table = Table(*who, "tuned by", "runs", regret, *share, title=spec.title)
    for contest, series in runs:
        shares = contest.shares(series)
        part = [f"{shares.mean():.2f}" if len(shares) else NONE] if share else []
        ends = (str(len(series.seeds)), interval(mean_of(series.final)), *part)
        table.add_row(series.game, series.learner, _tuned_by(spec, series), *ends)
    screen = Screen()
    screen.print(table)
    if page:
        screen.say(f"report: {page}")


def _tuned_by(spec: Spec, series: Series) -> str:
    if series.role is not Role.THEORY:
        return "baseline" if series.role is Role.BASELINE else "grid"
    return "itself" if series.learner in spec.self_tuned else "theory"


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
