"""The paper's Table 1 as data, and the related work that it mentions: one row, one learner.

Bounds are orders of growth in this library's letters: `H` steps, `S` states, `A` actions, `K` episodes, `T` steps of a
stream, `D` total delay, `diam` diameter, `tau` mixing time.
"""

from dataclasses import dataclass
from enum import StrEnum

from amdp.algorithms.named import from_task
from amdp.algorithms.task import Task
from amdp.errors import InvalidInput
from amdp.model.domains import Domain

REFUSAL_ROUNDS = 100  # for which a learner is tuned when it is only asked whether it would play


class PlayKind(StrEnum):
    """Whether the world is put back to its initial state after a round."""

    EPISODES = "episodes"
    STREAM = "one stream"


class FeedbackKind(StrEnum):
    """What a learner sees of the losses."""

    FULL = "full"
    BANDIT = "bandit"
    DELAYED = "delayed bandit"


class Transitions(StrEnum):
    """What a learner knows, and what it needs of the dynamics."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    REACHABLE = "known, every state likely"
    ERGODIC = "known, ergodic"
    DETERMINISTIC = "known, deterministic"
    COMMUNICATING = "known, communicating"


class Method(StrEnum):
    """The family, as the paper's table names it."""

    FTPL = "FTPL"
    OMD = "OMD"
    POLICY = "policy optimization"


class Efficiency(StrEnum):
    """What a round costs in the worst case."""

    POLYNOMIAL = "polynomial"
    ORACLE = "given a planning oracle"
    EXPONENTIAL = "exponential"


