"""The readable host; expected lines written by hand from the fixture machines' files."""

from __future__ import annotations

import pytest
from tests.unit.host.machines import MACHINES, load

from pgdyno.plan.view.host_text import host_text


def lines_of(machine: str) -> list[str]:
    return host_text(load(machine).inspect()).splitlines()


BARE, ARM, VM = "bare-metal-2-socket", "arm-neoverse-64k-pages", "firecracker-vm"
CPU = "/sys/devices/system/cpu"


@pytest.mark.parametrize(
    ("machine", "name", "value", "source"),
    [
        (BARE, "sockets", "2", f"{CPU}/cpu*/topology/package_cpus_list"),
        (BARE, "values also set by", "TuneD, which is active with profile throughput-performance", "/proc"),
        (VM, "values also set by", "no known program", "/proc"),
        (BARE, "SMT", "yes", f"{CPU}/smt/active"),
        (
            BARE,
            "huge pages",
            "26000 × 2\xa0MB (1200 free, 800 reserved); 0 × 1\xa0GB (0 free, 0 reserved)",
            "/sys/kernel/mm/hugepages",
        ),
        (ARM, "instruction set", "atomics crc32 pmull asimd spe (and 12 more)", "/proc/cpuinfo"),
        (ARM, "L3 cache", "unknown: no level 3 cache listed", f"{CPU}/cpu0/cache"),
        ("wsl2", "instruction set", "fpu tsc msr sse2 ht lm sse4_2 popcnt hypervisor avx2", "/proc/cpuinfo"),
        ("docker-cgroup-v1", "CPUs", "1.5", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"),
        ("docker-cgroup-v1", "memory", "1.5\xa0GB", "/sys/fs/cgroup/memory/memory.stat"),
        ("docker-cgroup-v1", "interfaces", "none", "/sys/class/net"),
        ("docker-cgroup-v2", "cpuset", "2-5", "/sys/fs/cgroup/cpuset.cpus.effective"),
        (
            VM,
            "resource limits",
            "open files 20000, processes 96365, locked memory 8388608, core file size 0",
            "/proc/self/limits",
        ),
        ("no-permission", "disks", "unknown: permission denied", "/sys/block"),
    ],
)
def test_a_fact_is_one_line_of_name_value_and_source(
    machine: str, name: str, value: str, source: str
) -> None:
    assert f"  {name:<24}{value}  ({source})" in lines_of(machine)


@pytest.mark.parametrize(
    "line",
    [
        "  nvme1n1",
        "    size                  3.49\xa0TB  (/sys/block/nvme0n1/size)",
        "  /pgwal",
        "    /dev/nvme1n1p1, xfs, rw,noatime,seclabel,attr2,inode64,logbufs=8,logbsize=32k,noquota",
        "    disk                  nvme1n1  (/sys/dev/block/259:1)",
        "    rps cpus              0000, 0000, 0000, 0000  (/sys/class/net/ens1f0np0/queues)",
        "  vm.dirty_bytes                      1073741824  (/proc/sys/vm/dirty_bytes)",
        "  kernel.sem                          32000 1024000000 500 32000  (/proc/sys/kernel/sem)",
    ],
)
def test_disks_mounts_interfaces_and_kernel_settings_are_listed(line: str) -> None:
    assert line in lines_of(BARE)


def test_of_the_mitigations_those_are_shown_that_cost_time() -> None:
    (line,) = [line for line in lines_of(BARE) if line.startswith("  mitigations")]
    assert "gather_data_sampling: Mitigation: Microcode; spectre_v2:" in line
    assert "RSB filling; 1 not affected  (" in line


@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_has_all_sections(machine: str) -> None:
    titles = [line for line in lines_of(machine) if line and not line.startswith(" ")]
    assert titles == [
        "Host",
        "Processor",
        "Memory",
        "Limits",
        "Storage",
        "Mounts",
        "Network",
        "Kernel settings",
    ]
