"""One hypothesis profile for all tests: reproducible, and patient with the first compilation."""

import gc

from hypothesis import HealthCheck, settings

settings.register_profile(
    "amdp", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("amdp")


def pytest_collection_finish() -> None:
    """Thousands of collected tests live until the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()
