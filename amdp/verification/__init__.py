"""The paper's statements as checks that could fail."""

from amdp.verification.base import Check, Effort, Finding, Parts, Verdict
from amdp.verification.catalog import checks

__all__ = ["Check", "Effort", "Finding", "Parts", "Verdict", "checks"]
