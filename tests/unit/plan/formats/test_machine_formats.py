"""Formats for the machine: what stands in the files, read by each format's own grammar."""

from __future__ import annotations

import configparser
import dataclasses
import re
from types import ModuleType

import pytest
from tests.fix_plan import kernel_file, plan_of, rich_plan, rich_server, setting
from tests.fix_settings import server_of

from pgdyno.host.cache_allocation import OF_GROUP
from pgdyno.model.plans.plan import CACHE_GROUP, HUGE_PAGES, Plan, Skipped
from pgdyno.plan.formats import sysctl, systemd, tuned, udev

SWAPPINESS = "/proc/sys/vm/swappiness"
SCHEDULER = "/sys/block/sda/queue/scheduler"
READ_AHEAD = "/sys/block/sda/queue/read_ahead_kb"


def sysctls(text: str) -> dict[str, str]:
    """Read a file as sysctl.d(5) says: blank lines, comments with # or ;, else name = value."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.split("=", 1) for line in lines if line and line[0] not in "#;"]
    return {name.strip(): value.strip() for name, value in pairs}


def ini(text: str) -> dict[str, dict[str, str]]:
    """Read an INI file with the options that TuneD's loader gives to the parser; systemd's is alike."""
    parser = configparser.ConfigParser(delimiters=("=",), inline_comment_prefixes=("#",), strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return {section: dict(parser.items(section, raw=True)) for section in parser.sections()}


def rules(text: str) -> list[list[tuple[str, str, str]]]:
    """Read rules as udev(7) says: a comma-separated list of KEY operator "value" per line."""
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            assert re.fullmatch(
                r'[A-Z]+(\{[^}]+\})?[=!+:-]{1,2}"[^"]*"(, [A-Z]+(\{[^}]+\})?[=!+:-]{1,2}"[^"]*")*', line
            )
            found.append(re.findall(r'([A-Z]+(?:\{[^}]+\})?)([=!+:-]{1,2})"([^"]*)"', line))
    return found


def test_sysctl_has_what_is_in_proc_and_names_the_rest() -> None:
    text = sysctl.render(rich_plan(), rich_server())
    assert sysctls(text) == {
        "vm.swappiness": "10",
        "vm.dirty_bytes": "536870912",
        "net.ipv4.tcp_rmem": "4096 131072 16777216",
        "net.ipv4.conf.eth0/100.rp_filter": "2",
    }
    thp = "/sys/kernel/mm/transparent_hugepage/enabled"
    assert f"# {thp}: always → madvise, in tmpfiles.d:\n# w {thp} - - - - madvise\n" in text
    assert "# /sys/block/nvme0n1/queue/scheduler: mq-deadline → none, in a udev rule (--format udev)" in text
    assert "# /proc/irq/41/smp_affinity_list: 0-3 → 0, in a script at boot" in text
    assert "# /dev/cpu/3/msr:0x1a4: 0x0 → 0xf, in a script at boot (wrmsr is in msr-tools):\n" in text
    assert "# wrmsr -p 3 0x1a4 0xf\n" in text
    assert "# 12 PostgreSQL settings: --format conf or sql" in text


def test_sysctl_says_what_was_why_it_changes_and_how_to_undo_it() -> None:
    text = sysctl.render(plan_of(kernel_file(SWAPPINESS, "60", "10")), server_of(18))
    assert "# vm.swappiness: 60 → 10 (immediate)\n# why: this file is in this plan because it's" in text
    assert "# undo: delete this file; until the next restart: write 60 to /proc/sys/vm/swappiness\n" in text


def test_undo_of_a_limit_that_was_not_in_force_names_the_one_that_was() -> None:
    text = sysctl.render(plan_of(kernel_file("/proc/sys/vm/dirty_bytes", "0", "1000000")), server_of(18))
    unwrapped = " ".join(text.split("\n#   "))
    assert "write the former value of vm.dirty_ratio, which was in effect instead" in unwrapped
    assert "write 0 into" not in text


@pytest.mark.parametrize("module", [sysctl, udev, tuned])
def test_a_plan_without_the_machine_says_how_to_get_one(module: ModuleType) -> None:
    text = module.render(plan_of(setting("work_mem", "4MB", "8MB")), server_of(18))
    assert "# The plan does not change the machine; --layers all includes the machine.\n" in text


def test_udev_sets_the_attributes_of_each_device_in_the_order_of_the_plan() -> None:
    change, block = ("ACTION", "==", "add|change"), ("SUBSYSTEM", "==", "block")
    disk = ("KERNEL", "==", "nvme0n1")
    assert rules(udev.render(rich_plan(), rich_server())) == [
        [change, block, disk, ("ATTR{queue/scheduler}", "=", "none")],
        [change, block, disk, ("ATTR{queue/read_ahead_kb}", "=", "128")],
        [change, block, disk, ("ATTR{queue/nr_requests}", "=", "1023")],
        [
            ("ACTION", "==", "add|change|move"),  # an interface that is renamed is moved: lib/kobject.c
            ("SUBSYSTEM", "==", "net"),
            ("KERNEL", "==", "eth0"),
            ("ATTR{queues/rx-0/rps_cpus}", "=", "3"),
        ],
    ]


def test_tuned_puts_each_change_into_the_section_that_knows_it() -> None:
    assert ini(tuned.render(rich_plan(), rich_server())) == {
        "main": {"summary": "PostgreSQL 18.6, as planned by pgdyno", "include": "postgresql"},
        "vm": {"transparent_hugepages": "madvise"},
        "disk": {"devices": "!nvme0n1"},
        "disk_nvme0n1": {"type": "disk", "devices": "nvme0n1", "elevator": "none", "readahead": "128"},
        "sysctl": {
            "vm.swappiness": "10",
            "vm.dirty_bytes": "536870912",
            "net.ipv4.tcp_rmem": "4096 131072 16777216",
        },
        "sysfs": {
            "/sys/kernel/mm/transparent_hugepage/defrag": "madvise",
            "/sys/block/nvme0n1/queue/nr_requests": "1023",
            "/sys/class/net/eth0/queues/rx-0/rps_cpus": "3",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "3224",
        },
    }


def test_tuned_leaves_a_name_with_a_dot_to_sysctl_d() -> None:
    text = tuned.render(rich_plan(), rich_server())
    assert "# net.ipv4.conf.eth0.100.rp_filter: 1 → 2, in sysctl.d (--format sysctl)\n" in text


def test_tuned_has_no_section_without_an_option() -> None:
    assert set(ini(tuned.render(plan_of(kernel_file(SWAPPINESS, "60", "10")), server_of(18)))) == {
        "main",
        "sysctl",
    }
    assert set(ini(tuned.render(plan_of(), server_of(18)))) == {"main"}


def test_tuned_takes_every_planned_disk_from_the_section_of_the_profile_below() -> None:
    disks = [
        kernel_file(READ_AHEAD, "8192", "128"),
        kernel_file(READ_AHEAD.replace("sda", "dm-0"), "8192", "128"),
    ]
    read = ini(tuned.render(plan_of(*disks), server_of(18)))
    assert read["disk"] == {"devices": "!sda,!dm-0"}
    assert read["disk_dm-0"] == {"type": "disk", "devices": "dm-0", "readahead": "128"}


def unit(plan: Plan) -> dict[str, list[str]]:
    """Read a drop-in: a key may come more than once."""
    read: dict[str, list[str]] = {}
    lines = systemd.render(plan, rich_server()).splitlines()
    for line in lines[lines.index("[Service]") + 1 :]:
        if line and not line.startswith("#"):
            key, value = line.split("=", 1)
            read.setdefault(key, []).append(value)
    return read


PROTECTION = {
    "OOMScoreAdjust": ["-1000"],
    "Environment": ["PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj", "PG_OOM_ADJUST_VALUE=0"],
}


def test_the_unit_gets_the_limits_that_io_uring_needs() -> None:
    plan = plan_of(setting("io_method", "worker", "io_uring"))
    assert unit(plan) == {**PROTECTION, "LimitNOFILE": ["65536"], "LimitMEMLOCK": ["infinity"]}
    # 1000 of its own; 100 connections, 8 workers, 10 WAL senders, 16 + 3 of autovacuum, 64 others
    assert "why: 1201 are needed" in systemd.render(plan, rich_server())


def test_the_unit_names_in_comments_what_no_rule_decides() -> None:
    trials = (
        Skipped("sched_batch", "reported only: SCHED_OTHER", ("CPUSchedulingPolicy=batch",)),
        Skipped("swappiness", "vm.swappiness is already 10"),
        Skipped("numa_interleave", "reported only: 2 nodes", ("NUMAPolicy=interleave", "NUMAMask=all")),
    )
    plan = dataclasses.replace(plan_of(), skipped=trials)
    assert unit(plan) == PROTECTION
    assert (
        "\n\n# To try one at a time, and to keep if a measurement shows a gain:\n\n"
        "# sched_batch: reported only: SCHED_OTHER\n#CPUSchedulingPolicy=batch\n\n"
        "# numa_interleave: reported only: 2 nodes\n#NUMAPolicy=interleave\n#NUMAMask=all\n"
    ) in systemd.render(plan, rich_server())
    assert "To try" not in systemd.render(plan_of(), rich_server())


def test_the_unit_keeps_its_limits_where_nothing_needs_more() -> None:
    assert unit(plan_of()) == PROTECTION
    assert "LimitNOFILE suffices: each process needs 1000 files" in systemd.render(plan_of(), rich_server())


def test_more_files_than_is_generous_are_what_the_unit_gets() -> None:
    plan = plan_of(setting("max_files_per_process", "1000", "100000"))
    assert unit(plan)["LimitNOFILE"] == ["100000"]


@pytest.mark.parametrize(
    ("config_file", "expected"),
    [
        ("/etc/postgresql/17/main/postgresql.conf", "postgresql@17-main.service"),
        ("/var/lib/pgsql/18/data/postgresql.conf", "postgresql-18.service"),
        ("/srv/pg/postgresql.conf", "postgresql.service"),
    ],
)
def test_the_unit_is_guessed_from_where_the_configuration_lies(config_file: str, expected: str) -> None:
    found = server_of(18)
    moved = dataclasses.replace(found.settings["config_file"], setting=config_file)
    server = dataclasses.replace(found, settings={**found.settings, "config_file": moved})
    text = systemd.render(plan_of(), server)
    assert f"Install as /etc/systemd/system/{expected}.d/60-pgdyno.conf" in text


def test_all_that_a_unit_cannot_hold_is_named_with_its_place() -> None:
    text = systemd.render(
        plan_of(
            kernel_file(SWAPPINESS, "60", "10"),
            kernel_file(SCHEDULER, "mq-deadline", "none"),
            kernel_file("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0", "8", kind=HUGE_PAGES),
        ),
        server_of(18),
    )
    assert "# vm.swappiness: 60 → 10, in sysctl.d (--format sysctl)\n" in text
    assert f"# {SCHEDULER}: mq-deadline → none, in a udev rule (--format udev)\n" in text
    assert "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 8" in text


def test_a_division_of_caches_belongs_in_no_file_that_is_read_at_start() -> None:
    """The server's processes are moved, and are there only when it has been started."""
    line = kernel_file(OF_GROUP, "no group", "L3:0=f for /srv/pg", CACHE_GROUP)
    text = tuned.render(plan_of(line), server_of(18))
    assert "/sys/fs/resctrl/pgdyno/schemata: no group → L3:0=f for /srv/pg, in a script that runs" in text
    assert set(ini(text)) == {"main"}
