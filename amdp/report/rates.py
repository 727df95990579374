"""Exponents of regret and seconds along a ladder of games of growing size, with intervals.

Exponents are those of the last decade of sizes. Their intervals resample seeds: they cover the noise of seeds, not a
lack of fit to a power law, and need some seeds on every rung (see `MeanBand.between`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from amdp.arrays import Floats
from amdp.experiments.ladders import Ladder, of_last_decade, slope
from amdp.experiments.spec import Role, Spec
from amdp.experiments.storage import Store
from amdp.report.results import Contest, Series, StoredRuns
from amdp.report.statistics import Estimate, MeanBand

SEED = 20240  # of the bootstrap: the same runs, the same intervals


@dataclass(frozen=True, eq=False)
class LadderFit:
    """The growth of regret and seconds along a ladder of games: a power law, fitted."""

    ladder: Ladder
    role: Role  # whether the rates are those of theory, or chosen by tries
    rungs: Floats  # [r], those with runs
    regret: Floats  # [r], mean final regret
    shares: Floats  # [r], mean share of the regret of uniform play; NaN where there is none
    last: Estimate  # final regret of the last rung, mean with interval
    exponent: Estimate  # of the regret, over the last decade
    seconds: Floats  # [r], of the learner, a round
    seconds_exponent: float
    calls: Floats  # [r], oracle calls a round
    missing: int  # runs that failed or are not there

    @property
    def name(self) -> str:
        """The name of the ladder, and how its learner was tuned if that is not by theory."""
        return self.ladder.name if self.role == Role.THEORY else f"{self.ladder.name}, {self.role}"

    @property
    def empty(self) -> list[int]:
        """Rungs without a single run."""
        return [rung for rung in self.ladder.rungs if rung not in self.rungs]


def fit_ladders(spec: Spec, store: Store, ladders: Sequence[Ladder], band: MeanBand | None = None) -> list[LadderFit]:
    """The fit of each ladder to the runs that are stored: with rates of theory, then with those that tries chose."""
    games = {contest.label: contest for contest in StoredRuns.gather(spec, store).contests}
    tuned = spec.tune.grids if spec.tune else {}
    return [
        _fit(ladder, role, games, len(spec.seeds), band or MeanBand())
        for ladder in ladders
        for role in ((Role.THEORY, Role.TUNED) if ladder.player in tuned else (Role.THEORY,))
    ]


def _fit(ladder: Ladder, role: Role, games: Mapping[str, Contest], seeds: int, band: MeanBand) -> LadderFit:
    found = {rung: _runs(ladder, role, games[label]) for rung in ladder.rungs if (label := ladder.label(rung)) in games}
    played = sorted((rung, series) for rung, series in found.items() if series)
    rungs = np.array([rung for rung, _ in played], dtype=np.float64)
    samples = [series for _, series in played]
    regrets = [series.final for series in samples]
    seconds, calls = (
        np.array([(ends[:, -1] / series.rounds).mean() for ends, series in zip(sums, samples, strict=True)])
        for sums in ([series.of_learner for series in samples], [series.oracle_calls for series in samples])
    )
    rng = np.random.default_rng(SEED)
    nothing = Estimate(*(np.full(1, np.nan) for _ in range(3)))
    return LadderFit(
        ladder,
        role,
        rungs,
        np.array([regret.mean() for regret in regrets]),
        np.array([_mean(games[series.game].shares(series)) for series in samples]),
        band.of(regrets[-1][:, None], rng) if regrets else nothing,
        _exponent(rungs, regrets, band, rng) if len(rungs) > 1 else nothing,
        seconds,
        slope(rungs, seconds),
        calls,
        seeds * len(ladder.rungs) - sum(map(len, regrets)),
    )


def _runs(ladder: Ladder, role: Role, game: Contest) -> Series | None:
    mine = [series for series in game.series if (series.learner, series.role) == (ladder.player, role)]
    return mine[0] if mine else None


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _exponent(rungs: Floats, samples: list[Floats], band: MeanBand, rng: np.random.Generator) -> Estimate:
    """Least squares through the logarithms of the last means; the runs of each rung are resampled on their own."""
    late = of_last_decade(rungs)
    sizes, fitted = rungs[late], [sample for sample, is_late in zip(samples, late, strict=True) if is_late]
    value = np.array([slope(sizes, np.array([sample.mean() for sample in fitted]))])
    resampled = np.array(
        [
            slope(sizes, np.array([rng.choice(sample, len(sample)).mean() for sample in fitted]))
            for _ in range(min(band.resamples, 1000))
        ]
    )
    return band.between(value, resampled[:, None], min(len(sample) for sample in fitted))
