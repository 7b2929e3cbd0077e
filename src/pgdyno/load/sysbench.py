"""sysbench 1.0, unmodified: its own OLTP scripts.

They are wrapped so that every transaction is logged. On a load host it is that host's own.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.base.errors import GeneratorError
from pgdyno.load._contract import Command, LoadRequest, Target
from pgdyno.load.driver import ArmTarget
from pgdyno.model.experiments.workload import DataSet, SysbenchScript, Workload

NAME = "sysbench"
_WRAPPER = Path(__file__).with_name("sysbench_transactions.lua")


@dataclass(frozen=True)
class Sysbench:
    """sysbench at a path; ``wrapper`` is the logging script at a place that the account can read."""

    program: Path
    wrapper: Path

    def run(self, target: Target, workload: Workload, request: LoadRequest) -> Command:
        """Return a closed-loop run with uniformly distributed keys; SIGTERM ends it."""
        if not isinstance(workload.kind, SysbenchScript):
            raise GeneratorError(f'workload "{workload.name}" names no sysbench script')
        argv = (
            str(self.program),
            str(self.wrapper),
            *_options(target, workload.data_set),
            "--rand-type=uniform",
            f"--rand-seed={request.seed}",
            f"--threads={request.clients}",
            f"--time={request.duration_s}",
            "run",
        )
        environment = {"PGDYNO_SCRIPT": workload.kind.lua_script, "PGDYNO_LOG": str(request.log_prefix)}
        return Command(argv, signal.SIGTERM, environment, clean_statuses=(0, -signal.SIGTERM))


def job(arms: Sequence[ArmTarget], workload: Workload, request: LoadRequest) -> str:
    """Return a job for the program that lets a load host's sysbench run, as one line of JSON.

    That program knows sysbench's path and the wrapper's, and ends it: there is no time limit.
    """
    told = []
    for arm in arms:
        asked = replace(request, duration_s=0, log_prefix=arm.log_prefix or Path())
        command = Sysbench(Path(NAME), _WRAPPER).run(arm.target, workload, asked)
        named = {"name": arm.name, "log": str(arm.log_prefix)}
        told.append({**named, "options": command.argv[2:], "environment": command.environment})
    return json.dumps({"arms": told, "cpus": list(request.cpus)})


def wrapper_text() -> str:
    """Return the logging wrapper, to be placed where the account can read it."""
    return _WRAPPER.read_text()


def _options(target: Target, data_set: DataSet) -> tuple[str, ...]:
    return (
        "--db-driver=pgsql",
        f"--pgsql-host={target.host}",
        f"--pgsql-port={target.port}",
        f"--pgsql-user={target.user}",
        f"--pgsql-db={target.database}",
        f"--tables={data_set.options['tables']}",
        f"--table-size={data_set.scale * 1000}",
    )
