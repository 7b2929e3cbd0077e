"""sysbench 1.0, unmodified, with its own OLTP scripts in a wrapper that logs every transaction.

On a load host, the host's own sysbench is used.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.base.errors import GeneratorError
from pgdyno.load._contract import LoadRequest, Target
from pgdyno.load.driver import ArmTarget
from pgdyno.load.process import Command
from pgdyno.model.experiments.workload import DataSet, SysbenchScript, Workload

NAME = "sysbench"
_WRAPPER = Path(__file__).with_name("sysbench_transactions.lua")


@dataclass(frozen=True)
class Sysbench:
    """sysbench at a path; ``wrapper`` is the logging script, readable by the generators' account."""

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
    """Return a job for the program that runs a load host's sysbench, as one line of JSON.

    That program adds the paths of sysbench and the wrapper, and ends sysbench: the job has no duration.
    """
    entries = []
    for arm in arms:
        own = replace(request, duration_s=0, log_prefix=arm.log_prefix or Path())
        command = Sysbench(Path(NAME), _WRAPPER).run(arm.target, workload, own)
        named = {"name": arm.name, "log": str(arm.log_prefix)}
        entries.append({**named, "options": command.argv[2:], "environment": command.environment})
    return json.dumps({"arms": entries, "cpus": list(request.cpus)})


def wrapper_text() -> str:
    """Return the text of the logging wrapper, to be written where the account can read it."""
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
