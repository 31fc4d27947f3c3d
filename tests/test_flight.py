"""Real calls under way: who shares one, who waits for whom, and who must not."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from httpx_cassette import _flight
from httpx_cassette._flight import Flight, Owner, join

#: A synchronous call of each of three threads, and two tasks of the first.
ONE, TWO, THREE = Owner(1, 0), Owner(2, 0), Owner(3, 0)
TASK, OTHER_TASK = Owner(1, 11), Owner(1, 12)


class Bell:
    """What wakes a waiter: counts how often it rang."""

    def __init__(self) -> None:
        self.rang = 0

    def __call__(self) -> None:
        self.rang += 1


@pytest.fixture(autouse=True)
def _nothing_stays_behind() -> Iterator[None]:
    assert ({}, {}) == (_flight._FLIGHTS, _flight._WAITING)
    yield
    _flight._FLIGHTS.clear()
    _flight._WAITING.clear()


def begin(name: str, owner: Owner) -> Flight:
    """Return a flight that somebody has begun."""
    flight, is_mine = join(name, owner)
    assert is_mine
    return flight


def joined(name: str, owner: Owner) -> Flight:
    """Return a flight of another that somebody has joined."""
    flight, is_mine = join(name, owner)
    assert not is_mine
    return flight


def wait(flight: Flight, owner: Owner) -> Bell:
    bell = Bell()
    flight.wait(owner, bell)
    return bell


# -- sharing -------------------------------------------------------------------------------------------


def test_identical_calls_share_one() -> None:
    """The first makes the call; whoever asks for the same until it lands waits for it."""
    flight = begin("x", ONE)

    assert (flight, False) == join("x", TWO)
    assert (flight, False) == join("x", THREE)
    assert begin("y", TWO) is not flight


def test_all_are_woken_once_it_lands() -> None:
    """Whoever waits is woken once, from whatever thread, and landing twice does nothing."""
    flight = begin("x", ONE)
    bells = [wait(flight, owner) for owner in (TWO, THREE)]
    assert [0, 0] == [bell.rang for bell in bells]

    thread = threading.Thread(target=flight.land)
    thread.start()
    thread.join()
    flight.land()
    assert [1, 1] == [bell.rang for bell in bells]


def test_after_a_landing_the_next_call_is_a_new_one() -> None:
    """What landed is over: its answer is stored, or the next asker makes the call."""
    first = begin("x", ONE)
    first.land()
    second = begin("x", TWO)
    first.land()

    assert (second, False) == join("x", ONE)


def test_who_comes_too_late_is_woken_at_once() -> None:
    """A flight may land between joining and waiting."""
    flight = begin("x", ONE)
    flight.land()

    assert 1 == wait(flight, TWO).rang


def test_a_flight_may_land_while_a_waiter_is_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finaliser lands it in the very thread that holds the lock, at any point; the waiter is woken once."""
    for point in ("_waiters", "is_over"):

        class Landing(Flight):
            """A flight that lands when an attribute is first looked at."""

            __slots__ = ("looked_at",)

            def __getattribute__(self, name: str) -> object:
                if name == point and not hasattr(self, "looked_at"):  # noqa: B023 - used within this turn
                    self.looked_at = True
                    self.land()
                return super().__getattribute__(name)

        assert 1 == wait(Landing("x", ONE), TWO).rang
        _flight._WAITING.clear()


def test_who_stops_waiting_is_not_woken() -> None:
    """A call that was cancelled is forgotten."""
    flight = begin("x", ONE)
    bell = wait(flight, TWO)
    flight.stop_waiting(TWO)
    flight.stop_waiting(TWO)
    flight.land()

    assert 0 == bell.rang


def test_a_closed_event_loop_keeps_no_one_from_being_woken() -> None:
    """The waiters behind one whose loop is closed are woken all the same."""
    flight = begin("x", ONE)

    def closed() -> None:
        raise RuntimeError("Event loop is closed")

    flight.wait(TWO, closed)
    bell = wait(flight, THREE)
    flight.land()

    assert 1 == bell.rang


# -- who would wait for itself -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holder", "asker", "shares"),
    [
        (ONE, ONE, False),
        (ONE, TASK, False),
        (TASK, ONE, False),
        (TASK, TASK, False),
        (TASK, OTHER_TASK, True),
        (ONE, TWO, True),
        (TASK, TWO, True),
        (TASK, Owner(2, 11), True),
    ],
    ids=[
        "the-same-thread",
        "a-task-of-the-thread",
        "a-call-that-blocks-the-loop",
        "the-same-task",
        "another-task",
        "another-thread",
        "a-thread-for-a-task",
        "a-task-of-another-thread",
    ],
)
def test_who_holds_the_first_one_open_makes_its_own(holder: Owner, asker: Owner, shares: bool) -> None:
    """A thread or task that could not go on before itself does not wait; its own call is not listed."""
    flight = begin("x", holder)
    found, is_mine = join("x", asker)

    assert (shares, not shares) == (found is flight, is_mine)
    assert (flight, False) == join("x", THREE)
    found.land()
    assert shares is flight.is_over


