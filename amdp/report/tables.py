"""The tables of a report. A new table of a game is a function that `of_contest` yields."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import combinations
from math import floor, isfinite, isinf, isnan, log10
from typing import Any, NamedTuple

import numpy as np

from amdp.algorithms.named import tunes_itself
from amdp.arrays import Floats
from amdp.experiments.candidates import MULTIPLIER, shown
from amdp.experiments.settings import Named, identity
from amdp.experiments.spec import Planned, Role
from amdp.game.rounds import Timing
from amdp.report.figures import Look, resampling
from amdp.report.markup import Table
from amdp.report.results import Contest, Series, StoredRuns, common_seeds
from amdp.report.statistics import (
    FEWEST_RUNS,
    MAX_EXACT_SIGNS,
    Estimate,
    MeanBand,
    SignTest,
    fitted_exponent,
    holm,
    sign_flips,
)

NONE = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
UNTOLD = "\N{DAGGER}"  # the rate does not know of the delays
MILLISECONDS = 1000.0  # of a second
MAX_DIGITS = 4  # of a number with an interval
TUNED_AS_THEORY = "tuned = theory"  # the same runs
SHARE = "share of uniform"
FEEDBACK = {"bandit": "bandit", "full": "full information", "aggregate": "total loss", None: NONE}
COUNTS = {"oracle_calls": "oracle calls", "trials": "trials", "rebuilds": "rebuilds"}


def of_contest(contest: Contest, look: Look) -> Iterator[Table]:
    """The tables of a game."""
    if not contest.series:
        return
    yield final(contest, look)
    yield from comparisons(contest)
    if any(series.role == Role.TUNED for series in contest.series):
        yield theory_or_tuned(contest, look)
    yield costs(contest, look)


def final(contest: Contest, look: Look) -> Table:
    """The final regret of each learner."""
    open_ended = any(series.open for series in contest.series)
    columns = ("learner", "final regret", SHARE, "at most", "theory allows", "exponent", "runs", "told", "tuned by")
    rows = [_final(series, contest, look) for series in contest.shown]
    notes = [f"Regret: {look.band.words}, against the best fixed policy in hindsight, whose regret is 0."]
    if contest.baseline:
        notes.append(
            f"{SHARE.capitalize()}: the regret divided by that of uniform play with the same seed: 0 for the best "
            "fixed policy, 1 for playing at random. The baseline is not ranked."
        )
    if open_ended:
        notes.append(
            "At most: against what no policy pays less than, where the final regret is against the best policy that "
            "was found."
        )
    notes.append(
        "Exponent: slope of the mean regret over the later half of the checkpoints in logarithms, "
        f"with a {MeanBand().interval}; none below {FEWEST_RUNS} seeds, or where the regret, also of resampled seeds, "
        "is not positive."
    )
    notes.append("Told: the losses of the visited pairs (bandit), their sum (total loss), or all (full information).")
    if any(series.tuned_without_delay for series in contest.series):
        notes.append(f"{UNTOLD}: theory's rate for feedback that comes at once, as the learner has none for delays.")
    dropped = {SHARE: contest.baseline is None, "at most": not open_ended}
    kept = [place for place, name in enumerate(columns) if not dropped.get(name)]
    table = [tuple(row[place] for place in kept) for row in (columns, *rows)]
    return Table("regret", "Regret", table[0], tuple(table[1:]), tuple(notes))


def _final(series: Series, contest: Contest, look: Look) -> tuple[str, ...]:
    regret = look.of(series.low[:, -1:])
    exponent = fitted_exponent(series.played, series.low, MeanBand(), resampling())
    high, bound = float(series.high[:, -1].mean()), float(series.bound[:, -1].mean())
    numbers = (
        interval(regret),
        share_of_uniform(series, contest, look),
        number(high),
        number(bound),
        interval(exponent),
        str(len(series.seeds)),
    )
    mark = f" {UNTOLD}" if series.tuned_without_delay else ""
    return (series.name, *numbers, FEEDBACK[series.feedback], tuning(series, contest) + mark)


def share_of_uniform(series: Series, contest: Contest, look: Look) -> str:
    """The share of uniform play's regret, with its interval."""
    shares = contest.shares(series)
    return interval(look.of(shares[:, None])) if len(shares) else NONE


class Paired(NamedTuple):
    """The test of two learners on their common seeds."""

    differences: Floats  # of the final losses [i]
    test: SignTest
    corrected: float  # p by Holm


