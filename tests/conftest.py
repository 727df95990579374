"""For all tests: one hypothesis profile, reproducible and patient with the first compilation; few figures; memory."""

import gc

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "amdp", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("amdp")


def pytest_collection_finish() -> None:
    """Thousands of collected tests live until the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports draw one kind of figure, where it does not matter which: `tests/report` draws all of them."""
    from amdp.report import figures  # not for all tests

    monkeypatch.setattr(figures, "KINDS", {"regret": figures.KINDS["regret"]})
