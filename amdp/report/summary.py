"""The first thing of a report: every learner in every game in one table, and who is best."""

from collections.abc import Iterator
from enum import StrEnum

from amdp.report.figures import Look
from amdp.report.markup import Table
from amdp.report.results import Contest, Series, StoredRuns
from amdp.report.tables import SHARE, Paired, interval, number, paired, share_of_uniform

LEVEL = 0.05  # p below which a learner counts as worse than the best
COLUMNS = ("game", "learner", "final regret", "verdict", SHARE, "seconds", "oracle calls")
BOLD = [COLUMNS.index(name) for name in ("learner", "final regret", "verdict")]


class Verdict(StrEnum):
    """How a learner stands to the best one of its game that is told the same."""

    BEST = "best"
    TIED = "tied"
    WORSE = "worse"
    UNKNOWN = "too few seeds"
    BASELINE = "baseline"


def summary(results: StoredRuns, look: Look) -> Iterator[Table]:
    """The final regret, the seconds and the oracle calls of all learners in all games; nothing without runs."""
    rows: list[tuple[str, ...]] = []
    best, given = [], set()
    for contest in results.contests:
        found = verdicts(contest, look)
        for series in contest.drawn + ([contest.baseline] if contest.series and contest.baseline else []):
            verdict = found.get(id(series), Verdict.BASELINE)
            best += [len(rows)] if verdict == Verdict.BEST else []
            given.add(verdict)
            rows.append(_row(series, contest, verdict, look))
    if not rows:
        return
    shared = any(contest.baseline for contest in results.contests)
    kept = [place for place, name in enumerate(COLUMNS) if shared or name != SHARE]
    yield Table(
        "summary",
        "Summary",
        tuple(COLUMNS[place] for place in kept),
        tuple(tuple(row[place] for place in kept) for row in rows),
        _notes(results, given, look),
        2,
        frozenset((row, column) for row in best for column in BOLD),
    )


def _row(series: Series, contest: Contest, verdict: Verdict, look: Look) -> tuple[str, ...]:
    regret, share = interval(look.of(series.low[:, -1:])), share_of_uniform(series, contest, look)
    seconds, calls = (float(sums[:, -1].mean()) for sums in (series.seconds, series.oracle_calls))
    return (contest.label, series.name, regret, verdict, share, number(seconds), f"{calls:,.0f}")


def verdicts(contest: Contest, look: Look) -> dict[int, Verdict]:
    """The verdict on each learner, by `id` of its series: the best of those that are told the same, tied, or worse."""
    found: dict[int, Verdict] = {}
    for told in dict.fromkeys(series.feedback for series in contest.drawn):
        rivals = [series for series in contest.drawn if series.feedback == told]
        best = min(rivals, key=lambda series: float(look.of(series.low[:, -1:]).value[0]))
        same = [series for series in rivals if series.plays_as(best)]
        found |= {id(series): Verdict.BEST for series in same}
        others = [series for series in rivals if series not in same]
        tests = paired((series, best) for series in others)
        found |= {id(series): _verdict(test, len(tests)) for series, test in zip(others, tests, strict=True)}
    return found


def _verdict(test: Paired, comparisons: int) -> Verdict:
    """Worse or tied; unknown where even the clearest difference on so few seeds would not be significant."""
    if test.corrected < LEVEL:
        return Verdict.WORSE
    least = 2.0 / 2.0 ** len(test.differences)
    return Verdict.TIED if comparisons * least < LEVEL else Verdict.UNKNOWN


def _notes(results: StoredRuns, found: set[Verdict], look: Look) -> tuple[str, ...]:
    notes = [
        f"Final regret: {look.band.words}. In bold: the least of each game.",
        "Tied: the paired test of the final losses does not tell the learner from the best one at the level "
        f"{LEVEL:g}. It is the sign-flip test on common seeds, corrected by Holm for the comparisons with the best of "
        "the game, not for having chosen it.",
    ]
    if Verdict.UNKNOWN in found:
        notes.append(
            f"{Verdict.UNKNOWN.capitalize()}: with n seeds p is at least 2 / 2^n before it is corrected, so that the "
            "test cannot find this learner worse, whatever the difference."
        )
    told = {series.feedback for contest in results.contests for series in contest.drawn}
    if len(told) > 1:
        notes.append("Learners that are told different things are not compared: each kind has its best.")
    if any(len(contest.drawn) < len(contest.series) for contest in results.contests):
        notes.append("A tuned learner that has theory's settings is listed once, as theory's.")
    notes.append(
        "Seconds of the learner and oracle calls are means of a whole run; seconds are without compiling and loading."
    )
    return tuple(notes)
