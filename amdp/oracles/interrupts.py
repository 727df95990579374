"""Ctrl-C during a call into a solver: Python raises it only between its own instructions, so the call gets a thread."""

from collections.abc import Callable
from threading import Event, Thread, current_thread, main_thread

LOOK = 0.1  # seconds between two looks at pending signals, where waiting itself does not wake up for them
PATIENCE = 1.0  # seconds that a solver is given to stop


def interruptible(work: Callable[[], object], stop: Callable[[], object]) -> None:
    """Do `work`; an exception that comes meanwhile, such as Ctrl-C, calls `stop` and is raised within `PATIENCE`.

    Work that does not stop in time goes on by itself until its next look at what `stop` has set; the process waits
    for that before it ends. Only the main thread hears Ctrl-C: in any other the work is simply done.
    """
    if current_thread() is not main_thread():
        work()
        return
    done, problems = Event(), list[BaseException]()

    def run() -> None:
        try:
            work()
        except BaseException as problem:
            problems.append(problem)
        finally:
            done.set()

    worker = Thread(target=run)
    try:
        worker.start()
        while not done.wait(LOOK):
            pass
    except BaseException:
        stop()
        if worker.ident is not None:
            done.wait(PATIENCE)
        raise
    if problems:
        raise problems[0]
