"""pgbench, unmodified: own or user scripts, per-transaction log (``--log``).

From PostgreSQL 15 on it tries a transaction again that a conflict has ended, and logs why it gave one up.
Before 15, such an error ends its client.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import GeneratorError
from pgdyno.load._contract import Command, LoadRequest, Target
from pgdyno.model.experiments.workload import PgbenchScripts, Workload

_MAX_TRIES = 10  # of a transaction; as of our driver
_REPEATS_FROM_MAJOR = 15
_REPEATING = (f"--max-tries={_MAX_TRIES}", "--failures-detailed")


@dataclass(frozen=True)
class Pgbench:
    """pgbench at a path. One binary serves all arms, whatever their server's version.

    ``major`` is its own version.
    """

    program: Path
    major: int

    def run(self, target: Target, workload: Workload, request: LoadRequest) -> Command:
        """Return a closed-loop run.

        SIGALRM ends it: pgbench's own timer uses that signal, so the run ends as if its time were up, with
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
