"""The findings as a page of the documentation, with pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amdp import registry
from amdp.verification.base import Effort, Verdict
from amdp.verification.known_transitions import LEAST_CHANCE, strong_ratio
from amdp.verification.runs import Verified, checks, false_alarm

INK, ACCENT = "#0072B2", "#D55E00"
MISTAKES = {  # that somebody made or could make: the tests make each one, and see that the checks reject it
    "fixed-noise": "the noise is drawn once",
    "scale-for-rate": "the Laplace noise takes its rate for its scale",
    "drowning-noise": "the noise is a thousand times too large: nothing is learned",
    "pessimism": "plans are made for the dearest kernel of the confidence set instead of the cheapest",
    "myopic-oracle": "the oracle does not look ahead",
    "play-from-state-0": "games start in state 0 instead of the initial state",
    "trials-from-state-0": "trials start in state 0 instead of the initial state",
    "no-truncation": "the limit of the trials is ignored",
    "tripled-weights": "estimates are three times too large",
    "late-weights": "weights come from the current distribution, not from the one that was played",
    "weights-after-narrowing": "weights come from the confidence set of the next round",
    "wrong-step": "Comp-UOB is asked for the step before",
    "exploring-weights": "exact importance weights with a gamma left in",
    "frozen-sets": "confidence sets never narrow",
    "narrowed-at-powers-of-two": "confidence sets narrow only when visits reach a power of two",
    "boxes-not-nested": "confidence sets forget the earlier ones",
    "tight-radius": "confidence sets are too narrow",
    "estimates-doubled": "every estimate is added twice",
    "delay-off-by-one": "feedback comes one round late",
    "comparator-without-last-round": "the best policy in hindsight does not know the last round",
    "bounds-cut": "explicit bounds are a tenth of what is proved",
    "unshifted-target": "a switch aims at the law of its start",
    "lucky-diameter": "the diameter counts the fewest steps instead of the expected ones",
    "first-visits": "the chance to be at a target is taken for that of a first visit",
    "long-attempts": "an attempt of a switch takes eight times its steps",
    "slow-way-home": "a switch goes to the parking state by the worst way",
    "unannounced-delay": "a switch waits before it sets out",
    "swapped-epochs": "FTPL and Hedge take the number of epochs of each other's theorem",
    "kept-policies": "a policy that stays is followed on instead of being entered anew",
    "contrary-hedge": "Hedge takes losses for gains",
    "scale-below-reach": "scaled trials take a quarter of the reach for their scale, and cut what exceeds it",
    "limit-not-scaled": "scaled trials have the limit of plain ones",
    "coins-twice": "a coin ends scaled trials within a batch, and another one between batches",
    "no-coin-between-batches": "scaled trials go on after every batch",
    "stale-scale": "scaled trials keep the scale of an earlier confidence set after a fallback",
    "myopic-soft": "the soft sweep does not look ahead",
    "potential-at-lower-rate": "the soft value after an estimate is taken at half the rate",
    "tripled-importance": "importance weights are three times too large",
    "gaps-cut": "an adaptive rate counts a tenth of the gaps",
    "forgetful-rate": "an adaptive rate follows the gap of the last round instead of the sum",
    "gap-noise-of-trials": "the noise of the resampling trials measures the gap of their estimate",
    "gap-of-two-noises": "a gap compares a leader with the cheapest policy for other noise",
    "estimate-on-both-sides": "a gap is measured when the estimate is in the sum of the losses already",
}
UNCHECKED = {  # places in the paper, as in the statement of a check, and why
    "Assumption 2, Assumption 28: a staying pair": "an assumption; policy switching refuses worlds without one",
    "Theorem 5: regret over confidence sets": "an order of growth without constants; what its proof adds up is "
    "checked, and with constants the widths of the sets alone exceed HK for all K below 5e+05, as "
    "`occupancies-over-sets` finds, where a round takes a thousand trials for each step",
    "Remark 16: intervals need not be centred": "a remark on extended value iteration, for which the oracles have "
    "tests",
    "Remark 23: why Bias1 is not the GR error": "it claims nothing that could fail",
    "Lemma 34: the error term of a stream": "the induction of Lemma 10 with epochs for rounds, and the noise of Lemma "
    "45, which are checked",
    "section 4: regret with delays over confidence sets": "an order of growth, as without delays; it is "
    "checked over a kernel, and single steps over sets",
    "section 5: regret of games of FTPL in a stream": "its bound exceeds T for all T below 3e+11, as "
    "`parameters-ftpl-stream` finds; the terms of the proof are checked",
    "section 5: regret of a stream at most that without switches plus their cost": "a sum of the checks on switches",
}


def write(done: Sequence[Verified], effort: Effort, page: Path) -> list[Path]:
    """The page and its figures, in a folder `figures` beside it: findings of the first seed, verdicts of all."""
    registry.require("the page of findings", ("matplotlib",))
    figures = page.parent / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    first = [result for result in done if result.seed == done[0].seed]
    drawn = [_shares(first, figures / "verified-shares.svg"), _strong_form(figures / "verified-strong-form.svg")]
    page.write_text(_text(first, done, effort), encoding="utf-8")
    return [page, *drawn]


def _text(first: Sequence[Verified], done: Sequence[Verified], effort: Effort) -> str:
    seeds, rate = len(done) // len(first), false_alarm([result.check for result in first])
    flags = " --quick" * (effort is Effort.QUICK) + f" --seed {done[0].seed}" + f" --seeds {seeds}" * (seeds > 1)
    lines = [
        "# The paper, verified",
        "",
        f"Written by `amdp verify{flags} --page docs/verified.md`; do not edit. Each check names its",
        "statement in the paper, what is computed exactly and what by simulation, and the wrong implementations that",
        "it was shown to reject: `python -m pytest tests/verification` runs the whole matrix. A right implementation",
        f"fails one of these checks with a chance of at most {rate:.2g}, the sum of the column;",
        "the bounds behind it do not assume normality. A margin says how far a figure is from failing: for a",
        "p-value, 7.2 if it is 10^7.2 times the limit. A statement is out of reach if it holds, but its bound is",
        "trivial at all lengths that can be played.",
        "",
        *(_in_a_row(done, seeds, rate) if seeds > 1 else []),
        "| check | verdict | samples | false alarm |",
        "|---|---|---|---|",
    ]
    for result in first:
        check, finding = result.check, result.finding
        cells = (f"[{check.name}](#{check.name})", finding.verdict, finding.samples or "exact", check.false_alarm)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "![Measured shares of the bounds](figures/verified-shares.svg)", ""]
    for result in first:
        lines += _section(result)
    lines += ["## Mistakes that the checks reject", "", "| mistake | what is wrong | rejected by |", "|---|---|---|"]
    for name, mistake in MISTAKES.items():
        by = ", ".join(check.name for check in checks() if name in check.rejects)
        lines.append(f"| {name} | {mistake} | {by} |")
    lines += ["", "## What is not checked", "", *(f"- {what}: {why}." for what, why in UNCHECKED.items())]
    return "\n".join(lines) + "\n"


def _in_a_row(done: Sequence[Verified], seeds: int, rate: float) -> list[str]:
    fails = [result for result in done if result.finding.verdict is Verdict.FAILS]
    failed = [f"`{result.check.name}` with seed {result.seed}" for result in fails]
    return [
        f"All checks ran with {seeds} seeds in a row, from {done[0].seed} to {done[-1].seed}; of {len(done)} verdicts",
        f"{', '.join(failed) or 'none'} failed. A right implementation fails one of them with a chance of at most",
        f"{seeds * rate:.2g}. The figures below are those of the first seed.",
        "",
    ]


def _section(result: Verified) -> list[str]:
    check, finding = result.check, result.finding
    margins = ", ".join(f"{name} {margin:.3g}" for name, margin in finding.margins.items())
    lines = [
        f"## {check.name}",
        "",
        f"{check.statement[0].upper()}{check.statement[1:]}.",
        "",
        f"- Claim: `{check.claim}`",
        *([f"- Read otherwise than printed: {check.correction}."] if check.correction else []),
        f"- Exact: {check.exact}.",
        f"- Simulated: {check.simulated or 'nothing'}.",
        f"- Found: {finding.text}.",
        f"- Verdict: **{finding.verdict}**; margins: {margins}; rejects {', '.join(check.rejects)}.",
        "",
    ]
    if check.name == "strong-stability-fails":
        lines += [
            "![How far the strong form fails](figures/verified-strong-form.svg)",
            "",
            "The paper asks whether the strong form can be saved. With Laplace noise no constant does: take two",
            "policies that differ in one coordinate, of which one never visits it and the other does with chance `q`",
            "and has been no cheaper so far, and let a small loss be met there. Then the decrease of the loss tends to",
            "`1/q` times what the strong form allows, whatever the rate, and the weak form is met with equality. Two",
            "actions of one state differ in two coordinates: there the ratio lies between `1/(2q)` and `1/q`",
            "(tests/verification/test_laws.py plays such a world). Other noise: [open questions](open-questions.md).",
            "",
        ]
    return lines


def _shares(done: Sequence[Verified], file: Path) -> Path:
    """How much of each bound was used."""
    wanted = {
        ("regret-terms", "resampling"): "resampling term",
        ("regret-terms", "error"): "error term",
        ("regret-terms", "stability"): "stability term",
        ("switch-length", "share"): "length of a switch",
        ("switch-length", "of_paper"): "its bound, of 12 D^2",
        ("noise-of-all-steps", "share"): "noise of all steps",
        ("hedge-inequality", "share"): "Hedge's inequality",
    }
    figures = {result.check.name: result.finding.figures for result in done}
    bars = {text: figures[name][key] for (name, key), text in wanted.items() if name in figures}
    figure, axes = _canvas()
    names = list(bars)[::-1]
    axes.barh(names, [max(bars[name], 1e-4) for name in names], color=INK)
    axes.axvline(1.0, color=ACCENT, linestyle="--")
    axes.set_xscale("log")
    axes.set_xlim(1e-3, 2.0)
    axes.set_xlabel("measured / allowed (the dashed line is the bound)")
    return _saved(figure, file)


def _strong_form(file: Path) -> Path:
    """The ratio of both sides against the visit chance."""
    chances = np.geomspace(LEAST_CHANCE / 10.0, 1.0, 60)
    figure, axes = _canvas()
    for loss, style in ((0.01, "-"), (1.0, "--"), (10.0, ":")):
        ratios = [strong_ratio(0.0, float(q), 1.0, loss, 1.0) for q in chances]
        axes.loglog(chances, ratios, style, color=INK, label=f"rate times loss = {loss:g}")
    axes.axhline(1.0, color=ACCENT, linewidth=1.0, label="what the strong form allows")
    axes.set_xlabel("chance of a visit")
    axes.set_ylabel("left side / right side")
    axes.legend(frameon=False)
    return _saved(figure, file)


def _canvas() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    return figure, figure.subplots()


def _saved(figure: Any, file: Path) -> Path:
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "amdp"}):
        figure.savefig(file, metadata={"Date": None})
    return file
