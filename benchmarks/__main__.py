"""`python -m benchmarks SUITE [--only NAME ...] [--quick] [--json FILE]`."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from rich.console import Console

from benchmarks import suites
from benchmarks.results import Fuzz, Row, as_json, show
from benchmarks.timing import Effort, one_thread

Cases = dict[str, Callable[[Effort], Iterator[Row]]]
WIDTH = 190


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a suite, print its table, and write it if asked; 1 if an answer was wrong."""
    asked = _parse(arguments)
    one_thread()
    cases: Cases = import_module(f"{suites.__name__}.{asked.suite}").CASES
    unknown = set(asked.only) - set(cases)
    if unknown:
        raise SystemExit(f"no case {', '.join(sorted(unknown))} in {asked.suite}; cases: {', '.join(cases)}")
    effort = Effort.quick() if asked.quick else Effort.full()
    rows = run(cases, asked.only or list(cases), effort)
    title = f"amdp {asked.suite}"
    show(f"{title}: a quick look, not figures" if asked.quick else title, rows, _console())
    if asked.json:
        asked.json.write_text(json.dumps(as_json(asked.suite, rows), indent=1) + "\n")
    return int(any(isinstance(row, Fuzz) and not row.met for row in rows))


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
    parser.add_argument("suite", choices=sorted(found.name for found in iter_modules(suites.__path__)))
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="run these cases of the suite")
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that everything runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows and the machine's facts")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