class Provenance(StrEnum):
    """How close the code is to the source."""

    PAPER = "the paper"
    SOURCE = "its source, constants derived"
    VARIANT = "a variant of its source"
    RECONSTRUCTION = "reconstruction"
    DERIVED = "derived here"


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    name: str
    learner: str  # its short name
    setting: PlayKind
    transitions: Transitions
    feedback: FeedbackKind
    regret: str
    exponent: float  # of K or T in that bound
    method: Method
    efficiency: Efficiency
    cost: str  # operations a round
    provenance: Provenance
    reference: str
    printed: bool = True  # whether it stands in the paper's Table 1

    def refusal(self, domain: Domain) -> str | None:
        """Why the learner would not play there; None: it would. Its own recipe is asked, so that the two agree."""
        try:
            from_task(self.learner, Task(domain, REFUSAL_ROUNDS))
        except InvalidInput as problem:
            return str(problem)
        return None


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the regret of every learner."""

    setting: PlayKind
    transitions: Transitions
    feedback: FeedbackKind
    regret: str
    reference: str


_E, _S = PlayKind.EPISODES, PlayKind.STREAM
_KNOWN, _UNKNOWN, _COMMUNICATING = Transitions.KNOWN, Transitions.UNKNOWN, Transitions.COMMUNICATING
_BANDIT, _FULL, _DELAYED = FeedbackKind.BANDIT, FeedbackKind.FULL, FeedbackKind.DELAYED
_POLY, _ORACLE, _EXP = Efficiency.POLYNOMIAL, Efficiency.ORACLE, Efficiency.EXPONENTIAL
_PAPER, _SOURCE = Provenance.PAPER, Provenance.SOURCE
_VARIANT, _GUESS, _OWN = Provenance.VARIANT, Provenance.RECONSTRUCTION, Provenance.DERIVED
_FTPL, _OMD, _PO = Method.FTPL, Method.OMD, Method.POLICY
_DAI = "Dai, Luo and Chen 2022"
_CT = "Chandrasekaran and Tewari 2021"
_ADAPTIVE = "rate: de Rooij, van Erven, Grunwald and Koolen 2014"
_JIN22 = "Jin, Lancewicki, Luo, Mansour and Rosenberg 2022"

# fmt: off
TABLE = (
    Row("O-REPS", "o-reps", _E, _KNOWN, _BANDIT, "H sqrt(SAK)", 1 / 2, _OMD, _POLY,
        "a projection, (H-1)S dual variables", _SOURCE, "Zimin and Neu 2013"),
    Row("FTPL", "ftpl", _E, _KNOWN, _BANDIT, "H^(3/2) sqrt(SAK)", 1 / 2, _FTPL, _POLY,
        "up to H sqrt(SAK/H) plans of HS^2A", _PAPER, _DAI),
    Row("UOB-REPS", "uob-reps", _E, _UNKNOWN, _BANDIT, "H^2 S sqrt(AK)", 1 / 2, _OMD, _POLY,
        "a projection over a box, H upper occupancy bounds", _SOURCE, "Jin, Jin, Luo, Sra and Yu 2020"),
    Row("FTPL, unknown", "ftpl", _E, _UNKNOWN, _BANDIT, "H^2 S sqrt(AK)", 1 / 2, _FTPL, _POLY,
        "up to H sqrt(SAK/H) extended plans and upper occupancy bounds", _PAPER, _DAI),
    Row("Delayed Hedge", "delayed-hedge", _E, _UNKNOWN, _DELAYED, "H^2 S sqrt(AK) + H^(3/2) sqrt(SD)", 1 / 2, _OMD,
        _EXP, "A^(1+(H-1)S) evaluations", _SOURCE, _JIN22),
    Row("Delayed UOB-FTRL", "delayed-uob-ftrl", _E, _UNKNOWN, _DELAYED, "H^2 S sqrt(AK) + H^(3/2) SA sqrt(D)", 1 / 2,
        _OMD, _POLY, "a projection over a box", _SOURCE, _JIN22),
    Row("Delayed UOB-REPS", "delayed-uob-reps", _E, _UNKNOWN, _DELAYED, "H^2 S sqrt(AK) + H^(5/4) (SA)^(1/4) sqrt(D)",
        1 / 2, _OMD, _POLY, "a projection over a box, 2H upper occupancy bounds", _SOURCE, _JIN22),
    Row("FTPL, delayed", "ftpl", _E, _UNKNOWN, _DELAYED, "H^2 S sqrt(AK) + H^(3/2) sqrt(SAD)", 1 / 2, _FTPL, _POLY,
        "as without delays", _PAPER, _DAI),
    Row("MDP-E", "mdp-e", _S, Transitions.ERGODIC, _FULL, "tau^2 sqrt(T)", 1 / 2, _OMD, _POLY,
        "S^3 + S^2 A", _SOURCE, "Even-Dar, Kakade and Mansour 2009"),
    Row("FPL over closed walks", "ct-deterministic", _S, Transitions.DETERMINISTIC, _FULL, "S^4 sqrt(T)", 1 / 2, _FTPL,
        _POLY, "S^4 A when the leader may have changed", _VARIANT, _CT),
    Row("FPL, noise for each policy", "ct-communicating", _S, _COMMUNICATING, _FULL, "diam^2 sqrt(ST)", 1 / 2, _FTPL,
        _EXP, "A^S S^2", _SOURCE, _CT),
    Row("MDP-Exp3", "mdp-exp3", _S, Transitions.ERGODIC, _BANDIT, "sqrt(tau^3 A T)", 1 / 2, _OMD, _POLY,
        "S^3 + N S^2", _SOURCE, "Neu, Gyorgy, Szepesvari and Antos 2014"),
    Row("Dekel-Hazan", "dekel-hazan", _S, Transitions.DETERMINISTIC, _BANDIT, "S^3 A T^(2/3)", 2 / 3, _OMD, _POLY,
        "S^4 A a block", _GUESS, "Dekel and Hazan 2013"),
    Row("FTPL, infinite horizon", "ftpl-infinite-renewed", _S, _COMMUNICATING, _BANDIT,
        "A^(1/2) (S diam)^(2/3) T^(5/6)", 5 / 6, _FTPL, _ORACLE, "up to 3SA stationary plans a step", _PAPER, _DAI),
    Row("Hedge, infinite horizon", "hedge-infinite-renewed", _S, _COMMUNICATING, _BANDIT, "A^(1/3) (S diam T)^(2/3)",
        2 / 3, _OMD, _EXP, "A^S evaluations an epoch", _PAPER, _DAI),
    Row("O-REPS, full information", "o-reps-full", _E, _KNOWN, _FULL, "H sqrt(K)", 1 / 2, _OMD, _POLY,
        "a projection", _SOURCE, "Zimin and Neu 2013", printed=False),
    Row("O-REPS, adaptive rate", "o-reps-adaptive", _E, _KNOWN, _BANDIT, "H sqrt(SAK)", 1 / 2, _OMD, _POLY,
        "two projections", _OWN, f"Zimin and Neu 2013; {_ADAPTIVE}", printed=False),
    Row("Soft leader", "soft-leader", _E, _KNOWN, _BANDIT, "H^(3/2) sqrt(SAK)", 1 / 2, _OMD, _POLY,
        "dynamic programming instead of any oracle: three sweeps of HS^2A", _OWN, _ADAPTIVE, printed=False),
    Row("Soft leader, full information", "soft-leader-full", _E, _KNOWN, _FULL, "H^(3/2) sqrt(K)", 1 / 2, _OMD, _POLY,
        "dynamic programming instead of any oracle: three sweeps of HS^2A", _OWN, _ADAPTIVE, printed=False),
    Row("FPL", "fpl", _E, _KNOWN, _FULL, "H^2 sqrt(K)", 1 / 2, _FTPL, _POLY,
        "one plan of HS^2A", _SOURCE, "Wang and Dong 2020", printed=False),
    Row("FPOP", "fpl", _E, _UNKNOWN, _FULL, "H^2 S sqrt(AK)", 1 / 2, _FTPL, _POLY,
        "one extended plan", _VARIANT, "Neu, Gyorgy and Szepesvari 2012; refined by Wang and Dong 2020",
        printed=False),
    Row("UC-O-REPS (Bernstein)", "uc-o-reps-bernstein", _E, _UNKNOWN, _FULL, "H^2 S sqrt(AK)", 1 / 2, _OMD, _POLY,
        "a projection over a box", _VARIANT, "Rosenberg and Mansour 2019", printed=False),
    Row("Bandit O-SSP", "o-ssp", _E, Transitions.REACHABLE, _BANDIT, "H^2 sqrt(AK) / alpha", 1 / 2, _PO, _POLY,
        "HS^2A", _GUESS, "Neu, Gyorgy and Szepesvari 2010", printed=False),
    Row("Optimistic POMD", "pomd", _E, _UNKNOWN, _BANDIT, "H^2 S sqrt(A) K^(2/3)", 2 / 3, _PO, _POLY,
        "H^2 S^2 A", _SOURCE, "Shani, Efroni, Rosenberg and Mannor 2020", printed=False),
    Row("Dilated bonuses", "dilated-bonus", _E, _UNKNOWN, _BANDIT, "H^3 S sqrt(AK) + H^4", 1 / 2, _PO, _POLY,
        "H^2 S^3 A", _SOURCE, "Luo, Wei and Lee 2021", printed=False),
    Row("Delayed OPPO", "delayed-oppo", _E, _UNKNOWN, _DELAYED, "(K + D)^(2/3)", 2 / 3, _PO, _POLY,
        "H^2 S^2 A for each arrival", _SOURCE, "Lancewicki, Rosenberg and Mansour 2022", printed=False),
    Row("FPL with start mass", "ct-oracle", _S, _COMMUNICATING, _FULL, "sqrt(T / alpha)", 1 / 2, _FTPL, _ORACLE,
        "one stationary plan", _SOURCE, _CT, printed=False),
)
# fmt: on

LOWER_BOUNDS = (
    LowerBound(_E, _UNKNOWN, _BANDIT, "H^(3/2) sqrt(SAK)", "Jin, Allen-Zhu, Bubeck and Jordan 2018"),
    LowerBound(_E, _UNKNOWN, _DELAYED, "H^(3/2) sqrt(SAK) + H sqrt(D)", "Lancewicki, Rosenberg and Mansour 2022"),
    LowerBound(_S, _COMMUNICATING, _BANDIT, "S^(1/3) T^(2/3)", "Dekel, Ding, Koren and Peres 2014"),
)
