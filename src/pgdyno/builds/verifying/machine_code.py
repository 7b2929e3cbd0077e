"""Machine code of a running server that is on huge pages, as the kernel shows it of each process."""

from __future__ import annotations

from contextlib import closing

from pgdyno.builds.optimise.huge_text import moved_bytes
from pgdyno.postgres.process.instance import Instance
from pgdyno.postgres.process.processes import children, read_process

_STARTS = 2  # the code is moved anew at each start


def least_moved_bytes(server: Instance) -> int:
    """Return the least that any process of a server has on huge pages, before and after a restart.

    The processes are the postmaster, those that it always has, and one that serves a client.
    """
    return min(_moved_by_any(server) for _ in range(_STARTS))


def _moved_by_any(server: Instance) -> int:
    with server.running(), closing(server.connect()) as client:
        serving = client.info.backend_pid
        of_children = (read_process(pid, "smaps") for pid in children(server.pid) if pid != serving)
        smaps = [read_process(server.pid, "smaps"), read_process(serving, "smaps"), *of_children]
        return min(moved_bytes(text) for text in smaps if text)  # none of a process that has ended
