"""The paper's Table 1 as data, and the related work that it mentions: one row, one learner.

Bounds are orders of growth in this library's letters: `H` steps, `S` states, `A` actions, `K` episodes, `T` steps of a
stream, `D` total delay, `diam` diameter, `tau` mixing time.
"""

from dataclasses import dataclass

from amdp.algorithms.named import from_task
from amdp.algorithms.task import Task
from amdp.errors import InvalidInput
from amdp.model.domains import Domain

REFUSAL_ROUNDS = 100  # for which a learner is tuned when it is only asked whether it would play


# What the columns say. `setting`: whether the world is put back to its initial state after a round.
EPISODES, STREAM = "episodes", "one stream"
# `transitions`: what a learner knows, and what it needs of the dynamics.
KNOWN, UNKNOWN, REACHABLE = "known", "unknown", "known, every state likely"
ERGODIC, DETERMINISTIC, COMMUNICATING = "known, ergodic", "known, deterministic", "known, communicating"
# `feedback`: what a learner sees of the losses.
FULL, BANDIT, DELAYED, TOTAL = "full", "bandit", "delayed bandit", "total loss"
# `method`: the family, as the paper's table names it.
FTPL, OMD, POLICY = "FTPL", "OMD", "policy optimization"
# `efficiency`: what a round costs in the worst case.
POLYNOMIAL, ORACLE, EXPONENTIAL = "polynomial", "given a planning oracle", "exponential"
# `part`: where the algorithm comes from, seen from the paper.
PRINTED, RELATED, SINCE = "Table 1", "related work", "since then"
# `provenance`: how close the code is to the source. A rate is confirmed if a text or code of its source was at hand
# that has it, with its constants; one that balances or inverts a bound is reconstructed; `OWN` has no source.
PAPER, CONFIRMED, SOURCE, VARIANT, GUESS, OWN = (
    "the paper",
    "its source, rate confirmed",
    "its source, rate reconstructed",
    "a variant of its source, rate reconstructed",
    "reconstruction",
    "derived here",
)


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    name: str
    learner: str  # its short name
    setting: str
    transitions: str
    feedback: str
    regret: str
    exponent: float  # of K or T in that bound
    method: str
    efficiency: str
    cost: str  # operations a round
    provenance: str
    reference: str
    part: str = PRINTED

    @property
    def printed(self) -> bool:
        """Whether it stands in the paper's Table 1."""
        return self.part == PRINTED

    @property
    def heading(self) -> str:
        """What it has in common with the rows beside which it is shown."""
        since = f"{SINCE}: " if self.part == SINCE else ""
        text = f"{since}{self.setting}; transitions {self.transitions}; {self.feedback} feedback"
        return text[0].upper() + text[1:]

    def refusal(self, domain: Domain) -> str | None:
        """Why the learner would not play there; None: it would. Its own recipe is asked, so that the two agree."""
        try:
            from_task(Task(domain, REFUSAL_ROUNDS, learner=self.learner))
        except InvalidInput as problem:
            return str(problem)
        return None


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the regret of every learner."""

    setting: str
    transitions: str
    feedback: str
    regret: str
    reference: str


_DAI = "Dai, Luo and Chen 2022"
_CT = "Chandrasekaran and Tewari 2021"
_ADAPTIVE = "rate: de Rooij, van Erven, Grunwald and Koolen 2014"
_COHEN = "setting: Cohen, Kaplan, Koren and Mansour 2021"
_JIN22 = "Jin, Lancewicki, Luo, Mansour and Rosenberg 2022"

# fmt: off
TABLE = (
    Row("O-REPS", "o-reps", EPISODES, KNOWN, BANDIT, "H sqrt(SAK)", 1 / 2, OMD, POLYNOMIAL,
        "a projection, (H-1)S dual variables", SOURCE, "Zimin and Neu 2013"),
    Row("FTPL", "ftpl", EPISODES, KNOWN, BANDIT, "H^(3/2) sqrt(SAK)", 1 / 2, FTPL, POLYNOMIAL,
        "up to H sqrt(SAK/H) plans of HS^2A", PAPER, _DAI),
    Row("UOB-REPS", "uob-reps", EPISODES, UNKNOWN, BANDIT, "H^2 S sqrt(AK)", 1 / 2, OMD, POLYNOMIAL,
        "a projection over a box, H upper occupancy bounds", SOURCE, "Jin, Jin, Luo, Sra and Yu 2020"),
    Row("FTPL, unknown", "ftpl", EPISODES, UNKNOWN, BANDIT, "H^2 S sqrt(AK)", 1 / 2, FTPL, POLYNOMIAL,
        "up to H sqrt(SAK/H) extended plans and upper occupancy bounds", PAPER, _DAI),
    Row("Delayed Hedge", "delayed-hedge", EPISODES, UNKNOWN, DELAYED, "H^2 S sqrt(AK) + H^(3/2) sqrt(SD)", 1 / 2, OMD,
        EXPONENTIAL, "A^(1+(H-1)S) evaluations", SOURCE, _JIN22),
    Row("Delayed UOB-FTRL", "delayed-uob-ftrl", EPISODES, UNKNOWN, DELAYED, "H^2 S sqrt(AK) + H^(3/2) SA sqrt(D)",
        1 / 2, OMD, POLYNOMIAL, "a projection over a box", SOURCE, _JIN22),
    Row("Delayed UOB-REPS", "delayed-uob-reps", EPISODES, UNKNOWN, DELAYED,
        "H^2 S sqrt(AK) + H^(5/4) (SA)^(1/4) sqrt(D)", 1 / 2, OMD, POLYNOMIAL,
        "a projection over a box, 2H upper occupancy bounds", SOURCE, _JIN22),
    Row("FTPL, delayed", "ftpl", EPISODES, UNKNOWN, DELAYED, "H^2 S sqrt(AK) + H^(3/2) sqrt(SAD)", 1 / 2, FTPL,
        POLYNOMIAL, "as without delays", PAPER, _DAI),
    Row("MDP-E", "mdp-e", STREAM, ERGODIC, FULL, "tau^2 sqrt(T)", 1 / 2, OMD, POLYNOMIAL, "S^3 + S^2 A", SOURCE,
        "Even-Dar, Kakade and Mansour 2009"),
    Row("FPL over closed walks", "ct-deterministic", STREAM, DETERMINISTIC, FULL, "S^4 sqrt(T)", 1 / 2, FTPL,
        POLYNOMIAL, "S^4 A when the leader may have changed", VARIANT, _CT),
    Row("FPL, noise for each policy", "ct-communicating", STREAM, COMMUNICATING, FULL, "diam^2 sqrt(ST)", 1 / 2, FTPL,
        EXPONENTIAL, "A^S S^2", SOURCE, _CT),
    Row("MDP-Exp3", "mdp-exp3", STREAM, ERGODIC, BANDIT, "sqrt(tau^3 A T)", 1 / 2, OMD, POLYNOMIAL, "S^3 + N S^2",
        SOURCE, "Neu, Gyorgy, Szepesvari and Antos 2014"),
    Row("Dekel-Hazan", "dekel-hazan", STREAM, DETERMINISTIC, BANDIT, "S^3 A T^(2/3)", 2 / 3, OMD, POLYNOMIAL,
        "S^4 A a block", GUESS, "Dekel and Hazan 2013"),
    Row("FTPL, infinite horizon", "ftpl-infinite-renewed", STREAM, COMMUNICATING, BANDIT,
        "A^(1/2) (S diam)^(2/3) T^(5/6)", 5 / 6, FTPL, ORACLE, "up to 3SA stationary plans a step", PAPER, _DAI),
    Row("Hedge, infinite horizon", "hedge-infinite-renewed", STREAM, COMMUNICATING, BANDIT, "A^(1/3) (S diam T)^(2/3)",
        2 / 3, OMD, EXPONENTIAL, "A^S evaluations an epoch", PAPER, _DAI),
    Row("O-REPS, full information", "o-reps-full", EPISODES, KNOWN, FULL, "H sqrt(K)", 1 / 2, OMD, POLYNOMIAL,
        "a projection", SOURCE, "Zimin and Neu 2013", part=RELATED),
    Row("FTPL, scaled trials", "ftpl-scaled", EPISODES, KNOWN, BANDIT, "H^(3/2) sqrt(SAK)", 1 / 2, FTPL, POLYNOMIAL,
        "about AC plans of HS^2A, C the reach of all states", OWN, _DAI, part=SINCE),
    Row("FTPL, adaptive rate", "ftpl-adaptive", EPISODES, KNOWN, BANDIT, "H^(3/2) sqrt(SAK)", 1 / 2, FTPL, POLYNOMIAL,
        "the same and 16 plans", OWN, f"{_DAI}; {_ADAPTIVE}", part=SINCE),
    Row("O-REPS, adaptive rate", "o-reps-adaptive", EPISODES, KNOWN, BANDIT, "H sqrt(SAK)", 1 / 2, OMD, POLYNOMIAL,
        "two projections", OWN, f"Zimin and Neu 2013; {_ADAPTIVE}", part=SINCE),
    Row("O-REPS, implicit exploration", "o-reps-ix", EPISODES, KNOWN, BANDIT, "H sqrt(SAK)", 1 / 2, OMD, POLYNOMIAL,
        "a projection", OWN, "Zimin and Neu 2013; estimates: Neu 2015", part=SINCE),
    Row("Best of both worlds", "bobw", EPISODES, KNOWN, BANDIT, "H sqrt(SAK)", 1 / 2, OMD, POLYNOMIAL,
        "a regularized minimizer, HS dual variables", CONFIRMED, "Jin, Huang and Luo 2021", part=SINCE),
    Row("Soft leader", "soft-leader", EPISODES, KNOWN, BANDIT, "H^(3/2) sqrt(SAK)", 1 / 2, OMD, POLYNOMIAL,
        "dynamic programming instead of any oracle: three sweeps of HS^2A", OWN, _ADAPTIVE, part=SINCE),
    Row("Soft leader, full information", "soft-leader-full", EPISODES, KNOWN, FULL, "H^(3/2) sqrt(K)", 1 / 2, OMD,
        POLYNOMIAL, "dynamic programming instead of any oracle: three sweeps of HS^2A", OWN, _ADAPTIVE, part=SINCE),
    Row("O-REPS, total losses", "o-reps-aggregate", EPISODES, KNOWN, TOTAL, "H^2 sqrt(SAK)", 1 / 2, OMD, POLYNOMIAL,
        "a projection", OWN, _COHEN, part=SINCE),
    Row("Soft leader, total losses", "soft-leader-aggregate", EPISODES, KNOWN, TOTAL, "H^(5/2) sqrt(SAK)", 1 / 2, OMD,
        POLYNOMIAL, "three sweeps of HS^2A", OWN, _COHEN, part=SINCE),
    Row("FTPL, total losses", "ftpl-aggregate", EPISODES, KNOWN, TOTAL, "H^(5/2) sqrt(SAK)", 1 / 2, FTPL, POLYNOMIAL,
        "H sqrt(SAK/H) plans, and about HSA", OWN, _COHEN, part=SINCE),
    Row("O-SSP, total losses", "o-ssp-aggregate", EPISODES, REACHABLE, TOTAL, "H^2 sqrt(AK / alpha)", 1 / 2, POLICY,
        POLYNOMIAL, "HS^2A", OWN, _COHEN, part=SINCE),
    Row("DO-REPS", "do-reps", EPISODES, KNOWN, FULL, "H sqrt(K)", 1 / 2, OMD, POLYNOMIAL,
        "about log2(K)/2 projections", VARIANT, "Zhao, Li and Zhou 2022", part=SINCE),
    Row("FPL", "fpl", EPISODES, KNOWN, FULL, "H^2 sqrt(K)", 1 / 2, FTPL, POLYNOMIAL, "one plan of HS^2A", SOURCE,
        "Wang and Dong 2020", part=RELATED),
    Row("FPOP", "fpl", EPISODES, UNKNOWN, FULL, "H^2 S sqrt(AK)", 1 / 2, FTPL, POLYNOMIAL, "one extended plan", VARIANT,
        "Neu, Gyorgy and Szepesvari 2012; refined by Wang and Dong 2020", part=RELATED),
    Row("UC-O-REPS (Bernstein)", "uc-o-reps-bernstein", EPISODES, UNKNOWN, FULL, "H^2 S sqrt(AK)", 1 / 2, OMD,
        POLYNOMIAL, "a projection over a box", VARIANT, "Rosenberg and Mansour 2019", part=RELATED),
    Row("Bandit O-SSP", "o-ssp", EPISODES, REACHABLE, BANDIT, "H^2 sqrt(AK) / alpha", 1 / 2, POLICY, POLYNOMIAL,
        "HS^2A", GUESS, "Neu, Gyorgy and Szepesvari 2010", part=RELATED),
    Row("Optimistic POMD", "pomd", EPISODES, UNKNOWN, BANDIT, "H^2 S sqrt(A) K^(2/3)", 2 / 3, POLICY, POLYNOMIAL,
        "H^2 S^2 A", SOURCE, "Shani, Efroni, Rosenberg and Mannor 2020", part=RELATED),
    Row("Dilated bonuses", "dilated-bonus", EPISODES, UNKNOWN, BANDIT, "H^3 S sqrt(AK) + H^4", 1 / 2, POLICY,
        POLYNOMIAL, "H^2 S^3 A", CONFIRMED, "Luo, Wei and Lee 2021", part=RELATED),
    Row("Delayed OPPO", "delayed-oppo", EPISODES, UNKNOWN, DELAYED, "(K + D)^(2/3)", 2 / 3, POLICY, POLYNOMIAL,
        "H^2 S^2 A for each arrival", SOURCE, "Lancewicki, Rosenberg and Mansour 2022", part=RELATED),
    Row("FPL with start mass", "ct-oracle", STREAM, COMMUNICATING, FULL, "sqrt(T / alpha)", 1 / 2, FTPL, ORACLE,
        "one stationary plan", SOURCE, _CT, part=RELATED),
)
# fmt: on

LOWER_BOUNDS = (
    LowerBound(EPISODES, UNKNOWN, BANDIT, "H^(3/2) sqrt(SAK)", "Jin, Allen-Zhu, Bubeck and Jordan 2018"),
    LowerBound(EPISODES, UNKNOWN, DELAYED, "H^(3/2) sqrt(SAK) + H sqrt(D)", "Lancewicki, Rosenberg and Mansour 2022"),
    LowerBound(STREAM, COMMUNICATING, BANDIT, "S^(1/3) T^(2/3)", "Dekel, Ding, Koren and Peres 2014"),
)
