"""Directories that look like a machine, and kernels that do with a value what real ones do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pgdyno.apply.ledger.log import Journal
from pgdyno.apply.runs.changes import prepare, receipts_for, write_receipts
from pgdyno.apply.runs.host_run import HostRun, host_target, host_writers
from pgdyno.apply.session.access import no_steps
from pgdyno.apply.writers.kernel_file import KernelFileWriter
from pgdyno.model.plans.journal import Receipt, Target
from pgdyno.model.plans.plan import Change, Effect, kind_of

SWAPPINESS, AUTOGROUP = "/proc/sys/vm/swappiness", "/proc/sys/kernel/sched_autogroup_enabled"
BOOT = "/proc/sys/kernel/random/boot_id"
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
SCHEDULER, DEPTH = "/sys/block/sda/queue/scheduler", "/sys/block/sda/queue/nr_requests"
FOUND = {SWAPPINESS: "60", AUTOGROUP: "1", BOOT: "first", POOL: "100"}
SURPLUS = "/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages"
MEMORY = {"/proc/meminfo": "MemAvailable: 1000 kB"}  # too little for a single huge page


def make_machine(root: Path, more: Mapping[str, str] | None = None) -> Path:
    """Write what a machine shows into a directory."""
    for path, value in {**FOUND, SURPLUS: "0", **MEMORY, **(more or {})}.items():
        put(root, path, value)
    return root


def put(root: Path, path: str, value: str) -> None:
    """Set a value as somebody else would."""
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{value}\n")


def value_of(root: Path, path: str) -> str:
    """Return what a file shows."""
    return (root / path.lstrip("/")).read_text().strip()


def change(path: str, value: str) -> Change:
    """Return a change of a file."""
    return Change("lever", kind_of(path), path, None, value, Effect.IMMEDIATE)


def carry_out(
    root: Path,
    journal: Journal,
    values: Mapping[str, str],
    apply_id: str = "apply-1",
    server: Target | None = None,
) -> tuple[HostRun, tuple[Receipt, ...]]:
    """Change files, and return what undoes it: the receipts, newest first."""
    run = HostRun(journal, host_writers(root))
    changes = [change(path, value) for path, value in values.items()]
    receipts = receipts_for(apply_id, host_target(), prepare(changes, run.writers), server)
    write_receipts(journal, receipts, no_steps)
    return run, run.carry_out(receipts)[::-1]


def let_kernel(monkeypatch: pytest.MonkeyPatch, react: Callable[[Path, str, str], str]) -> None:
    """Let ``react`` say what a file shows after a value was written: given are root, path and value."""

    def write(writer: KernelFileWriter, key: str, value: str) -> None:
        put(writer.root, key, react(writer.root, key, value))

    monkeypatch.setattr(KernelFileWriter, "write", write)
