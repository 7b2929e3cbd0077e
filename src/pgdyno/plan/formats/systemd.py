"""A drop-in for the server's unit: limits that a plan needs, protection from the OOM killer, and trials.

Sources: systemd.exec(5); PostgreSQL manual, "Linux Memory Overcommit"; src/backend/storage/aio/
method_io_uring.c, which needs ``ulimit -n`` for the rings of all processes plus max_files_per_process;
io_uring_mlock_size(3): kernels before 5.12 count a ring's memory as locked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pgdyno.model.plans.plan import Plan
from pgdyno.plan.formats._contract import Format, comments, joined
from pgdyno.plan.formats._expressible import plain
from pgdyno.plan.formats._places import elsewhere
from pgdyno.postgres.server import Server

FORMAT = Format("systemd", "drop-in for the server's systemd unit")
SOFT_LIMIT = 1024  # systemd's default for open files: systemd-system.conf(5), DefaultLimitNOFILE
GENEROUS = 65_536  # arbitrary; far above what the processes of one server need
AUXILIARY_PROCESSES = 64  # the same number as in the lever io_method
_PROCESSES = (
    "max_connections",
    "max_worker_processes",
    "max_wal_senders",
    "autovacuum_worker_slots",
    "autovacuum_max_workers",
)


def render(plan: Plan, server: Server) -> str:
    """Return the drop-in. Comments list the planned changes that a unit cannot express."""
    unit = unit_of(server)
    path = f"/etc/systemd/system/{unit}.d/60-pgdyno.conf"
    then = f"systemctl daemon-reload && systemctl restart {unit}"
    head = [
        f"pgdyno: limits of the unit that runs PostgreSQL {server.version}.",
        f"Install as {path}, then: {then}",
        "Undo: delete the file, then the same commands.",
        f"The unit is guessed from the configuration's path; to check: systemctl status {unit}",
        f"Present values: systemctl show -p OOMScoreAdjust,LimitNOFILE,LimitMEMLOCK {unit}",
    ]
    return joined(
        comments(head),
        "[Service]",
        *_oom_killer(),
        *_open_files(plan, server),
        *_locked_memory(plan, server),
        *_to_try(plan),
        comments(elsewhere(plan, ())),
    )


def _oom_killer() -> Iterator[str]:
    remarks = [
        "OOMScoreAdjust → -1000 (restart)",
        "why: out of memory, the kernel kills a process; if that is the postmaster, every session ends.",
        "It is exempted; because of the two variables, its children reset their own value to 0.",
        'source: PostgreSQL manual, "Linux Memory Overcommit"',
    ]
    yield (
        f"{comments(remarks)}\nOOMScoreAdjust=-1000\n"
        "Environment=PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj\nEnvironment=PG_OOM_ADJUST_VALUE=0"
    )


def _open_files(plan: Plan, server: Server) -> Iterator[str]:
    needed = _files_needed(plan, server)
    if needed <= SOFT_LIMIT:
        default = f"systemd's default is {SOFT_LIMIT}"
        yield comments([f"LimitNOFILE suffices: each process needs {needed} files; {default}."])
        return
    rings = " plus, in each process, the rings of all processes" if _uses_io_uring(plan, server) else ""
    remarks = [
        f"LimitNOFILE → {max(GENEROUS, needed)} (restart); keep the unit's present value if it is higher",
        f"why: {needed} are needed, max_files_per_process{rings}; systemd's default is {SOFT_LIMIT}",
        'source: PostgreSQL manual, "max_files_per_process"; its source, method_io_uring.c',
    ]
    yield f"{comments(remarks)}\nLimitNOFILE={max(GENEROUS, needed)}"


def _locked_memory(plan: Plan, server: Server) -> Iterator[str]:
    if _uses_io_uring(plan, server):
        remarks = [
            "LimitMEMLOCK → infinity (restart)",
            "why: io_method is io_uring, and Linux before 5.12 counts its memory as locked: with a lower",
            "limit the server does not start. On newer kernels the line has no effect",
            "source: io_uring_mlock_size(3)",
        ]
        yield f"{comments(remarks)}\nLimitMEMLOCK=infinity"


def _to_try(plan: Plan) -> Iterator[str]:
    """Yield start options that no rule decides, as comments."""
    trials = [one for one in plan.skipped if one.unit_lines]
    if trials:
        yield "# To try one at a time, and to keep if a measurement shows a gain:"
    for one in trials:
        lines = "\n".join(f"#{plain(line, 'a unit of systemd')}" for line in one.unit_lines)
        yield f"{comments([f'{one.lever}: {one.reason}'])}\n{lines}"


def _files_needed(plan: Plan, server: Server) -> int:
    own = _number(plan, server, "max_files_per_process")
    if not _uses_io_uring(plan, server):
        return own
    return own + AUXILIARY_PROCESSES + sum(_number(plan, server, name) for name in _PROCESSES)


def _uses_io_uring(plan: Plan, server: Server) -> bool:
    return _value(plan, server, "io_method") == "io_uring"


def _number(plan: Plan, server: Server, name: str) -> int:
    return int(_value(plan, server, name) or 0)


def _value(plan: Plan, server: Server, name: str) -> str | None:
    """Return a setting's planned value; None if this server has no such setting."""
    guc = server.settings.get(name)
    return None if guc is None else guc.check(plan.settings.get(name, guc.setting))


_DEBIAN = re.compile(r"^/etc/postgresql/(\d+(?:\.\d+)?)/([A-Za-z0-9_.-]+)/", re.ASCII)
_RED_HAT = re.compile(
    r"^/var/lib/pgsql/(\d+(?:\.\d+)?)/data/", re.ASCII
)  # packages of the PostgreSQL project
_ANY = "postgresql.service"


def configuration_file(server: Server) -> str:
    """Return the path of postgresql.conf; a common default if the connection's role may not see it."""
    shown = server.settings.get("config_file")
    return shown.setting if shown is not None and shown.setting else "/etc/postgresql/postgresql.conf"


def unit_of(server: Server) -> str:
    """Return the name of the server's unit as installed by packages."""
    path = configuration_file(server)
    if debian := _DEBIAN.match(path):
        return f"postgresql@{debian[1]}-{debian[2]}.service"
    if red_hat := _RED_HAT.match(path):
        return f"postgresql-{red_hat[1]}.service"
    return _ANY
