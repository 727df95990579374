"""`amdp results`: the stored runs as one long table."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from amdp.commands.refusals import clear_errors
from amdp.commands.screen import complain
from amdp.errors import InvalidInput
from amdp.experiments import manifest
from amdp.experiments.frame import asked, columns, write_csv, write_parquet
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store


class Format(StrEnum):
    """The format of the file."""

    CSV = "csv"
    PARQUET = "parquet"


def results(
    folder: Annotated[Path, typer.Argument(help="A folder that `amdp compare --out` wrote.")],
    given: Annotated[
        Format | None,
        typer.Option("--format", help="Without it, by the suffix of --out. parquet needs pandas and pyarrow."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet file; without it a CSV is printed.")] = None,
    timings: Annotated[
        bool, typer.Option("--timings", help="Add columns of seconds, which differ from run to run.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON; needs --out.")] = False,
) -> None:
    """Write the runs of a folder as a long table: a row for each run and checkpoint, with cumulative sums.

    The same settings give the same bytes on every machine, except for --timings.

    Example: amdp results results --out results.csv
    """
    with clear_errors():
        form = _form(given, out)
        if out is None and (form is Format.PARQUET or as_json):
            raise InvalidInput("give --out FILE: only a CSV alone is printed")
        store = Store(folder)
        spec = manifest.load(folder)
        if out is None:
            write_csv(spec, store, sys.stdout, timings)
        else:
            written = _write(spec, store, form, out, timings)
        summary = _summary(spec, store)
    for problem in summary["broken"]:
        complain(f"left out: {problem}")
    if as_json:
        typer.echo(json.dumps(summary | {"rows": written, "columns": columns(timings), "file": str(out)}, indent=2))
    else:
        missing = f"; {summary['missing']} missing, {summary['failed']} failed"
        complete = summary["finished"] == summary["runs"]
        complain(f"{summary['finished']} of {summary['runs']} runs{'' if complete else missing}")


def _form(given: Format | None, out: Path | None) -> Format:
    """The format that was asked for, or that of the suffix."""
    if out is None:
        return given or Format.CSV
    ending = out.suffix.lower().removeprefix(".")
    by_suffix = Format(ending) if ending in list(Format) else None
    if given is None and by_suffix is None:
        known = ", ".join(f".{form}" for form in Format)
        raise InvalidInput(f"--out {out}: unknown suffix {out.suffix!r}; known are {known}; or give --format")
    if given and by_suffix and given is not by_suffix:
        raise InvalidInput(f"--format {given} into {out}; give a file that ends in .{given}")
    return given or by_suffix or Format.CSV  # one of the first two is set


def _write(spec: Spec, store: Store, form: Format, out: Path, timings: bool) -> int:
    with _clear(out):
        if form is Format.PARQUET:
            return write_parquet(spec, store, out, timings)
        with out.open("w", encoding="utf-8", newline="") as file:
            return write_csv(spec, store, file, timings)


@contextmanager
def _clear(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be written: {problem.strerror or problem}") from problem


def _summary(spec: Spec, store: Store) -> dict[str, Any]:
    """Numbers of runs that finished, failed or are missing."""
    finals = {run.id: store.final_regret(run.id) for run in asked(spec, store)}
    store.others(finals)
    failed, missing = (sum(final == value for final in finals.values()) for value in (float("inf"), None))
    return {
        "runs": len(finals),
        "finished": len(finals) - failed - missing,
        "failed": failed,
        "missing": missing,
        "broken": list(store.broken.values()),
    }
