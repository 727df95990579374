"""`python -m benchmarks SUITE|all [--only NAME ...] [--quick] [--json FILE] [--page FILE]`."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from rich.console import Console

from benchmarks import suites
from benchmarks.page import put, require_places, suite_figures
from benchmarks.results import Fuzz, Row, as_json, show
from benchmarks.timing import Effort, one_thread

Cases = dict[str, Callable[[Effort], Iterator[Row]]]
WIDTH = 190
ALL = "all"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a suite, or all, print the tables, and write them if asked; 1 if an answer was wrong."""
    asked = _parse(arguments)
    one_thread()
    if asked.suite == ALL and (asked.only or asked.json):
        raise SystemExit("--only and --json are for one suite")
    names = _names() if asked.suite == ALL else [asked.suite]
    if asked.page:
        require_places(asked.page, names)
    wrong = [_is_wrong(suite, asked) for suite in names]
    return int(any(wrong))


def _is_wrong(suite: str, asked: Namespace) -> bool:
    """Run one suite; whether an answer was wrong."""
    cases: Cases = import_module(f"{suites.__name__}.{suite}").CASES
    unknown = set(asked.only) - set(cases)
    if unknown:
        raise SystemExit(f"no case {', '.join(sorted(unknown))} in {suite}; cases: {', '.join(cases)}")
    effort = Effort.quick() if asked.quick else Effort.full()
    rows = run(cases, asked.only or list(cases), effort)
    title = f"amdp {suite}"
    show(f"{title}: a quick look, not figures" if asked.quick else title, rows, _console())
    if asked.json:
        asked.json.write_text(json.dumps(as_json(suite, rows), indent=1) + "\n")
    if asked.page:
        command = f"python -m benchmarks {suite}" + (f" --only {' '.join(asked.only)}" if asked.only else "")
        put(asked.page, suite, suite_figures(rows, command))
    return any(isinstance(row, Fuzz) and not row.met for row in rows)


def _names() -> list[str]:
    return sorted(found.name for found in iter_modules(suites.__path__))


def run(cases: Cases, names: Sequence[str], effort: Effort) -> list[Row]:
    """The rows of the named cases, in turn."""
    rows: list[Row] = []
    with Console(stderr=True).status("") as status:
        for name in names:
            status.update(name)
            rows.extend(cases[name](effort))
    return rows


def _console() -> Console:
    """The terminal; a file or a pipe gets lines wide enough for one row each."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def _parse(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks", description="amdp and its peers, timed side by side.")
    parser.add_argument("suite", choices=[*_names(), ALL])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="run these cases of the suite")
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that everything runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows and the machine's facts")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables in their places on this page")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
