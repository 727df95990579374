"""All checks, in the order of the paper."""

from amdp.verification import estimates, games, known, late, stream_estimates, streams, unknown
from amdp.verification.base import Check


def checks() -> list[Check]:
    """Whole games; then episodes over a kernel, over confidence sets, with delays; streams; estimators."""
    families = (games, known, unknown, late, streams, stream_estimates, estimates)
    return [check for family in families for check in family.checks()]
