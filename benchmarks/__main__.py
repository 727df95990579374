"""`python -m benchmarks SUITE|all [--only NAME ...] [--quick] [--json FILE] [--page FILE] [--figure FILE]`."""

import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from time import perf_counter
from types import ModuleType

from rich.console import Console

from amdp.text import suggestion
from benchmarks import suites
from benchmarks.page import require_places
from benchmarks.results import Fuzz, Row, as_json, show
from benchmarks.speed_page import SPEED, put_suite
from benchmarks.timing import Effort, one_thread

Cases = dict[str, Callable[[Effort], Iterator[Row]]]
WIDTH = 190
FORMATS = (".svg", ".pdf", ".png")  # of figures
ALL = "all"
PEERS = {"quantecon": "quantecon", "mdptoolbox": "pymdptoolbox", "cvxpy": "cvxpy", "pulp": "pulp"}  # and their packages


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a suite, or all, print the tables, and write them; 1 if an answer was wrong."""
    one_thread()
    asked = _parse(arguments)
    if asked.suite == ALL:
        failed = [_in_a_process(suite, asked) != 0 for suite in _names()]
        return int(any(failed))
    return int(_is_wrong(asked.suite, asked))


def _in_a_process(suite: str, asked: Namespace) -> int:
    """Run one suite in a process of its own: the memory that others took is not counted as its."""
    page = ["--page", str(asked.page)] if asked.page else []
    quick = ["--quick"] if asked.quick else []
    return subprocess.run([sys.executable, "-m", "benchmarks", suite, *page, *quick], check=False).returncode


def _is_wrong(suite: str, asked: Namespace) -> bool:
    """Run one suite; whether an answer was wrong."""
    module = _suite(suite)
    effort = Effort.quick() if asked.quick else Effort.full()
    began = perf_counter()
    rows = run(module.CASES, asked.only or usual(module), effort)
    seconds = perf_counter() - began
    title = f"amdp {suite}, {seconds:.0f} s"
    show(f"{title}: a quick look, not figures" if asked.quick else title, rows, _console())
    if asked.json:
        asked.json.write_text(json.dumps(as_json(suite, rows), indent=1) + "\n")
    if asked.figure:
        from benchmarks.speed_figure import draw  # imports numpy, which must not be there before `one_thread`

        draw(rows, asked.figure)
    if asked.page:
        only, quick = f" --only {' '.join(asked.only)}" if asked.only else "", " --quick" if asked.quick else ""
        command = f"python -m benchmarks {suite}{only}{quick}"
        put_suite(asked.page, _place(suite, asked), rows, command, seconds)
    return any(isinstance(row, Fuzz) and not row.met for row in rows)


def _place(suite: str, asked: Namespace) -> str:
    """The name of the place of a table: cases that were asked for by name have a place of their own."""
    return " ".join([suite, *asked.only])


def _names() -> list[str]:
    return sorted(found.name for found in iter_modules(suites.__path__))


def _suite(name: str) -> ModuleType:
    return import_module(f"{suites.__name__}.{name}")


def usual(module: ModuleType) -> list[str]:
    """The cases of a suite but those that take long and have figures on other pages: these are run by name only."""
    return [name for name in module.CASES if name not in getattr(module, "BY_NAME_ONLY", ())]


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
    """The arguments; what is wrong with them is said before anything is measured."""
    parser = _Parser(
        prog="python -m benchmarks",
        description="amdp and its peers, timed side by side. `all` also writes docs/speed.md and the README's table.",
    )
    parser.add_argument("suite", metavar="SUITE", help="a suite, or all")
    parser.add_argument("--only", nargs="+", default=[], metavar="CASE", help="run these cases of the suite")
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that everything runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows and the machine's facts")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables in their places on this page")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the ratios of the rows")
    asked = parser.parse_args(arguments)
    if asked.suite not in (*_names(), ALL):
        hint = suggestion(asked.suite, [*_names(), ALL])
        parser.error(f"no suite {asked.suite!r}; {hint}".rstrip("; "))
    if asked.suite == ALL:
        _complete(asked, parser)
    else:
        _require_cases(asked, parser)
    for file in (asked.json, asked.page, asked.figure):
        if file and not file.parent.is_dir():
            parser.error(f"{file}: there is no folder {file.parent}")
    if asked.figure and asked.figure.suffix not in FORMATS:
        parser.error(f"{asked.figure}: a figure is one of {', '.join(FORMATS)}")
    if asked.page:
        if not asked.page.is_file():
            parser.error(f"{asked.page}: there is no such page")
        places = _names() if asked.suite == ALL else [_place(asked.suite, asked)]
        require_places(asked.page, places)
    return asked


def _complete(asked: Namespace, parser: ArgumentParser) -> None:
    """All suites need all peers, and a page for their figures."""
    if asked.only or asked.json or asked.figure:
        parser.error("--only, --json and --figure are for one suite")
    missing = [package for module, package in PEERS.items() if find_spec(module) is None]
    if missing:
        parser.error(f"{', '.join(missing)} is not installed: pip install '.[bench]'")
    if asked.page is None and not asked.quick:
        asked.page = SPEED


def _require_cases(asked: Namespace, parser: ArgumentParser) -> None:
    cases = list(_suite(asked.suite).CASES)
    for name in asked.only:
        if name not in cases:
            parser.error(f"no case {name} in {asked.suite}; cases: {', '.join(cases)}")


class _Parser(ArgumentParser):
    """Its help lists all suites, which are imported for that alone."""

    def format_help(self) -> str:
        return "\n".join([super().format_help(), "suites and their cases:", *map(_described, _names()), ""])


def _described(name: str) -> str:
    """What a suite is about, and its cases."""
    module = _suite(name)
    apart = [f"{case} (by name only)" for case in getattr(module, "BY_NAME_ONLY", ())]
    about = (module.__doc__ or "").split("\n")[0]
    return f"  {name}: {about}\n    {', '.join([*usual(module), *apart])}"


if __name__ == "__main__":
    raise SystemExit(main())
