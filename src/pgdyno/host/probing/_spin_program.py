"""Standalone program that keeps one CPU busy at the lowest priority.

It is run as a file, without pgdyno: ``python -I -S _spin_program.py CPU CGROUP.PROCS``. It enters the control
group first, prints ``spinning`` once it has the lowest priority, and exits at the end of its standard input,
so it does not outlive its parent.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

LOOK_EVERY_NS = 10_000_000


def spin() -> None:
    """Spin until the end of standard input."""
    os.set_blocking(0, False)
    while True:
        try:
            if not os.read(0, 1):
                return
        except BlockingIOError:
            ends = time.monotonic_ns() + LOOK_EVERY_NS
            while time.monotonic_ns() < ends:
                pass


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(f"{os.getpid()}\n")
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    sys.stdout.write("spinning\n")
    sys.stdout.flush()
    spin()
