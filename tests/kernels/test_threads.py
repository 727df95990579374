"""Our products run on one thread, and the user's number of threads is as before."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from worlds import random_policies, random_rows

import amdp
from amdp.kernels import blas
from amdp.kernels.threads import multiply, one_thread
from amdp.model.chains import laws
from amdp.model.l1_ball import L1Ball
from amdp.model.mixing import Chain
from amdp.oracles.projection.certificate import flow_residual
from amdp.oracles.projection.l1_descent import L1Descent

USERS = 2
SHAPE = (6, 80, 5)
MANY_ACTIONS = (1, 200, 50)  # one state alone has as many moves as the library splits
MUCH = 10**9  # multiplications

SETTERS = [setter for setter in map(blas.setter, (blas.NUMPY, blas.SCIPY)) if setter is not None]
pytestmark = pytest.mark.skipif(not SETTERS, reason="neither numpy nor scipy multiplies with OpenBLAS")


def set_all(count: int) -> list[int]:
    """The numbers of threads before."""
    return [setter(count) for setter in SETTERS]


def counts() -> set[int]:
    """The numbers of threads of all libraries."""
    found = set_all(1)
    for setter, count in zip(SETTERS, found, strict=True):
        setter(count)
    return set(found)


@pytest.fixture(autouse=True)
def _user_wants_two() -> Iterator[None]:
    before = set_all(USERS)
    yield
    for setter, count in zip(SETTERS, before, strict=True):
        setter(count)


class Probe:
    """In the place of a matrix: what it finds when it is multiplied."""

    shape, ndim, size = (MUCH, 1), 2, MUCH

    def __init__(self, found: Callable[[], Any]) -> None:
        self.found = found

    def __matmul__(self, other: object) -> Any:
        return self.found()


def refuse() -> None:
    raise ArithmeticError


def test_a_product_meets_one_thread_and_leaves_as_many_as_before() -> None:
    assert multiply(Probe(counts), np.ones(1)) == {1}
    assert counts() == {USERS}
    with pytest.raises(ArithmeticError):
        multiply(Probe(refuse), np.ones(1))
    assert counts() == {USERS}


def test_small_products_are_left_alone_as_the_library_does_not_split_them() -> None:
    with one_thread(blas.LARGE - 1):
        assert counts() == {USERS}
    with one_thread(blas.LARGE):
        assert counts() == {1}


def test_of_threads_that_multiply_at_the_same_time_the_last_puts_the_number_back() -> None:
    entered, leave = Event(), Event()

    def another() -> None:
        with one_thread(MUCH):
            entered.set()
            leave.wait()

    thread = Thread(target=another)
    with one_thread(MUCH):
        thread.start()
        entered.wait()
    while_the_other_multiplies = counts()
    leave.set()
    thread.join()
    assert while_the_other_multiplies == {1}
    assert counts() == {USERS}


def test_a_number_that_the_user_sets_meanwhile_stays() -> None:
    with one_thread(MUCH):
        set_all(USERS + 1)
    assert counts() == {USERS + 1}


def seconds_of_other_threads(call: Callable[[], object]) -> float:
    """Seconds of processors that other threads took meanwhile, as a share of those of this one."""
    call()  # compiled, if it was not
    time.sleep(0.1)  # threads of the library look out for more work before they rest
    own, all_of_them = time.thread_time(), time.process_time()
    while time.thread_time() - own < 0.2:
        call()
    return (time.process_time() - all_of_them) / (time.thread_time() - own) - 1.0


def a_plan() -> Callable[[], object]:
    rng = np.random.default_rng(1)
    planner = amdp.bind("dp", amdp.MarkovPolicies(amdp.Kernel(random_rows(SHAPE, rng))))
    costs = rng.random((128, *SHAPE))
    return lambda: planner.minimize(costs)


def an_occupancy() -> Callable[[], object]:
    rng = np.random.default_rng(1)
    kernel, policies = amdp.Kernel(random_rows(SHAPE, rng)), random_policies(128, SHAPE, rng)
    return lambda: kernel.occupancy(policies, 0)


def a_chain() -> Callable[[], object]:
    moves = np.random.default_rng(1).dirichlet(np.ones(150), size=(1, 150))
    return lambda: laws(moves, 0, 100, 101)


def a_certificate() -> Callable[[], object]:
    rng = np.random.default_rng(1)
    kernel = amdp.Kernel(random_rows(SHAPE, rng))
    log_measure = np.log(np.maximum(kernel.occupancy(random_policies(1, SHAPE, rng), 0)[0], 1e-300))
    domain = amdp.MarkovPolicies(kernel)
    return lambda: flow_residual(domain, log_measure)


def a_long_sum() -> Callable[[], object]:
    costs = np.random.default_rng(1).random(50_000)
    return lambda: multiply(costs, costs)


def a_descent() -> Callable[[], object]:
    shape, rng = (6, 12, 3), np.random.default_rng(1)
    domain = amdp.MarkovPolicies(L1Ball(random_rows(shape, rng), np.full(shape, 0.1)))
    projector = L1Descent().bind(domain)
    point = rng.normal(size=(*shape, shape[1]))
    return lambda: projector.project(point)


def a_long_run() -> Callable[[], object]:
    rng = np.random.default_rng(1)
    _, states, actions = MANY_ACTIONS
    chain = Chain(random_rows(MANY_ACTIONS, rng)[0], np.full((states, actions), 1.0 / actions))
    losses = rng.random((states, actions))
    return lambda: (chain.long_run(losses), replace(chain).moves)


@pytest.mark.parametrize("work", [a_plan, an_occupancy, a_chain, a_certificate, a_long_sum, a_descent, a_long_run])
def test_other_threads_do_nothing_while_we_multiply(work: Callable[[], Callable[[], object]]) -> None:
    """Their share is 0; it is near 1 if products are split. Shares of processor time: no neighbour changes them."""
    assert seconds_of_other_threads(work()) < 0.1
    assert counts() == {USERS}


def test_a_plan_that_is_refused_leaves_the_number_of_threads() -> None:
    rng = np.random.default_rng(1)
    costs = rng.random((16, *SHAPE))
    costs[-1, 0, 0, 0] = np.nan
    with pytest.raises(amdp.InvalidInput):
        amdp.bind("dp", amdp.MarkovPolicies(amdp.Kernel(random_rows(SHAPE, rng)))).minimize(costs)
    assert counts() == {USERS}
