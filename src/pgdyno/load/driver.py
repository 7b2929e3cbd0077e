"""pgdyno-driver, pgdyno's own load generator: its jobs, and the command that loads data sets.

It is built from ``driver/`` (Rust) and installed in the same directory as the ``pgdyno`` command.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.base.errors import GeneratorError, GeneratorFailedError
from pgdyno.load._contract import LoadRequest, Target
from pgdyno.load.process import Command
from pgdyno.model.experiments.workload import QUERY, SCHEMAS, DataSet, Workload
from pgdyno.postgres.statements import PreparedStatement

NAME = "driver"
_DATA_SEED = 1  # of the rows; arbitrary, but fixed
_ANSWER_LIMIT_S = 120.0  # as for a load's statements
_SLOWEST_BYTES_PER_S = 1 << 20  # arbitrary: a tenth of a slow disk's rate

# The driver's command to load a data set names one of the workloads that use it.
_LOADED_FOR = {"pgbench": "pgbench-select", "sysbench": "sysbench-read-only", "t_bit": QUERY}


@dataclass(frozen=True)
class Driver:
    """pgdyno-driver at a path that the generators' account can run."""

    program: Path

    def prepare(self, target: Target, data_set: DataSet) -> Command:
        """Return the command that loads a data set into an empty database."""
        options = [f"--option={name}={value}" for name, value in workload_options(data_set).items()]
        argv = (
            *(str(self.program), "load", _LOADED_FOR[data_set.name], conninfo(target)),
            *(*options, f"--seed={_DATA_SEED}", f"--answer-limit={_answer_limit_s(data_set):.0f}"),
        )
        return Command(argv, signal.SIGTERM)

    def statements(self, workload: str, transactions: int) -> tuple[str, ...]:
        """Return the command line that prints a workload's prepared statements.

        It takes the workload's options from its standard input, as JSON.
        """
        given = ("--options-on-stdin", f"--transactions={transactions}")
        return (str(self.program), "statements", workload, *given)

    def serve(self) -> tuple[str, ...]:
        """Return the command line for a driver that reads a job and commands from its standard input."""
        return (str(self.program), "serve")


@dataclass(frozen=True)
class ArmTarget:
    """A server under load, and the prefix of its transaction logs."""

    name: str
    target: Target
    log_prefix: Path | None = None


def job(arms: Sequence[ArmTarget], workload: str, options: Mapping[str, object], request: LoadRequest) -> str:
    """Return a job for all arms, as one line of JSON. The loop is closed unless there is a rate."""
    document: dict[str, Any] = {
        "arms": [
            {
                "name": arm.name,
                "target": _keywords(arm.target),
                "log_prefix": None if arm.log_prefix is None else str(arm.log_prefix),
            }
            for arm in arms
        ],
        "workload": workload,
        "options": dict(options),
        "clients": request.clients,
        "mode": request.protocol,
        "threads": min(request.threads, request.clients),
        "cpus": list(request.cpus),
        "seed": request.seed,
    }
    if request.rate_tps is not None:
        document["rate"] = request.rate_tps
    if request.think_times_s:
        document["think_times_s"] = list(request.think_times_s)
    if request.transactions is not None:
        document["count"] = request.transactions
    if request.is_part:
        document["is_part"] = True
    if request.first_schema is not None:
        document["first_schema"] = request.first_schema
    if request.max_errors:
        document["max_errors"] = request.max_errors
    return json.dumps(document)


def workload_options(data_set: DataSet) -> Mapping[str, int]:
    """Return the driver's options for a data set.

    Raises: GeneratorError for a data set that the driver does not know.
    """
    if data_set.name == "pgbench":
        if count := data_set.schemas:
            return {"scale": data_set.scale // count, SCHEMAS: count}
        return {"scale": data_set.scale}
    if data_set.name == "sysbench":
        return {"tables": int(data_set.options["tables"]), "table_size": data_set.scale * 1000}
    if data_set.name == "t_bit":
        return {"rows": data_set.scale * 1000, **{name: int(n) for name, n in data_set.options.items()}}
    raise GeneratorError(f'pgdyno-driver knows no data set "{data_set.name}"')


def job_options(workload: Workload) -> Mapping[str, object]:
    """Return the driver's options for a workload. Raises: GeneratorError, as ``workload_options``."""
    if statement := workload.statement:
        return {"sql": statement.sql, "rolled_back": statement.is_rolled_back}
    return workload_options(workload.data_set)


def _answer_limit_s(data_set: DataSet) -> float:
    """Return the limit for one response: the server may have to write or read the whole data set."""
    return _ANSWER_LIMIT_S + data_set.size_bytes / _SLOWEST_BYTES_PER_S


def conninfo(target: Target) -> str:
    """Return a target as a connection string in keyword/value format."""
    quoted = {
        name: value.replace("\\", "\\\\").replace("'", "\\'") for name, value in _keywords(target).items()
    }
    return " ".join(f"{name}='{value}'" for name, value in quoted.items())


def _keywords(target: Target) -> dict[str, str]:
    return {
        "host": target.host,
        "port": str(target.port),
        "user": target.user,
        "dbname": target.database,
        **({"options": _options(target.session_settings)} if target.session_settings else {}),
    }


def _options(settings: Mapping[str, str]) -> str:
    """Return settings in the format of libpq's parameter ``options``."""
    return " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())


def _escaped(value: str) -> str:
    return "".join(f"\\{character}" if character in " \\" else character for character in value)


_TRANSACTIONS = 20  # arbitrary: enough to include every statement on sysbench's eight tables
_TIMEOUT_S = 60.0  # generous: it takes a few milliseconds


def prepared_statements(
    driver: Driver, workload: Workload, options: Mapping[str, object], transactions: int = _TRANSACTIONS
) -> tuple[PreparedStatement, ...]:
    """Return a workload's prepared statements, with parameters from a client's first transactions.

    ``options`` are the driver's. Raises: GeneratorFailedError with the driver's message.
    """
    done = subprocess.run(
        driver.statements(workload.driver_name, transactions),
        input=json.dumps(dict(options)),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise GeneratorFailedError(
            f'pgdyno-driver did not list the statements of workload "{workload.name}"',
            detail=done.stderr.strip() or f"it exited with status {done.returncode}",
        )
    sample = json.loads(done.stdout)
    return tuple(
        PreparedStatement(
            name=one["name"],
            sql=one["sql"],
            parameter_types=tuple(one["parameter_types"]),
            samples=tuple(map(tuple, one["calls"])),
            calls=len(one["calls"]) / sample["transactions"],
        )
        for one in sample["statements"]
    )
