"""One hypothesis profile for all tests: reproducible, and patient with the first compilation; a fixture for reports."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "amdp", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("amdp")


@pytest.fixture
def few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports draw one kind of figure, where it does not matter which: `tests/report` draws all of them."""
    from amdp.report import figures  # not for all tests

    monkeypatch.setattr(figures, "KINDS", {"regret": figures.KINDS["regret"]})
