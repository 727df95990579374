"""Pieces of Python run in fresh processes: for what can be measured only once, such as imports and peaks of memory."""

import os
import subprocess
import sys
from collections.abc import Mapping
from time import perf_counter


def run_fresh(code: str, environment: Mapping[str, str] | None = None) -> tuple[float, str]:
    """Wall seconds of a fresh interpreter that runs `code`, start and end included, and what it printed."""
    began = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=True,
    )
    return perf_counter() - began, done.stdout.strip()
