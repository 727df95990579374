"""`amdp results`: the stored runs as one long table."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from amdp.commands.screen import clear_errors, complain, print_json
from amdp.errors import InvalidInput
from amdp.experiments import manifest
from amdp.experiments.frame import Layout, write_csv, write_parquet
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from amdp.report import StoredRuns
from amdp.report.page import progress


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
    out: Annotated[
        Path | None,
        typer.Option(help="A .csv or .parquet file; without it a CSV is printed, parquet goes to NAME.parquet here."),
    ] = None,
    tries: Annotated[bool, typer.Option("--tries", help="Add the runs that chose multipliers, role `tuning`.")] = False,
    timings: Annotated[
        bool, typer.Option("--timings", help="Add columns of seconds, which differ from run to run.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON; needs --out.")] = False,
) -> None:
    """Write the runs of a folder as a long table: a row for each run and checkpoint, with cumulative sums.

    Every setting is a column, with its default where the spec does not give it. The same settings give the same bytes
    on every machine, except for --timings.

    Example: amdp results results --out results.csv
    """
    with clear_errors():
        form = _form(given, out)
        if out is None and form is Format.PARQUET:  # no text: it is never printed
            out = Path(f"{folder.resolve().name}.parquet")
        if out is None and as_json:
            raise InvalidInput("give --out FILE: only a CSV alone is printed")
        store = Store(folder)
        spec = manifest.load(folder)
        if out is None:
            write_csv(spec, store, sys.stdout, timings, tries)
        else:
            written = _write(spec, store, form, out, timings, tries)
            columns = Layout.of(spec, store, timings, tries).columns
        runs = StoredRuns.gather(spec, store)
    broken = list(store.broken.values())
    for problem in broken:
        complain(f"left out: {problem}")
    if as_json:
        content = {"rows": written, "columns": columns, "file": str(out)}
        print_json({"runs": runs.asked, **runs.counts, "broken": broken} | content)
    else:
        complain(progress(runs) + (f"; wrote {out}" if out else ""))


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


def _write(spec: Spec, store: Store, form: Format, out: Path, timings: bool, tries: bool) -> int:
    try:
        if form is Format.PARQUET:
            return write_parquet(spec, store, out, timings, tries)
        with out.open("w", encoding="utf-8", newline="") as file:
            return write_csv(spec, store, file, timings, tries)
    except OSError as problem:
        raise InvalidInput(f"{out} cannot be written: {problem.strerror or problem}") from problem
