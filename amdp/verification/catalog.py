"""All checks, in the order of the paper."""

from amdp.verification import estimates, known, late, streams, unknown
from amdp.verification.base import Check


def checks() -> list[Check]:
    """Episodes over a kernel, over confidence sets, with delays; streams; estimators."""
    return [check for family in (known, unknown, late, streams, estimates) for check in family.checks()]
