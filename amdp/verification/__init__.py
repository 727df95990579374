"""The statements of the paper as checks of the library: `amdp verify` runs them.

- `base.py`: what a check is, the implementation that it runs (`Parts`), verdicts and margins; `runs.py`: all checks;
  `page.py`: the findings as a page.
- Whole games: `games.py`, by `comparison.py` with the plain loops of `reference.py` and `reference_stream.py`;
  `regrets.py`: their regret.
- Lemmas: `known_transitions.py`, `unknown_transitions.py`, `stability_over_sets.py`, `delayed_feedback.py`,
  `infinite_horizon.py`, `estimates.py`, `stream_estimates.py`, `stream_stability.py`; `parameters.py`: what the
  theorems choose; `soft_leader.py`, `adaptive_rates.py`: the soft leader and rates that tune themselves, of this
  library.
- Tools: `worlds.py`, a small world by plain array operations; `p_values.py`, exact laws and inequalities.

A new check is a function from `Parts`, an effort and a generator to a `Finding`, in the file of its family, under the
decorator `check`. It names a mistake that it rejects; the tests of this room make the mistake.
"""

from amdp.verification.base import Check, Effort, Finding, Parts, Verdict
from amdp.verification.runs import checks

__all__ = ["Check", "Effort", "Finding", "Parts", "Verdict", "checks"]
