"""One hypothesis profile for all tests: reproducible, and patient with the first compilation."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "amdp", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("amdp")
