"""The report as one HTML page, without network and scripts."""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from amdp.report.figures import Look, Picture
from amdp.report.markup import Table, comma_separated
from amdp.report.results import Contest, StoredRuns
from amdp.report.tables import choices, every_curve, every_run, final, gaps, settings, tries, words_of
from amdp.text import encoded

STYLE = Path(__file__).with_name("page.css")

PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<link rel="icon" href="data:,">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<header>
<h1>$title</h1>
<p>$summary</p>
$notice</header>
<nav aria-label="Contents">
<h2>Contents</h2>
<ul>
$contents
</ul>
</nav>
<main>
$sections
</main>
</body>
</html>
""")


@dataclass(frozen=True, eq=False)
class Front:
    """What all games have in common: who is best, and the curves of all games; empty without a finished run."""

    tables: list[Table]
    pictures: list[Picture]


@dataclass(frozen=True, eq=False)
class Chapter:
    """A game, its figures and its tables."""

    contest: Contest
    pictures: list[Picture]
    tables: list[Table]


@dataclass(frozen=True)
class _Section:
    id: str
    title: str
    body: str

    @property
    def html(self) -> str:
        return f'<section id="{self.id}">\n<h2>{escape(self.title)}</h2>\n{self.body}\n</section>'

    @property
    def link(self) -> str:
        return f'<li><a href="#{self.id}">{escape(self.title)}</a></li>'


def compose(results: StoredRuns, front: Front, chapters: list[Chapter], look: Look) -> str:
    """The HTML of the page: the summary, the games, how to read them, and where it all comes from."""
    sections = list(_sections(results, front, chapters, look))
    return PAGE.substitute(
        title=escape(results.spec.title or "Comparison"),
        style=STYLE.read_text(encoding="utf-8"),
        summary=escape(_summary(results)),
        notice=_notice(results),
        contents="\n".join(section.link for section in sections),
        sections="\n".join(section.html for section in sections),
    )


def overview(results: StoredRuns, look: Look) -> str:
    """What a notebook shows of a comparison: its runs in words, and the final regret in each game."""
    tables = {contest.label: final(contest, look) for contest in results.contests if contest.series}
    games = (f"<h4>{escape(label)}</h4>{_table(table, heading=False, note=False)}" for label, table in tables.items())
    title = f"<p><strong>{escape(results.spec.title)}</strong>: {escape(_summary(results))}</p>"
    return f"{title}{''.join(games)}{_note(_once(tables.values()))}"


def progress(results: StoredRuns) -> str:
    """The numbers of finished, failed and missing runs, in words."""
    finished, *others = results.counts.items()
    text = f"{finished[1]} of {results.asked} runs" + "".join(f"; {number} {word}" for word, number in others if number)
    if results.waiting:
        text += "; the runs with tuned settings follow when tuning is finished"
    return text


def _summary(results: StoredRuns) -> str:
    games = [contest.label for contest in results.contests]
    learners = {series.learner for contest in results.contests for series in contest.series}
    return f"{_count(len(games), 'game')}, {_count(len(learners), 'learner')}; {progress(results)}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _notice(results: StoredRuns) -> str:
    """What a reader should know first: runs that are not there, and choices of the tuning that are doubtful."""
    notices = []
    if results.failed or results.missing or results.waiting or results.broken:
        what = 'What follows is made of the finished runs; the <a href="#gaps">gaps</a> are listed.'
        notices.append(f"<strong>Not complete.</strong> {what}")
    doubtful = sum(any(tuning.warnings) for tuning in results.tunings.values())
    if doubtful:
        what = (
            f'of {len(results.tunings)} choices of the tuning have warnings: see <a href="#choices">what it chose</a>.'
        )
        notices.append(f"<strong>Tuning.</strong> {doubtful} {what}")
    return "".join(f'<p class="notice" role="note">{notice}</p>\n' for notice in notices)


def _sections(results: StoredRuns, front: Front, chapters: list[Chapter], look: Look) -> Iterator[_Section]:
    if front.tables:
        yield _Section("summary", "Summary", _front(front))
    for place, chapter in enumerate(chapters, 1):
        yield _Section(f"game-{place}", f"Game: {chapter.contest.label}", _chapter(chapter))
    if front.tables:
        yield _Section("reading", "How to read the figures and tables", _reading(chapters, look))
    yield _alone(settings(results))
    for table in (*choices(results), *tries(results)):
        yield _alone(table)
    gaps_found = "\n".join(map(_table, gaps(results)))
    yield _Section("gaps", "Gaps", gaps_found or "<p>Every run that was asked for is shown.</p>")
    yield _Section("data", "Data", _downloads([every_run(results), every_curve(results, look)]))
    yield _Section("origin", "Versions", _origin(results))
    yield _Section("spec", "Spec", f"<pre tabindex='0'>{escape(results.spec.text)}</pre>")


def _alone(table: Table) -> _Section:
    return _Section(table.name, table.title, _table(table, heading=False))


def _front(front: Front) -> str:
    tables = (_table(table, heading=False) for table in front.tables)
    pictures = (_picture(picture, picture.caption) for picture in front.pictures)
    hint = '<p class="hint">Tables scroll sideways: a shadow at an edge says that there are more columns.</p>'
    more = '<p><a href="#reading">How to read the figures and tables</a> of the games is said once, below them.</p>'
    return "\n".join([hint, *tables, *pictures, more])


def _chapter(chapter: Chapter) -> str:
    """A game; what its figures and tables have in common with those of other games is said in `_reading`."""
    parts = [_facts(words_of(chapter.contest.settings))]
    if not chapter.contest.series:
        parts.append("<p>No run of this game is finished.</p>")
    tables = [_table(table, note=False) for table in chapter.tables]
    alike = [", ".join(series.name for series in group) for group in chapter.contest.alike if len(group) > 1]
    parts += [f"<p>Played alike with every seed: {escape(names)}.</p>" for names in alike]
    parts += tables[:1]
    parts.append('<div class="figures">')
    parts += map(_picture, chapter.pictures)
    parts.append("</div>")
    return "\n".join(parts + tables[1:])


def _reading(chapters: list[Chapter], look: Look) -> str:
    """The captions of all figures and the notes of all tables of games, once each."""
    shared = (
        f"{look.band.words.capitalize()}.",
        "Of learners that played alike, the first has a wide line and the next a narrow one with gaps over it.",
        "Axes with powers of ten are logarithmic; where some value is zero or below, they are linear about zero, and "
        "their label says up to where.",
    )
    pictures = {picture.title: picture.caption for chapter in chapters for picture in chapter.pictures}
    tables: dict[str, list[Table]] = {}
    for table in (table for chapter in chapters for table in chapter.tables):
        tables.setdefault(table.name, []).append(table)
    figures = [("All figures", " ".join(shared)), *pictures.items()]
    noted = [(named[0].title, _once(named)) for named in tables.values()]
    return f"<h3>Figures</h3>\n{_explained(figures)}\n<h3>Tables</h3>\n{_explained(noted)}"


def _explained(entries: Iterable[tuple[str, str]]) -> str:
    items = (f"<li><strong>{escape(title)}.</strong> {escape(text)}</li>" for title, text in entries if text)
    return "<ul>\n" + "\n".join(items) + "\n</ul>"


def _once(tables: Iterable[Table]) -> str:
    """The notes of some tables, without those that an earlier one has."""
    return " ".join(dict.fromkeys(note for table in tables for note in table.notes))


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>\n' if text else ""


def _picture(picture: Picture, caption: str = "") -> str:
    source = _uri("image/svg+xml", picture.svg)
    title = f"<strong>{escape(picture.title)}.</strong> {escape(caption)}".strip()
    return f'<figure>\n<img src="{source}" alt="{escape(picture.words)}">\n<figcaption>{title}</figcaption>\n</figure>'


def _table(table: Table, heading: bool = True, note: bool = True) -> str:
    head = "".join(
        f'<th scope="col"{_aligned(place, table.texts)}>{escape(name)}</th>' for place, name in enumerate(table.columns)
    )
    rows = "\n".join(_row(table, place) for place in range(len(table.rows)))
    title = f"<h3>{escape(table.title)}</h3>\n" if heading else ""
    return (
        f'{title}<div class="wide" tabindex="0" role="region" aria-label="{escape(table.title)}">\n'
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>\n"
        f"{_note(table.note) if note else ''}<p>{_download(table)}</p>"
    )


def _row(table: Table, row: int) -> str:
    first, *others = (
        f"<strong>{escape(cell)}</strong>" if (row, column) in table.strong else escape(cell)
        for column, cell in enumerate(table.rows[row])
    )
    cells = [f'<th scope="row">{first}</th>']
    cells += [f"<td{_aligned(place, table.texts)}>{cell}</td>" for place, cell in enumerate(others, 1)]
    return f"<tr>{''.join(cells)}</tr>"


def _aligned(place: int, texts: int) -> str:
    return "" if place < texts else ' class="number"'


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return "<dl>\n" + "\n".join(f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in facts) + "\n</dl>"


def _downloads(tables: list[Table]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{escape(table.title)}: {_download(table)}</li>" for table in tables) + "\n</ul>"


def _download(table: Table) -> str:
    source = _uri("text/csv;charset=utf-8", encoded(comma_separated(table)))
    return f'<a download="{table.name}.csv" href="{source}">{table.name}.csv</a>'


def _origin(results: StoredRuns) -> str:
    """The versions that the runs were played with, and how many runs each set of versions has."""
    made: dict[tuple[tuple[str, str], ...], int] = {}
    for record in {record.id: record for _, record in results.finished}.values():
        versions = dict(record.made.get("versions", {}))
        origin = {"python": record.made.get("python"), "git": record.made.get("git"), **versions}
        key = tuple((name, str(version)) for name, version in sorted(origin.items()) if version)
        made[key] = made.get(key, 0) + 1
    shown = [f"<h3>{_count(runs, 'run')}</h3>\n{_facts(key)}" for key, runs in sorted(made.items())]
    if results.unasked:
        shown.append(f"<p>{_count(results.unasked, 'stored run')} of another spec not shown.</p>")
    return "\n".join(shown) or "<p>No run is finished.</p>"


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"
