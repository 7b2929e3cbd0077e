"""Standalone program: enter a control group, then execute another program.

It imports nothing from pgdyno.

    enter_group.py CGROUP.PROCS PROGRAM [ARGUMENT …]

A process must be in its group from the start for all its memory to be charged to the group.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    members, *argv = sys.argv[1:]
    Path(members).write_text(f"{os.getpid()}\n")
    os.execvp(argv[0], argv)  # noqa: S606 — no shell is the point
