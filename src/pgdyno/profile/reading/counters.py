"""Read the counters of an arm's processes before and after a turn of its load."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.host.machine.cpu_times import read_host_cpu
from pgdyno.load.turns import Turns
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.postgres.process.processes import cpu_ns, queue_ns, threads
from pgdyno.profile.cycles import Counters


@dataclass(frozen=True)
class NoServers:
    """An empty set of servers: the profile itself reads CPU time, by process, not the load generator."""

    @property
    def pids(self) -> Sequence[Sequence[int]]:
        """Empty: no process is read."""
        return ()

    def read_cpu_ns(self) -> tuple[int, ...]:
        """Return an empty tuple."""
        return ()


@dataclass(frozen=True)
class Processes:
    """The processes of an arm: the load's sessions, the server's other processes, the load generator's."""

    sessions: tuple[int, ...]
    background: tuple[int, ...]
    clients: tuple[int, ...]
    client_threads: frozenset[int]
    cpus: tuple[int, ...]
    spinners: tuple[int, ...] = ()  # processes that keep CPUs awake; not counted as work

    @classmethod
    def of(cls, arm: Arm, clients: tuple[int, ...], split: CpuSplit) -> Processes:
        """Return the processes that exist now; call it once the load is connected."""
        sessions = arm.session_pids()
        background = tuple(pid for pid in arm.server_pids() if pid not in sessions)
        client_threads = frozenset(thread for pid in clients for thread in threads(pid))
        return cls(sessions, background, clients, client_threads, split.server, split.spinners)

    def read(self) -> Counters:
        """Return the present values of all counters."""
        host = read_host_cpu(self.cpus, without=self.spinners)
        return Counters(
            session_cpu=_cpu_ns(self.sessions),
            session_queue=sum(map(queue_ns, self.sessions)),
            background_cpu=_cpu_ns(self.background),
            client_cpu=_cpu_ns(self.clients),
            client_queue=sum(queue_ns(pid, thread) for pid in self.clients for thread in threads(pid)),
            stolen=int(host.steal_s * 1e9),
            busy=int(host.busy_s * 1e9),
        )


def _cpu_ns(pids: Sequence[int]) -> int:
    return sum(cpu_ns(pid) or 0 for pid in pids)


@dataclass(frozen=True)
class Turn:
    """A turn of an arm's load: its start and end on two clocks, and the counters' increments."""

    wall_ns: tuple[int, int]
    monotonic_ns: tuple[int, int]
    added: Counters


def take_turn(turns: Turns, arm: int, processes: Processes, seconds: float) -> Turn:
    """Run an arm's load for ``seconds``. Raises: GeneratorFailedError."""
    before, began_ns = processes.read(), time.monotonic_ns()
    [taken] = turns.take([arm], slice_s=seconds, head_s=0.0, servers=NoServers())
    ended_ns = time.monotonic_ns()
    wall_ns = (taken.start_ns, taken.drained_ns or taken.end_ns)
    return Turn(wall_ns, (began_ns, ended_ns), processes.read().since(before))
