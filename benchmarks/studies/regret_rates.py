"""Regret over K, fresh noise against noise drawn once: draws docs/figures/regret-rates.svg and prints the numbers.

Each point is the mean of whole games that were tuned for their own K; no curve is one long game looked at on the way.

python -m benchmarks.studies.regret_rates FOLDER
"""

from collections.abc import Sequence

from benchmarks.studies.choosing import Choice
from benchmarks.studies.curves import Curve, Panel, Seeds, Study, command, over_rounds
from benchmarks.studies.runs import Run

FRESH: Seeds = {**dict.fromkeys((1_000, 3_162, 10_000, 31_623), 20), 100_000: 8}
FIXED: Seeds = dict.fromkeys((1_000, 3_162, 10_000, 31_623), 20)  # the same seeds: what is paid depends on the draw
LONG_EPISODES: Seeds = dict.fromkeys((1_000, 3_162, 10_000, 31_623, 100_000), 6)
QUICK: Seeds = {30: 2, 100: 2}
TRIED = 10_000  # rounds of the games that choose a rate


def study(quick: bool, choose: Choice) -> Study:
    """Both noises, long episodes, adversaries that change their mind; the theorem's rate, or one chosen by tries."""
    fresh, fixed, long_episodes = (QUICK,) * 3 if quick else (FRESH, FIXED, LONG_EPISODES)

    def curve(label: str, run: Run, seeds: Seeds) -> Curve:
        return Curve(label, over_rounds(run, seeds))

    river = Run("river-swim", "bernoulli", 30 if quick else TRIED, 0)
    tuned = choose(river)
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
                    curve("fresh, independent trials", tiny._replace(shared=False), fresh),
                ),
            ),
            Panel(
                "20 steps, Bernoulli losses, fresh noise",
                (
                    curve("forest (20, 3, 2)", Run("forest", "bernoulli", 0, 0), long_episodes),
                    curve("lock (20, 6, 2)", Run("lock", "bernoulli", 0, 0), long_episodes),
                    curve("river-swim (20, 6, 2)", river, long_episodes),
                    curve(f"river-swim, rate x {tuned.multiplier:g}", tuned, long_episodes),
                ),
            ),
            Panel(
                "tiny, losses that change, fresh noise",
                (
                    curve("sinusoid", tiny._replace(losses="sinusoid"), fresh),
                    curve("swap", tiny._replace(losses="swap"), fresh),
                    curve("switching", tiny._replace(losses="switching"), fresh),
                ),
            ),
        ),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    command(study, "Regret over K.", arguments)


if __name__ == "__main__":
    main()
