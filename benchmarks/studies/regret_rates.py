"""Regret over K, fresh noise against noise drawn once: draws docs/figures/regret-rates.svg and prints the numbers.

Each point is the mean of whole games that were tuned for their own K; no curve is one long game looked at on the way.

python -m benchmarks.studies.regret_rates FOLDER
"""

from collections.abc import Sequence

from benchmarks.studies.curves import Curve, Panel, Seeds, Study, command, over_rounds
from benchmarks.studies.runs import Run

FRESH: Seeds = {1_000: 24, 3_162: 16, 10_000: 8, 31_623: 4, 100_000: 2}
FIXED: Seeds = {1_000: 12, 3_162: 12, 10_000: 12, 31_623: 12}  # the same seeds: what is paid depends on the draw
SHORTER: Seeds = {1_000: 8, 3_162: 6, 10_000: 6}
QUICK: Seeds = {30: 2, 100: 2}


def study(quick: bool) -> Study:
    """Both noises where that is cheap, fresh noise in longer games, and adversaries that change their mind."""
    fresh, fixed, shorter = (QUICK,) * 3 if quick else (FRESH, FIXED, SHORTER)

    def curve(label: str, run: Run, seeds: Seeds) -> Curve:
        return Curve(label, over_rounds(run, seeds))

    arms, tiny = Run("two-arms", "nominal", 0, 0), Run("tiny", "bernoulli", 0, 0)
    return Study(
        "regret-rates",
        "K",
        lambda result: result.run.rounds,
        (
            Panel(
                "two arms, losses 0.6 and 0.4",
                (
                    curve("fresh noise", arms, fresh),
                    curve("noise drawn once", arms._replace(noise="fixed"), fixed),
                ),
            ),
            Panel(
                "tiny (3, 3, 2), Bernoulli losses",
                (
                    curve("fresh noise", tiny, fresh),
                    curve("noise drawn once", tiny._replace(noise="fixed"), fixed),
                    curve("fresh, independent trials", tiny._replace(shared=False), shorter),
                ),
            ),
            Panel(
                "20 steps, Bernoulli losses, fresh noise",
                (
                    curve("forest (20, 3, 2)", Run("forest", "bernoulli", 0, 0), fresh),
                    curve("lock (20, 6, 2)", Run("lock", "bernoulli", 0, 0), fresh),
                    curve("river-swim (20, 6, 2)", Run("river-swim", "bernoulli", 0, 0), shorter),
                    curve("river-swim, rate x 8", Run("river-swim", "bernoulli", 0, 0, multiplier=8.0), shorter),
                ),
            ),
            Panel(
                "tiny, losses that change, fresh noise",
                (
                    curve("sinusoid", tiny._replace(losses="sinusoid"), shorter),
                    curve("swap", tiny._replace(losses="swap"), shorter),
                    curve("switching", tiny._replace(losses="switching"), shorter),
                ),
            ),
        ),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    command(study, "Regret over K.", arguments)


if __name__ == "__main__":
    main()
