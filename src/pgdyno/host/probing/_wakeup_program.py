"""Standalone program that measures the latency of waking a process on another CPU.

It is run as a file, without pgdyno: ``python -I -S _wakeup_program.py WAKER_CPU WOKEN_CPU``. A separate
process can be pinned and forked, whatever threads its caller has. It prints a JSON object: ``idle_us`` has
the times with the woken CPU idle, and ``busy_us`` those with that CPU kept busy by a lowest-priority process.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time

SAMPLES = 300
PAUSE_NS = 100_000
"""Pause between two wake-ups: about a short statement, and less than the 200 µs that a guest may poll."""
LIMIT_NS = 100_000_000  # for the samples of one kind; both kinds and the start should take 0.3 s at most
_STAMP = struct.Struct("q")


def measure_us(woken_cpu: int) -> list[float]:
    """Return the times in µs from a write on this CPU until a reader on the other CPU runs."""
    to_woken, from_waker = os.pipe()
    to_waker, from_woken = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(from_waker)
        _answer(to_woken, from_woken, woken_cpu)
    os.close(to_woken)
    os.close(from_woken)  # otherwise the child's exit would not be seen
    os.set_blocking(to_waker, False)
    try:
        return _sample(from_waker, to_waker)
    finally:
        os.close(from_waker)  # the child exits at the end of its input
        os.close(to_waker)
        os.waitpid(child, 0)


def _answer(reading: int, writing: int, cpu: int) -> None:
    """Answer every byte with the time when it was read, until the end of input, and exit."""
    os.sched_setaffinity(0, {cpu})
    while os.read(reading, 1):
        os.write(writing, _STAMP.pack(time.monotonic_ns()))
    os._exit(0)


def _sample(writing: int, reading: int) -> list[float]:
    times: list[float] = []
    ends = time.monotonic_ns() + LIMIT_NS
    while len(times) < SAMPLES and time.monotonic_ns() < ends:
        _stay_awake(PAUSE_NS)
        began = time.monotonic_ns()
        os.write(writing, b"x")
        times.append((_stamp(reading) - began) / 1000)
    return times


def _stay_awake(duration_ns: int) -> None:
    ends = time.monotonic_ns() + duration_ns
    while time.monotonic_ns() < ends:
        pass


def _stamp(reading: int) -> int:
    """Return the woken process's time stamp.

    Polls without sleeping, since the answer must not wake a process.
    """
    while True:
        try:
            answer = os.read(reading, _STAMP.size)
        except BlockingIOError:
            continue
        if not answer:
            raise ChildProcessError("the woken process exited")
        stamp: int = _STAMP.unpack(answer)[0]
        return stamp


def measure_busy_us(woken_cpu: int) -> list[float]:
    """Return the times of ``measure_us`` while a lowest-priority process keeps the other CPU busy."""
    watched, held = os.pipe()
    spinner = os.fork()
    if spinner == 0:
        os.close(held)
        _spin(watched, woken_cpu)
    os.close(watched)
    try:
        return measure_us(woken_cpu)
    finally:
        os.close(held)
        os.waitpid(spinner, 0)


def _spin(watched: int, cpu: int) -> None:
    """Keep a CPU busy at the lowest priority until the other end of a pipe is closed."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.set_blocking(watched, False)
    while True:
        try:
            if not os.read(watched, 1):
                os._exit(0)
        except BlockingIOError:
            _stay_awake(1_000_000)


if __name__ == "__main__":
    waker, woken = map(int, sys.argv[1:])
    for cpu in (woken, waker):  # the woken CPU as well: an error is then reported here and not in a child
        os.sched_setaffinity(0, {cpu})
    sys.stdout.write(json.dumps({"idle_us": measure_us(woken), "busy_us": measure_busy_us(woken)}))
