"""pgbench, unmodified: built-in or user scripts, per-transaction log (``--log``).

From version 15 on, it retries a transaction after a serialization failure or deadlock, and logs the reason
when it gives up. Before 15, such an error ends the client.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import GeneratorError
from pgdyno.load._contract import LoadRequest, Target
from pgdyno.load.process import Command
from pgdyno.model.experiments.workload import PgbenchScripts, Workload

_MAX_TRIES = 10  # per transaction; as in pgdyno-driver
_REPEATS_FROM_MAJOR = 15
_REPEATING = (f"--max-tries={_MAX_TRIES}", "--failures-detailed")


@dataclass(frozen=True)
class Pgbench:
    """pgbench at a path. One binary is used for all arms, regardless of their servers' versions.

    ``major`` is pgbench's major version.
    """

    program: Path
    major: int

    def run(self, target: Target, workload: Workload, request: LoadRequest) -> Command:
        """Return a closed-loop run.

        SIGALRM ends it. As pgbench's own timer uses that signal, the run ends as after its duration, with
        the log flushed. Raises: GeneratorError for a workload without scripts.
        """
        if not isinstance(workload.kind, PgbenchScripts):
            raise GeneratorError(f'workload "{workload.name}" has no scripts for pgbench')
        argv = (
            str(self.program),
            *_connection(target),
            "--no-vacuum",
            f"--protocol={request.protocol}",
            f"--client={request.clients}",
            f"--jobs={min(request.threads, request.clients)}",
            f"--time={request.duration_s}",
            f"--random-seed={request.seed}",
            *(_REPEATING if self.major >= _REPEATS_FROM_MAJOR else ()),
            "--log",
            f"--log-prefix={request.log_prefix}",
            *(script.option for script in workload.kind.scripts),
            target.database,
        )
        return Command(argv, signal.SIGALRM)


def _connection(target: Target) -> tuple[str, ...]:
    return (f"--host={target.host}", f"--port={target.port}", f"--username={target.user}")
