"""Stalls and their causes, on intervals and samples made by hand."""

from __future__ import annotations

import pytest

from pgdyno.model.experiments.step_record import IntervalRecord, Stall, StallCause
from pgdyno.postgres.waits import ActivitySample, Wait
from pgdyno.studies.bundled.insert_benchmark.stalls import busy_backends, find_stalls, wait_shares

COMPUTING = Wait("CPU")
WAL_WRITE = Wait("LWLock", "WALWrite")
WAL_SYNC_17 = Wait("IO", "WalSync")  # version 17 and later; before that "WALSync"
FILE_READ = Wait("IO", "DataFileRead")
AIO_18 = Wait("IO", "AioIoCompletion")
LOCK = Wait("Lock", "transactionid")


def seconds(*transactions: int) -> list[IntervalRecord]:
    return [IntervalRecord(float(at), 1.0, {"insert": count}) for at, count in enumerate(transactions)]


def sample(
    at_s: float, waits: dict[Wait, int], *, is_checkpointing: bool = False, workers: int = 0
) -> ActivitySample:
    return ActivitySample(at_s, tuple(waits.items()), is_checkpointing, workers)


STALLED = seconds(100, 110, 90, 20, 30, 100, 105)  # the median is 100; from 3 s to 5 s it is below 50
QUIET = [sample(at_s, {COMPUTING: 4}) for at_s in (0.5, 1.5, 2.5, 5.5, 6.5)]


def only_stall(*inside: ActivitySample) -> Stall:
    (stall,) = find_stalls(STALLED, [*QUIET, *inside], "insert")
    assert (stall.start_s, stall.end_s) == (3.0, 5.0)
    return stall


def test_successive_slow_intervals_are_one_stall_and_others_another() -> None:
    found = find_stalls(seconds(100, 10, 100, 0, 0, 100, 100, 51), [], "insert")
    assert [(stall.start_s, stall.end_s) for stall in found] == [(1.0, 2.0), (3.0, 5.0)]


def test_half_of_the_median_is_no_stall() -> None:
    assert find_stalls(seconds(100, 100, 100, 100, 50), [], "insert") == ()


def test_four_intervals_say_nothing() -> None:
    assert find_stalls(seconds(100, 0, 100, 100), [], "insert") == ()
    assert find_stalls([], [], "insert") == ()


def test_the_rest_of_a_step_is_left_out_because_it_is_shorter() -> None:
    rest = IntervalRecord(6.0, 0.2, {"insert": 1})
    assert find_stalls([*seconds(100, 100, 100, 100, 100, 100), rest], [], "insert") == ()


def test_rates_are_compared_because_intervals_of_a_busy_driver_are_longer() -> None:
    long = IntervalRecord(5.0, 4.0, {"insert": 180})  # 45/s, though more than in any other interval
    (stall,) = find_stalls([*seconds(100, 100, 100, 100, 100), long], [], "insert")
    assert (stall.start_s, stall.end_s) == (5.0, 9.0)


def test_the_time_after_the_first_client_has_finished_is_left_out() -> None:
    slowing = seconds(100, 100, 100, 100, 100, 40, 40)
    assert len(find_stalls(slowing, [], "insert")) == 1
    assert find_stalls(slowing, [], "insert", until_s=5.5) == ()


def test_only_the_role_that_the_step_is_about_can_stall() -> None:
    assert find_stalls(STALLED, [], "query") == ()


def test_a_running_checkpoint_comes_first() -> None:
    found = only_stall(
        sample(3.2, {WAL_WRITE: 4}, is_checkpointing=True, workers=1),
        sample(4.2, {WAL_WRITE: 4}, is_checkpointing=False, workers=1),
    )
    assert found.cause is StallCause.CHECKPOINT
    assert found.why == "a checkpoint was running in 1 of 2 samples; in the whole step, in 1 of 7"


def test_autovacuum_comes_before_what_backends_wait_for() -> None:
    found = only_stall(sample(3.2, {FILE_READ: 4}, workers=2), sample(4.2, {FILE_READ: 4}, workers=1))
    assert found.cause is StallCause.AUTOVACUUM
    assert found.why == "autovacuum was running in 2 of 2 samples; in the whole step, in 2 of 7"


def test_a_checkpoint_in_few_of_the_samples_is_not_the_cause() -> None:
    found = only_stall(
        sample(3.1, {WAL_WRITE: 2}, is_checkpointing=True),
        sample(3.6, {WAL_WRITE: 2}),
        sample(4.1, {WAL_WRITE: 2}),
    )
    assert found.cause is StallCause.WAL


def test_most_backends_waited_for_wal() -> None:
    found = only_stall(sample(3.2, {WAL_WRITE: 3, COMPUTING: 1}), sample(4.2, {WAL_SYNC_17: 2, FILE_READ: 1}))
    assert found.cause is StallCause.WAL
    assert found.why == "5 of 7 busy backends waited for WAL (LWLock:WALWrite 3, IO:WalSync 2)"


@pytest.mark.parametrize("wait", [FILE_READ, AIO_18, Wait("IPC", "BufferIo"), Wait("IPC", "BufferIO")])
def test_most_backends_waited_for_the_disk(wait: Wait) -> None:
    found = only_stall(sample(3.2, {wait: 3, WAL_WRITE: 1}))
    assert found.cause is StallCause.IO
    assert found.why == f"3 of 4 busy backends waited for I/O ({wait} 3)"


def test_anything_else_is_unknown_and_says_what_was_seen() -> None:
    found = only_stall(sample(3.2, {LOCK: 3, COMPUTING: 1}))
    assert found.cause is StallCause.UNKNOWN
    assert found.why == (
        "neither checkpoint nor autovacuum in most of 1 sample; 4 busy backends: Lock:transactionid 3, CPU 1"
    )


def test_a_server_with_nothing_to_do_is_not_blamed() -> None:
    found = only_stall(sample(3.2, {}), sample(4.2, {}))
    assert found.cause is StallCause.UNKNOWN
    assert found.why == "no backend was busy in 2 samples: there was no work"


def test_without_a_sample_nothing_is_known() -> None:
    found = only_stall()
    assert (found.cause, found.why) == (StallCause.UNKNOWN, "no sample was taken during it")


def test_waits_are_shares_of_busy_backends_by_type_the_largest_first() -> None:
    samples = [sample(0.0, {COMPUTING: 1, WAL_WRITE: 2}), sample(1.0, {Wait("LWLock", "BufferMapping"): 1})]
    assert list(wait_shares(samples).items()) == [("LWLock", 0.75), ("CPU", 0.25)]
    assert busy_backends(samples) == 4
    assert wait_shares([]) == {}