def test_a_call_that_is_not_listed_leaves_the_listed_one_alone() -> None:
    """When the second call of a thread lands, others go on waiting for the first."""
    listed = begin("x", ONE)
    unlisted = begin("x", ONE)
    unlisted.land()

    assert (listed, False) == join("x", TWO)


def test_two_that_would_wait_for_each_other_do_not() -> None:
    """The second of two, each holding what the other asks for, makes its own call."""
    first, _ = begin("x", ONE), begin("y", TWO)
    wait(joined("y", ONE), ONE)

    assert join("x", TWO)[1]
    assert (first, False) == join("x", THREE)


def test_a_circle_of_three_is_broken() -> None:
    """Round however many corners, the last of a circle does not wait."""
    begin("x", ONE), begin("y", TWO), begin("z", THREE)
    wait(joined("y", ONE), ONE)
    wait(joined("z", TWO), TWO)

    assert join("x", THREE)[1]


def test_two_that_join_at_once_do_not_wait_for_each_other() -> None:
    """Between joining and waiting the other may have begun to wait; the second is woken, and asks anew."""
    first, second = begin("x", ONE), begin("y", TWO)
    assert [(second, False), (first, False)] == [join("y", ONE), join("x", TWO)]

    assert [0, 1] == [wait(second, ONE).rang, wait(first, TWO).rang]
    assert join("x", TWO)[1]


def test_a_thread_that_waits_holds_up_its_tasks() -> None:
    """A synchronous call within a task blocks the loop, and with it every task that holds something."""
    begin("x", OTHER_TASK), begin("y", TWO)
    wait(joined("y", ONE), ONE)

    assert join("x", TWO)[1]


def test_tasks_hold_up_the_call_that_started_their_loop() -> None:
    """A thread that holds a stream and runs an event loop goes on when the tasks are done."""
    begin("x", ONE), begin("y", TWO)
    wait(joined("y", TASK), TASK)

    assert join("x", TWO)[1]


def test_waiting_for_what_is_over_holds_up_nobody() -> None:
    """A waiter that was woken and has not said so yet makes nobody pay for a call of its own."""
    over, held = begin("x", ONE), begin("y", TWO)
    wait(over, TWO)
    over.land()

    assert (held, False) == join("y", ONE)


# -- many at once --------------------------------------------------------------------------------------


def test_many_threads_wait_for_one_call() -> None:
    """Threads that ask while the call is made go on together when it lands, and none makes another."""
    flight = begin("x", ONE)
    gone_on: list[int] = []

    def work(number: int) -> None:
        owner, over = Owner(threading.get_ident(), 0), threading.Event()
        joined("x", owner).wait(owner, over.set)
        assert over.wait(10)
        flight.stop_waiting(owner)
        gone_on.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    while True:
        time.sleep(0.001)
        if len(_flight._WAITING) == 8:  # pragma: no branch  # mostly so at the first look
            break
    assert [] == gone_on
    flight.land()
    for thread in threads:
        thread.join(10)

    assert [*range(8)] == sorted(gone_on)


def test_a_long_chain_is_followed_once() -> None:
    """Many that wait for one, and it for another, are looked at once each."""
    begin("x", ONE), begin("y", TWO)
    wait(joined("y", ONE), ONE)
    for task in range(20):
        wait(joined("x", Owner(4, task + 1)), Owner(4, task + 1))
    wait(joined("y", Owner(1, 5)), Owner(1, 5))

    assert not join("x", THREE)[1]
    assert join("x", TWO)[1]


def test_a_child_forgets_the_calls_of_its_parent() -> None:
    """What happens at the fork: nobody in the child will land them, or is to be woken from there."""
    flight = begin("x", ONE)
    bell = wait(flight, TWO)
    _flight._after_fork()
    flight.land()

    assert 0 == bell.rang
    assert begin("x", TWO) is not flight


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_a_forked_process_forgets_the_calls_of_its_parent() -> None:
    """Nobody in a child lands what the parent began, nor is a waiter of the parent woken from there."""
    flight = begin("x", ONE)
    bell = wait(flight, TWO)

    with _flight._LOCK:  # As a thread might hold it that does not exist in the child.
        child = os.fork()
        if child == 0:  # pragma: no cover - the child
            status = 1
            try:
                flight.land()
                status = 0 if join("x", TWO)[1] and bell.rang == 0 and not _flight._WAITING else 2
            finally:
                os._exit(status)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    flight.land()
    assert 1 == bell.rang
