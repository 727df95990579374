"""Figures, tables and one HTML page of stored runs: `amdp report`, and `write` from Python.

`results.py` groups the runs, `statistics.py` summarizes seeds, `figures.py` draws (with what figures share in
`drawing.py`), `tables.py` counts, `summary.py` says who is best, `markup.py` and `page.py` write; `rates.py` fits
exponents along ladders of games, and `ladder_figure.py` draws them.

A new figure is a function in `figures.py` and an entry of its `KINDS`; a new table of a game is a function in
`tables.py` that `of_contest` yields; a new statistic of seeds is a `Band`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, count
from pathlib import Path

from amdp.errors import InvalidInput
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from amdp.report.figures import Look, Picture, picture_of_all, pictures_of
from amdp.report.markup import Table, comma_separated, latex, markdown
from amdp.report.page import Chapter, Front, compose
from amdp.report.results import Contest, StoredRuns
from amdp.report.statistics import MeanBand, MedianBand
from amdp.report.summary import summary
from amdp.report.tables import choices, every_curve, every_run, gaps, of_contest, settings, tries
from amdp.text import encoded

__all__ = ["Look", "MeanBand", "MedianBand", "StoredRuns", "Written", "write", "write_runs"]

FRAME_HEIGHT = "45em"  # of the page in a notebook, which scrolls
MAX_FILE_LABEL = 60  # letters of a label in the name of a file


@dataclass(frozen=True, repr=False)
class Written:
    """The files of a report; in a notebook it shows the page itself."""

    page: Path
    figures: list[Path]
    tables: list[Path]

    def __repr__(self) -> str:
        return f"{self.page}: {len(self.figures)} figure files, {len(self.tables)} table files"

    def _repr_html_(self) -> str:
        """The page in a frame, where its style stays its own."""
        page = escape(self.page.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: {FRAME_HEIGHT}; border: 0"></iframe>'


def write(spec: Spec, store: Store, folder: str | Path, look: Look | None = None) -> Written:
    """Write the report of the stored runs of a spec; the same runs give the same bytes."""
    return write_runs(StoredRuns.gather(spec, store), folder, look)


def write_runs(results: StoredRuns, folder: str | Path, look: Look | None = None) -> Written:
    """Write FOLDER/index.html, with figures and tables as files beside it."""
    look, folder = look or Look(), Path(folder)
    try:
        return _write(results, folder, look)
    except OSError as problem:
        raise InvalidInput(f"{folder} cannot be written: {problem.strerror or problem}") from problem


def _write(results: StoredRuns, folder: Path, look: Look) -> Written:
    for room in ("figures", "tables"):
        (folder / room).mkdir(parents=True, exist_ok=True)
    figures: list[Path] = []
    tables: list[Path] = []
    front = Front(list(summary(results, look)), list(picture_of_all(results.contests, look)))
    figures += [file for picture in front.pictures for file in _save_picture(picture, folder / "figures")]
    chapters = []
    for name, contest in zip(_file_names(results.contests), results.contests, strict=True):
        pictures = list(pictures_of(contest, look))
        of_game = list(of_contest(contest, look))
        chapters.append(Chapter(contest, pictures, of_game))
        figures += [file for picture in pictures for file in _save_picture(picture, folder / "figures", f"{name}-")]
        tables += [file for table in of_game for file in _save_table(table, folder / "tables", f"{name}-")]
    for table in (*front.tables, settings(results), *choices(results), *tries(results), *gaps(results)):
        tables += _save_table(table, folder / "tables")
    for table in (every_run(results), every_curve(results, look)):
        tables.append(_save(folder / "tables" / f"{table.name}.csv", encoded(comma_separated(table))))
    page = compose(results, front, chapters, look)
    return Written(_save(folder / "index.html", encoded(page)), figures, tables)


def _file_names(contests: Sequence[Contest]) -> list[str]:
    """File names for the games: plain letters, no name twice."""
    names: list[str] = []
    for contest in contests:
        plain = re.sub(r"[^a-z0-9]+", "-", contest.label.lower()).strip("-")[:MAX_FILE_LABEL].strip("-") or "game"
        free = (name for name in chain([plain], (f"{plain}-{i}" for i in count(2))) if name not in names)
        names.append(next(free))
    return names


def _save_picture(picture: Picture, folder: Path, prefix: str = "") -> list[Path]:
    return [_save(folder / f"{prefix}{picture.name}.{ending}", content) for ending, content in picture.files.items()]


def _save_table(table: Table, folder: Path, prefix: str = "") -> list[Path]:
    written = {"md": markdown(table), "tex": latex(table)}
    return [_save(folder / f"{prefix}{table.name}.{ending}", encoded(text)) for ending, text in written.items()]


def _save(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file