def paired(pairs: Iterable[tuple[Series, Series]]) -> list[Paired]:
    """The tests of some pairs of learners, corrected together."""
    differences = [_differences(a, b) for a, b in pairs]
    tests = [sign_flips(each, resampling()) for each in differences]
    adjusted = holm(np.array([test.p for test in tests]))
    return [Paired(*each) for each in zip(differences, tests, map(float, adjusted), strict=True)]


def comparisons(contest: Contest) -> Iterator[Table]:
    """Paired differences of final regret between learners tuned alike, and between the two tunings of a learner."""
    pairs = list(_pairs(contest))
    if not pairs:
        return
    rows = [
        (a.name, b.name, str(len(differences)), interval(mean_of(differences)), _chance(test), f"{corrected:.3g}")
        for (a, b), (differences, test, corrected) in zip(pairs, paired(pairs), strict=True)
    ]
    yield Table(
        "differences",
        "Differences between learners",
        ("learner", "other", "seeds", f"regret {MINUS} regret of other", "p", "p, Holm"),
        tuple(rows),
        (
            "Differences of what was paid with the same seed, so with the same losses: the best policy in hindsight "
            f"cancels. Mean with a {MeanBand().interval}; below zero the first learner is better.",
            f"p: two-sided sign-flip permutation test, exact up to {MAX_EXACT_SIGNS} seeds, above that by random "
            "signs (marked ~). With n seeds p is at least 2 / 2^n.",
            "Holm: corrected for the comparisons of this game, as many as the table has rows.",
            "Learners that are told different things are not compared; pairs of the same runs are listed once.",
        ),
        2,
    )


def _pairs(contest: Contest) -> Iterator[tuple[Series, Series]]:
    """Pairs that are compared: with common seeds and feedback; no pair of runs twice, no run with itself."""
    seen = set()
    for a, b in combinations(contest.series, 2):
        runs = frozenset(
            tuple(series.ids[at] for at in places) for series, places in zip((a, b), common_seeds(a, b), strict=True)
        )
        alike = a.feedback == b.feedback and (a.role == b.role or a.learner == b.learner)
        if alike and len(runs) == 2 and runs not in seen:
            seen.add(runs)
            yield a, b


def _differences(a: Series, b: Series) -> Any:
    """Differences of the final losses `[i]`, by common seed."""
    at_a, at_b = common_seeds(a, b)
    return a.paid[at_a, -1] - b.paid[at_b, -1]


def mean_of(samples: Any) -> Estimate:
    """The mean of numbers `[i]`, with its interval."""
    return MeanBand().of(np.asarray(samples)[:, None], resampling())


def theory_or_tuned(contest: Contest, look: Look) -> Table:
    """The final regret of each learner as theory tunes it and as the grid does."""
    by_role = {(series.learner, series.role): series for series in contest.series}
    rows = []
    for label in dict.fromkeys(series.learner for series in contest.series):
        theory, tuned = by_role.get((label, Role.THEORY)), by_role.get((label, Role.TUNED))
        ends = [interval(look.of(series.low[:, -1:])) if series else NONE for series in (theory, tuned)]
        better = _differences(tuned, theory) if theory and tuned else []
        multiplier = f"{tuned.settings.multiplier:g}" if tuned else NONE
        others = _words(contest.replaced(tuned)) if tuned else ""
        gained = interval(mean_of(better)) if len(better) else NONE
        as_theory = tuned and contest.tuned_as_theory(tuned)
        rows.append((label, *ends, multiplier, others or NONE, TUNED_AS_THEORY if as_theory else gained))
    return Table(
        "tuning",
        "As theory tunes it, and tuned by a grid",
        ("learner", "regret, theory", "regret, tuned", MULTIPLIER, "other settings", f"tuned {MINUS} theory"),
        tuple(rows),
        ("The multiplier of theory's rate, and other settings, were chosen on other seeds than those shown here.",),
    )


def costs(contest: Contest, look: Look) -> Table:
    """Seconds and oracle calls of an episode or step, for each learner."""
    rows = []
    for series in contest.series:
        clock, processor = series.each(series.spent), series.each(series.cpu)
        parts = [number(MILLISECONDS * float(part)) for part in clock.mean(axis=0)]
        counts = [number(float(getattr(series, name)[:, -1].mean() / series.played[-1])) for name in COUNTS]
        total = interval(look.of(MILLISECONDS * clock[:, :3].sum(axis=1, keepdims=True)))
        rows.append(
            (series.name, total, *parts, number(MILLISECONDS * float(processor[:, :3].sum(axis=1).mean())), *counts)
        )
    return Table(
        "costs",
        f"Costs of one {contest.unit}",
        ("learner", "ms", *(f"ms, {part}" for part in Timing._fields), "ms of processor", *COUNTS.values()),
        tuple(rows),
        (
            f"Milliseconds of the clock for one episode, or one step of a stream: {look.band.words}; the learner is "
            "draw, weigh and learn, the arena is apart.",
            "Taken after the first checkpoint, before which code is compiled and loaded.",
        ),
    )


