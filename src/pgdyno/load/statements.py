"""Get a workload's prepared statements and sample parameters from pgdyno-driver."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.driver import Driver
from pgdyno.model.experiments.workload import Workload
from pgdyno.postgres.statements import PreparedStatement

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
