"""Standalone program: enter a control group, then execute another program.

It uses nothing of pgdyno.

    enter_group.py CGROUP.PROCS PROGRAM [ARGUMENT …]

Only a process that is in its group from the beginning has all its memory charged to it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    members, *argv = sys.argv[1:]
    Path(members).write_text(f"{os.getpid()}\n")
    os.execvp(argv[0], argv)  # noqa: S606 — no shell is the point
