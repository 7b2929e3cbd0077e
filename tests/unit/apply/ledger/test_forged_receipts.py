"""Receipts that no writer can have written are damage: none is restored, or shown as a command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.apply.receipts import TARGET, receipt

from pgdyno.apply.ledger.log import open_journal, read_journal
from pgdyno.base.ports import Found
from pgdyno.model.plans.journal import Receipt
from pgdyno.model.plans.plan import (
    ACCOUNT,
    CACHE_GROUP,
    CACHE_MOUNT,
    HUGE_PAGES,
    KERNEL,
    MSR,
    PERSISTED_FILE,
    PG_CTL_OPTIONS,
    PROGRAM_LINK,
    SETTING,
    Change,
    Effect,
    kind_of,
)
from pgdyno.plan.levers import load

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SYSCTLS = "/etc/sysctl.d/60-pgdyno.conf"
MADE_HIS = {"made": "/etc/sysctl.d\n/run/sshd", "mode": "420", "owner": "0", "group": "0"}
AS_A_PROGRAM = {"made": "", "mode": str(0o4755), "owner": "0", "group": "0"}


def written(kind: str, key: str, *, value: str = "1", found: str | None = "0", **state: str) -> Receipt:
    """A receipt of a change of this kind."""
    change = Change("lever", kind, key, None, value, Effect.IMMEDIATE)
    return replace(receipt(), change=change, found=Found(found, state), target=replace(TARGET, kind="host"))


def contents(directory: Path, one: Receipt) -> tuple[tuple[Receipt, ...], tuple[str, ...]]:
    """Write a receipt as anybody could who can write there; return what is read."""
    with open_journal(directory) as journal:
        journal.add(one)
    found = read_journal(directory)
    return found.open, found.damage


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (KERNEL, "/proc/sys/kernel/core_pattern"),
        (KERNEL, "/proc/sys/vm/../kernel/core_pattern"),
        (KERNEL, "/proc/sys/kernel/modprobe"),
        (KERNEL, "/sys/kernel/uevent_helper"),
        (KERNEL, "/sys/fs/cgroup/memory/release_agent"),
        (KERNEL, "/sys/kernel/debug/kprobes/enabled"),
        (KERNEL, "/etc/passwd"),
        (KERNEL, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"),
        (HUGE_PAGES, "/proc/sys/vm/swappiness"),
        (HUGE_PAGES, "/etc/nr_hugepages"),
        (MSR, "/dev/cpu/0/msr:0x199"),
        (MSR, "/dev/mem"),
        (CACHE_MOUNT, "/mnt"),
        (CACHE_GROUP, "/sys/fs/resctrl/others/schemata"),
        (PERSISTED_FILE, "/etc/cron.d/60-pgdyno"),
        (PERSISTED_FILE, "/etc/sysctl.d/99-local.conf"),
        (PERSISTED_FILE, "/etc/sysctl.d/60-pgdyno/../../crontab"),
        (PERSISTED_FILE, "/srv/etc/sysctl.d/60-pgdyno.conf"),
        (ACCOUNT, "account postgres"),
        (SETTING, "archive_command"),
        (SETTING, "Restore_Command"),
        (SETTING, "fsync"),
        (SETTING, "synchronous_standby_names"),
        (PG_CTL_OPTIONS, "/etc/crontab"),
        (PROGRAM_LINK, "etc/alternatives/editor"),
        ("shell", "id"),
    ],
)
def test_a_key_that_no_writer_changes_is_not_restored(tmp_path: Path, kind: str, key: str) -> None:
    found = contents(tmp_path, written(kind, key))
    said = f'pgdyno does not make changes of kind "{kind}" to {key}'
    assert found == ((), (f"line 1 of the journal is invalid: {said}",))


@pytest.mark.parametrize(
    ("one", "strange"),
    [
        (written(KERNEL, THP, **{"/proc/sys/kernel/core_pattern": "|x"}), "/proc/sys/kernel/core_pattern"),
        (
            written(KERNEL, "/sys/block/sda/queue/scheduler", **{"/sys/block/sda/queue/iosched/../x": "1"}),
            "/sys/block/sda/queue/iosched/../x",
        ),
        (written(MSR, "/dev/cpu/0/msr:0x1a4", value="0x0", found="0x80"), "the bits 0x80"),
        (written(SETTING, "shared_preload_libraries", found="/home/bob/x.so"), '"/home/bob/x.so"'),
        (written(SETTING, "Session_Preload_Libraries", value="../x"), '"../x"'),
        (written(PERSISTED_FILE, SYSCTLS, **MADE_HIS), "/run/sshd"),
        (written(PERSISTED_FILE, SYSCTLS, **AS_A_PROGRAM), "mode 4755"),
        (
            written(
                PG_CTL_OPTIONS, "/etc/postgresql/18/main/pg_ctl.conf", value="-p /a", found="-o -cfsync=off"
            ),
            "-o -cfsync=off -p postgres",
        ),
    ],
)
def test_more_than_a_writer_keeps_is_not_restored(tmp_path: Path, one: Receipt, strange: str) -> None:
    said = f"a change of {one.key} cannot include {strange}"
    assert contents(tmp_path, one) == ((), (f"line 1 of the journal is invalid: {said}",))


@pytest.mark.parametrize(
    "one",
    [
        written(KERNEL, THP, **{"setting": "never", "/proc/sys/vm/min_free_kbytes": "67584"}),
        written(KERNEL, "/proc/sys/vm/overcommit_memory"),  # as --allow-file allows
        written(MSR, "/dev/cpu/0/msr:0x1a4", value="0xf", found="0x0"),
        written(CACHE_MOUNT, "/sys/fs/resctrl", value="with cdp", found=None),
        written(CACHE_GROUP, "/sys/fs/resctrl/pgdyno/schemata", found=None),
        written(PERSISTED_FILE, SYSCTLS, made="/etc/sysctl.d", mode="416"),
        written(
            PERSISTED_FILE,
            "/etc/udev/rules.d/60-pgdyno.rules",
            found=None,
            made="/etc/udev\n/etc/udev/rules.d",
        ),
        written(ACCOUNT, "account pgdyno", found=None, files_below="/var/lib/pgdyno"),
        written(PG_CTL_OPTIONS, "/etc/postgresql/18/main/pg_ctl.conf", value="-t 9 -p /a", found="-t 9"),
        written(PROGRAM_LINK, "/opt/pg", value="/opt/pg18", found="pg17"),
    ],
)
def test_what_writers_write_is_read(tmp_path: Path, one: Receipt) -> None:
    assert contents(tmp_path, one) == ((one,), ())


def test_what_levers_change_is_read(tmp_path: Path) -> None:
    levers = [module.LEVER for module in load().values()]
    files = [file.replace("*", "0") for lever in levers for file in lever.files]
    ones = [written(kind_of(key), key, value="0xf", found="0x0") for key in files]
    ones += [written(SETTING, name) for lever in levers for name in lever.settings]
    ones = [replace(one, id=f"apply/{number}") for number, one in enumerate(ones)]
    with open_journal(tmp_path) as journal:
        journal.add(*ones)
    assert len(ones) > 50
    assert read_journal(tmp_path).damage == ()
