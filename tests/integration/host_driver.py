"""Changes the machine, and restores it, in processes of their own that kill themselves where they are told.

As a program it reads tasks from standard input, one JSON document a line, and forks a process for each, so
that Python starts once. It answers with a line of JSON: what the process said ("done", its error, or where
it was killed), and the names of the operations on files that it has done.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.apply.host_state import HostState
from pgdyno.apply.ledger import receipt
from pgdyno.apply.ledger.log import open_journal
from pgdyno.apply.revert import RevertRequest, revert
from pgdyno.apply.revert_host import revert_host
from pgdyno.apply.runs.changes import new_apply_id, prepare, receipts_for, write_receipts
from pgdyno.apply.runs.host_run import HostRun, host_target, host_writers
from pgdyno.apply.session.access import ServerAccess, no_steps
from pgdyno.apply.session.query import Connection
from pgdyno.base.errors import ConnectionFailedError
from pgdyno.model.plans.plan import PERSISTED_FILE, Change, Effect, kind_of
from pgdyno.postgres.connection.connection import addresses, connect_to_change
from pgdyno.postgres.inspection.inspection import inspect_server

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.integration.journal_support import plan_of, with_files
from tests.integration.killed_at_operation import Counter

Ask = Callable[..., dict[str, Any]]
IN_ANY_ETC = re.compile("/.+" + receipt._PERSISTED.pattern + "|" + receipt._PERSISTED.pattern, re.ASCII)
"""Files for the next start, also in a directory that stands for /etc."""
_write = os.write


@contextmanager
def asking() -> Iterator[Ask]:
    """Start this file as a program, and provide a function that lets it do a task and returns its answer."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        tasks, answers = process.stdin, process.stdout

        def ask(action: str, journal: Path, **task: Any) -> dict[str, Any]:
            tasks.write(json.dumps({"action": action, "journal": str(journal), **task}) + "\n")
            tasks.flush()
            answer: dict[str, Any] = json.loads(answers.readline())
            return answer

        yield ask
        tasks.close()


def carry_out(task: dict[str, Any]) -> None:
    """Do what the task says, in this process."""
    journal, values, writers = Path(task["journal"]), task.get("values", {}), host_writers()
    files = task.get("files", {})
    match task["action"]:
        case "change":
            changes = [
                Change("test", kind_of(path), path, None, value, Effect.IMMEDIATE)
                for path, value in values.items()
            ] + [
                Change("test", PERSISTED_FILE, path, None, text, Effect.IMMEDIATE)
                for path, text in files.items()
            ]
            with open_journal(journal) as opened:
                receipts = receipts_for(new_apply_id(), host_target(), prepare(changes, writers))
                write_receipts(opened, receipts, no_steps)
                HostRun(opened, writers).carry_out(receipts)
        case "hold":
            with HostState(journal, writers).holding(values):
                pass
        case "take turns":
            with HostState(journal, writers).holding(values, {}) as begin_turn:
                assert begin_turn is not None
                for arm in (1, 0, 1):
                    begin_turn(arm)
        case "restore":
            access = ServerAccess(_no_server, journal, inspect_server, host_writers=writers)
            assert revert_host(access, RevertRequest(is_all=True)).is_complete
        case "apply":
            plan = with_files(plan_of(**task["settings"]), values)
            apply_plan(_access(task["dsn"], journal), ApplyRequest(plan))
        case "revert":
            assert revert(_access(task["dsn"], journal), RevertRequest(is_all=True)).is_complete


def _access(dsn: str, journal: Path) -> ServerAccess:
    def open_connection() -> Connection:
        return connect_to_change(dsn)

    return ServerAccess(
        open_connection, journal, inspect_server, addresses=addresses(dsn), host_writers=host_writers()
    )


def _no_server() -> NoReturn:
    raise ConnectionFailedError("no server is asked")


def run_forked(task: dict[str, Any]) -> str:
    """Do what the task says in a new process, and return what became of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _run(task, writing)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def _run(task: dict[str, Any], writing: int) -> NoReturn:
    def tell(said: str) -> None:
        _write(writing, json.dumps({"said": said, "operations": counter.names}).encode())

    counter = Counter(Path(task["journal"]), tell, task.get("kill_before"), task.get("is_torn", False))
    try:
        counter.install()
        carry_out(task)
        tell("done")
    except Exception as error:  # noqa: BLE001 — whatever it is, the test shows it
        tell(f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)


if __name__ == "__main__":
    receipt._PERSISTED = IN_ANY_ETC
    for line in sys.stdin:
        sys.stdout.write(run_forked(json.loads(line)) + "\n")
        sys.stdout.flush()
