"""The statements of the paper as checks of the library: `amdp verify` runs them.

- `base.py`: what a check is, the implementation that it runs (`Parts`), verdicts and margins; `runs.py`: all checks;
  `page.py`: the findings as a page; `mistakes.py`: the wrong implementations that the tests show to be rejected.
- Whole games: `episode_games.py`, `stream_games.py`, by `comparison.py` with the plain loops of `reference.py` and
  `reference_stream.py`.
- Lemmas: `regret_terms.py`, `stability.py` (known transitions), `confidence_sets.py`, `unknown_terms.py` (unknown),
  `delayed_feedback.py`, `switches.py`, `stream_regret.py`, `stream_estimates.py` (infinite horizon), `estimates.py`;
  `parameters.py`: what the theorems choose; `soft_leader.py`: the soft leader and adaptive rates, of this library.
- Tools: `worlds.py`, a small world by plain array operations; `p_values.py`, exact laws and inequalities.

A new check is a function from `Parts`, an effort and a generator to a `Finding`, in the file of its family, with an
entry in that file's `checks()`. It names a mistake that it rejects; the tests of this room make the mistake.
"""

from amdp.verification.base import Check, Effort, FalseAlarm, Finding, Parts, Verdict
from amdp.verification.runs import checks

__all__ = ["Check", "Effort", "FalseAlarm", "Finding", "Parts", "Verdict", "checks"]
