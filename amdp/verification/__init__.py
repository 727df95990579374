"""The paper's statements as checks that could fail."""

from amdp.verification.base import Check, Effort, FalseAlarm, Finding, Parts, Verdict
from amdp.verification.catalog import checks

__all__ = ["Check", "Effort", "FalseAlarm", "Finding", "Parts", "Verdict", "checks"]
