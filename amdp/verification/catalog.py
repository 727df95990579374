"""All checks, in the order of the paper."""

from amdp.verification import estimates, known, late, stream_estimates, streams, unknown
from amdp.verification.base import Check


def checks() -> list[Check]:
    """Episodes over a kernel, over confidence sets, with delays; streams; estimators."""
    families = (known, unknown, late, streams, stream_estimates, estimates)
    return [check for family in families for check in family.checks()]