def settings(results: StoredRuns) -> Table:
    """The settings of each learner, and the parameters that its recipe made of them in the first run."""
    rows = [
        (
            series.learner,
            contest.label,
            FEEDBACK[series.feedback],
            tuning(series, contest),
            _listed(words_of(series.settings)),
            _listed((name, value) for name, value in series.records[0].used.items() if name != "told"),
        )
        for contest in results.contests
        for series in contest.shown
    ]
    columns = ("learner", "game", "told", "tuned by", "settings", "made of them")
    return Table("settings", "Settings of the learners", columns, tuple(rows), texts=len(columns))


def _listed(pairs: Iterable[tuple[str, Any]]) -> str:
    shown = ((name, number(value) if isinstance(value, float) else value) for name, value in pairs)
    return ", ".join(f"{name} = {value}" for name, value in shown)


def choices(results: StoredRuns) -> Iterator[Table]:
    """What tuning chose for each learner in each game, of how many tries, and what makes the choice doubtful."""
    if not results.tunings:
        return
    yield Table(
        "choices",
        "What tuning chose",
        ("game", "learner", "chosen", "warnings", "combinations", "tries", "failed"),
        tuple(_choice(pair, results) for pair in results.spec.pairs),
        (
            "A try is one game with one seed, on seeds that are not used otherwise. A learner that tunes its rate "
            "itself, or has none of the settings to try, has no tries.",
            "Multipliers scale the learner's own.",
            "A choice at the edge of its list may be better beyond it; values that did alike in all tries make no "
            "difference there.",
        ),
        4,
    )


def _choice(pair: tuple[str, str], results: StoredRuns) -> tuple[str, ...]:
    tuning = results.tunings.get(pair)
    if tuning is None:
        return (*pair, "not tuned", "", "0", "0", "0")
    chosen = str(tuning.chosen) if tuning.chosen else "not yet"
    counts = (len(tuning.grid), tuning.tries, tuning.failed)
    return (*pair, chosen, "; ".join(tuning.warnings), *map(str, counts))


def tries(results: StoredRuns) -> Iterator[Table]:
    """What the tune block tried, with the final regret."""
    if not results.tuning:
        return
    names = list(dict.fromkeys(name for tuning in results.tunings.values() for name in tuning.grid.names))
    names = names or [MULTIPLIER]
    title = "Multipliers that were tried" if names == [MULTIPLIER] else "Settings that were tried"
    yield Table(
        "tries",
        title,
        ("game", "learner", "chosen", *names, "runs", "rounds", "mean final regret"),
        tuple(_try(series, results, names) for series in results.tuning),
        (
            "On seeds of their own.",
            "Where tries have several lengths, only the best of the shorter ones played the longer.",
        ),
        3,
    )


def _try(series: Series, results: StoredRuns, names: list[str]) -> tuple[str, ...]:
    which, settings = (series.game, series.learner), series.settings
    chosen = "chosen" if (*which, identity(settings)) in results.chosen else ""
    values = {**settings.settings, MULTIPLIER: settings.multiplier}
    tried = (shown(values[name]) if name in values else NONE for name in names)
    return (*which, chosen, *tried, str(len(series.seeds)), f"{series.length:,}", number(float(series.final.mean())))


def gaps(results: StoredRuns) -> Iterator[Table]:
    """Runs that failed, are missing or cannot be played, and damaged files."""
    if results.failed:
        rows = [(*_which(entry), str(entry.settings.seed), why.kind, why.message) for entry, why in results.failed]
        columns = ("game", "learner", "role", "seed", "error", "message")
        yield Table("failures", "Failed runs", columns, tuple(rows), texts=6)
    if results.missing:
        yield Table("missing", "Missing runs", ("game", "learner", "role", "seeds"), tuple(_missing(results)), texts=4)
    if results.spec.skipped:
        why = tuple(map(tuple, results.spec.skipped))
        yield Table("skipped", "Pairs that cannot be played", ("game", "learner", "reason"), why, texts=3)
    if results.broken:
        yield Table("broken", "Damaged files", ("file",), tuple((file,) for file in results.broken))


