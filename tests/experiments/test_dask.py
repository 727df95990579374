"""A real Dask cluster of two processes, one of which is killed midway."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amdp.errors import InvalidInput
from amdp.experiments.engines import DaskCluster
from amdp.experiments.execution import execute
from amdp.experiments.progress import Tally, Watcher
from amdp.experiments.runner import Outcome, run
from amdp.experiments.storage import Store
from experiments.specs import small, table

distributed: Any = pytest.importorskip("distributed")
# What it does not close itself as a worker is killed:
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture
def cluster() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        yield cluster


def test_the_results_are_those_of_a_plain_loop_though_a_worker_is_killed(tmp_path: Path, cluster: Any) -> None:
    spec = small(seeds=10, episodes=100)
    with Store(tmp_path / "plain") as store:
        for one in spec.first():
            store.write(execute(one.settings))
    with distributed.Client(cluster, set_as_default=False) as client:
        processes = sorted(client.run(os.getpid).values())

    class Killer(Watcher):
        killed = 0

        def show(self, tally: Tally) -> None:
            if tally.done >= 3 and not self.killed:
                self.killed = tally.done
                os.kill(processes[0], signal.SIGKILL)

        def note(self, text: str) -> None:
            raise AssertionError(text)

    killer = Killer()
    with Store(tmp_path / "dask") as store:
        outcome = run(spec, store, DaskCluster(cluster.scheduler_address), killer)
    assert outcome == Outcome(found=0, played=20)
    assert 3 <= killer.killed < 20
    assert table(spec, tmp_path / "dask") == table(spec, tmp_path / "plain")


def test_no_scheduler_is_an_error_of_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amdp.experiments.engines.CONNECTION_TIMEOUT", "1s")
    with (
        pytest.raises(InvalidInput, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        Store(tmp_path) as store,
    ):
        run(small(), store, DaskCluster("tcp://127.0.0.1:9"))