def _which(entry: Planned) -> tuple[str, str, str]:
    return entry.game, entry.learner, str(entry.role)


def _missing(results: StoredRuns) -> Iterator[tuple[str, ...]]:
    seeds: dict[tuple[str, ...], list[str]] = {}
    for entry in results.missing:
        seeds.setdefault(_which(entry), []).append(str(entry.settings.seed))
    for which, numbers in seeds.items():
        yield *which, ", ".join(numbers)


def every_run(results: StoredRuns) -> Table:
    """The final loss and regret of each run, a row for each of its roles."""
    which = ("id", "game", "learner", "role", "multiplier", "settings", "seed")
    columns = (*which, "rounds", "paid", "best", "best_bound", "regret")
    rows = []
    for entry, record in results.finished:
        curve = record.curve
        if curve:
            ends = [curve.rounds[-1], curve.paid[-1], curve.best[-1], curve.best_bound[-1]]
            exact = ["" if end is None else repr(end) for end in [*ends, curve.paid[-1] - curve.best[-1]]]
            learner = entry.settings.learner
            player = (repr(learner.multiplier), _words(learner.settings))
            rows.append((record.id, *_which(entry), *player, str(entry.settings.seed), *exact))
    return Table("runs", "All runs, a row for each role", columns, tuple(sorted(rows)))


def every_curve(results: StoredRuns, look: Look) -> Table:
    """The lines of the figures."""
    columns = ("game", "learner", "role", "played", "regret", "regret_low", "regret_high", "seconds", "oracle_calls")
    rows: list[tuple[str, ...]] = []
    for contest in results.contests:
        for series in contest.shown:
            lines = (series.played, *look.of(series.low), series.seconds.mean(axis=0), series.oracle_calls.mean(axis=0))
            named = (contest.label, series.learner, str(series.role))
            rows += [(*named, *(f"{value:.10g}" for value in values)) for values in zip(*lines, strict=True)]
    return Table("curves", "Curves of the figures", columns, tuple(rows))


def tuning(series: Series, contest: Contest) -> str:
    """How the settings were chosen: by theory, or on a grid."""
    if series.role == Role.BASELINE:
        return "baseline"
    if contest.tuned_as_theory(series):
        return TUNED_AS_THEORY
    multiplier = f"{TIMES} {series.settings.multiplier:g}"
    if series.role == Role.TUNED:
        return ", ".join(filter(None, ("grid", multiplier, _words(contest.replaced(series)))))
    if series.settings.source is not None:  # a report runs nobody's code to ask it
        return "own code" if series.settings.multiplier == 1.0 else f"own code {multiplier}"
    if tunes_itself(series.settings.name, series.settings.settings):
        return "itself"
    return "theory" if series.settings.multiplier == 1.0 else f"theory {multiplier}"


def _words(settings: Mapping[str, Any]) -> str:
    """Names and values of a recipe's settings, in one line."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in settings.items())


def words_of(settings: Any) -> Iterator[tuple[str, str]]:
    """Names and values of the settings that are not empty."""
    for name in asdict(settings):
        value = getattr(settings, name)
        if value is not None and value != {}:
            yield name.replace("_", " "), _setting(value)


def _setting(value: Any) -> str:
    if isinstance(value, Named):
        return str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} = {item}" for key, item in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


def number(value: float, decimals: int | None = None) -> str:
    """A number with three digits, or with the given decimals."""
    if isnan(value):
        return NONE
    if isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if decimals is None:
        decimals = 0 if value == 0 else max(0, 2 - floor(log10(abs(value))))
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", MINUS)


def interval(estimate: Estimate, digits: int = 2) -> str:
    """An estimate with its interval, `value [low, high]`, rounded to the width of the interval."""
    value, low, high = (float(np.ravel(part)[0]) for part in estimate)
    if not (isfinite(low) and isfinite(high)):
        return number(value)
    half, largest = (high - low) / 2, max(abs(low), abs(high))
    meant = digits - 1 - floor(log10(half)) if half > 0 else MAX_DIGITS
    decimals = max(0, min(meant, MAX_DIGITS - 1 - floor(log10(largest)))) if largest > 0 else 0
    return f"{number(value, decimals)} [{number(low, decimals)}, {number(high, decimals)}]"


def _chance(test: SignTest) -> str:
    return f"{test.p:.3g}" if test.exact else f"~{test.p:.3g}"
