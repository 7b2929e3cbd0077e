"""What a server has to live on: read where it provably runs, stated by the user, or unknown."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.fix_settings import GB, MB, host_of, reference_figures, server_of, set_by, settings_of
from tests.unit.host.machines import load

from pgdyno.base.errors import UsageError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.host import BlockDevice, Host, HugePagePool, Mount
from pgdyno.plan.engine.resources import Figures, HugePages, StorageKind, proven_host, resources_of


def reason(fact: Fact[int] | Fact[float] | Fact[StorageKind]) -> str:
    assert isinstance(fact.value, Unknown)
    return fact.value.reason


def with_limits(host: Host, **limits: Fact[Any]) -> Host:
    return dataclasses.replace(host, limits=dataclasses.replace(host.limits, **limits))


def test_a_proven_hosts_figures_are_used_with_their_sources() -> None:
    found = resources_of(host_of(), server_of(18), Figures())
    assert found.memory_bytes == Fact(24 * GB, "/proc/meminfo")
    assert found.cpu_count == Fact(2, "sched_getaffinity")
    assert found.storage == Fact(StorageKind.SSD, "/sys/block/sda/queue/rotational")
    assert found.free_disk_bytes == Fact(80 * GB, "statvfs /")
    assert found.data_bytes == Fact(612 * MB, "pg_database_size()")


def test_a_host_that_is_not_proven_to_be_the_servers_says_nothing() -> None:
    server = server_of(18, is_colocated=False)
    found = resources_of(host_of(), server, Figures())
    assert reason(found.memory_bytes) == ("the server is not proven to run on this host; state it with --ram")
    assert reason(found.cpu_count).endswith("state it with --cpus")
    assert reason(found.storage).endswith("state it with --storage")
    assert found.data_bytes == Fact(612 * MB, "pg_database_size()")
    assert proven_host(host_of(), server) is None


def test_whether_it_runs_here_being_unknown_counts_as_not_proven() -> None:
    server = dataclasses.replace(server_of(18), is_colocated=unknown("no access to /proc", "/proc"))
    assert proven_host(host_of(), server) is None


def test_stated_figures_take_the_place_of_unknown_ones() -> None:
    found = resources_of(None, server_of(18, is_colocated=False), reference_figures())
    assert found.memory_bytes == Fact(24 * GB, "--ram")
    assert found.cpu_count == Fact(2, "--cpus")
    assert found.storage == Fact(StorageKind.SSD, "--storage")
    assert found.free_disk_bytes == Fact(80 * GB, "--free-disk")


def test_stating_more_memory_than_is_proven_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        resources_of(host_of(), server_of(18), Figures(memory_bytes=64 * GB))
    assert str(caught.value) == (
        "--ram 64GB is more than the 24GB this server can use\nDETAIL:  the limit was read from /proc/meminfo"
    )


def test_less_memory_may_be_stated_to_share_the_machine() -> None:
    found = resources_of(host_of(), server_of(18), Figures(memory_bytes=8 * GB))
    assert found.memory_bytes == Fact(8 * GB, "--ram")


def test_the_smallest_of_hard_limit_throttling_limit_and_memory_counts() -> None:
    cgroup = Fact(4 * GB, "/sys/fs/cgroup/db/memory.max")
    throttle = Fact(3 * GB, "/sys/fs/cgroup/db/memory.high")
    hard_only = with_limits(host_of(), memory_bytes=cgroup)
    both = with_limits(host_of(), memory_bytes=cgroup, memory_high_bytes=throttle)
    assert resources_of(hard_only, server_of(18), Figures()).memory_bytes == cgroup
    assert resources_of(both, server_of(18), Figures()).memory_bytes == throttle


def test_an_unreadable_limit_is_unknown_although_the_machines_memory_is_known() -> None:
    host = with_limits(host_of(), memory_bytes=unknown("no permission", "/sys/fs/cgroup"))
    assert reason(resources_of(host, server_of(18), Figures()).memory_bytes) == "no permission"


def test_a_container_on_a_real_machine_has_that_machines_disks() -> None:
    host = host_of(is_rotational=True, virtualisation="container:docker")
    assert resources_of(host, server_of(18), Figures()).storage.value is StorageKind.HDD


@pytest.mark.parametrize("virtualisation", ["kvm", "container:docker on kvm"])
def test_a_virtual_disk_that_says_rotational_proves_nothing(virtualisation: str) -> None:
    host = host_of(device="vda", is_rotational=True, virtualisation=virtualisation)
    assert reason(resources_of(host, server_of(18), Figures()).storage) == (
        "vda reports itself as rotational, as virtual disks do regardless of the underlying storage; "
        "state it with --storage"
    )


def test_a_virtual_disk_that_says_non_rotational_is_believed() -> None:
    host = host_of(device="vda", virtualisation="kvm")
    assert resources_of(host, server_of(18), Figures()).storage.value is StorageKind.SSD


@pytest.mark.parametrize(
    ("device", "is_rotational", "kind"),
    [
        ("sda", True, StorageKind.HDD),
        ("sda", False, StorageKind.SSD),
        ("nvme0n1", False, StorageKind.NVME),
    ],
)
def test_bare_metal_tells_its_kind_of_storage(device: str, *, is_rotational: bool, kind: StorageKind) -> None:
    host = host_of(device=device, is_rotational=is_rotational)
    assert resources_of(host, server_of(18), Figures()).storage.value is kind


def mount(target: str, disk: str, free_bytes: int) -> Mount:
    return Mount(
        target, f"/dev/{disk}p1", "ext4", (), Fact(free_bytes, f"statvfs {target}"), Fact(disk, "/sys")
    )


def test_storage_is_that_of_the_data_directorys_own_mount() -> None:
    host = host_of(device="sda", is_rotational=True)
    flash = BlockDevice(
        name="nvme1n1",
        is_rotational=Fact(value=False, source="/sys"),
        scheduler=Fact("none", "/sys"),
        read_ahead_bytes=Fact(0, "/sys"),
        size_bytes=Fact(0, "/sys"),
    )
    devices = (*host.block_devices.or_else(()), flash)
    mounts = (
        *host.mounts.or_else(()),
        mount("/var/lib/postgresql", "nvme1n1", 90 * GB),
        mount("/var/lib/postgresql/dat", "sda", 90 * GB),
    )
    host = dataclasses.replace(
        host, block_devices=Fact(devices, "/sys/block"), mounts=Fact(mounts, "/proc/self/mountinfo")
    )
    assert resources_of(host, server_of(18), Figures()).storage.value is StorageKind.NVME


def test_of_the_datas_and_the_wals_file_systems_the_fuller_one_counts() -> None:
    both = (mount("/", "sda", 80 * GB), mount("/wal", "sdb", 7 * GB))
    host = dataclasses.replace(host_of(), mounts=Fact(both, "/proc/self/mountinfo"))
    assert resources_of(host, server_of(18), Figures()).free_disk_bytes == Fact(7 * GB, "statvfs /wal")


def test_free_space_that_cannot_be_read_is_unknown() -> None:
    host = dataclasses.replace(host_of(), mounts=unknown("no permission", "/proc/7/mountinfo"))
    assert reason(resources_of(host, server_of(18), Figures()).free_disk_bytes) == (
        "the free space of the data directory's file system is not known; state it with --free-disk"
    )


def test_a_device_that_is_not_listed_is_unknown() -> None:
    host = dataclasses.replace(host_of(), block_devices=unknown("no permission", "/sys/block"))
    assert reason(resources_of(host, server_of(18), Figures()).storage) == (
        "the data directory's block device was not found; state it with --storage"
    )


def test_huge_pages_are_the_free_ones_less_those_promised() -> None:
    host = host_of(huge_pages={2 * MB: HugePagePool(total=100, free=80, reserved=30, surplus=0)})
    assert resources_of(host, server_of(18), Figures()).huge_pages.value == HugePages(2 * MB, 50)


def test_a_restarted_server_gets_back_the_huge_pages_it_holds() -> None:
    gucs = settings_of(18)
    for name, value in {"huge_pages_status": "on", "shared_memory_size_in_huge_pages": "75"}.items():
        gucs[name] = dataclasses.replace(gucs[name], setting=value)
    host = host_of(huge_pages={2 * MB: HugePagePool(total=100, free=25, reserved=0, surplus=0)})
    found = resources_of(host, server_of(18, settings=gucs), Figures())
    assert found.huge_pages.value == HugePages(2 * MB, 100)


def test_a_cgroups_limit_on_huge_pages_counts() -> None:
    host = host_of(huge_pages={2 * MB: HugePagePool(total=100, free=100, reserved=0, surplus=0)})
    limits: Fact[dict[int, int]] = Fact({2 * MB: 20 * MB, GB: 24 * GB}, "hugetlb.2MB.max")
    found = resources_of(with_limits(host, hugetlb_bytes=limits), server_of(18), Figures())
    assert found.huge_pages.value == HugePages(2 * MB, 10)


def test_the_page_size_asked_for_decides_which_pool_and_which_limit_count() -> None:
    gucs = set_by(settings_of(18), {"huge_page_size": "1GB"})
    host = host_of(huge_pages={GB: HugePagePool(total=8, free=8, reserved=0, surplus=0)})
    limits: Fact[dict[int, int]] = Fact({2 * MB: 0, GB: 6 * GB}, "hugetlb.1GB.max")
    found = resources_of(with_limits(host, hugetlb_bytes=limits), server_of(18, settings=gucs), Figures())
    assert found.huge_pages.value == HugePages(GB, 6)


def test_unless_asked_for_another_size_the_kernels_default_counts() -> None:
    # Linux with 64 kB pages: pools of 2 MB, 512 MB and 16 GB, and 512 MB is the default.
    host = load("arm-neoverse-64k-pages").inspect()
    assert resources_of(host, server_of(18), Figures()).huge_pages.value == HugePages(512 * MB, 8)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [("32MB", "this kernel has no pool of 32MB pages"), ("0", "the default size of huge pages is not known")],
)
def test_a_pool_that_is_not_there_or_not_known_is_unknown(wanted: str, why: str) -> None:
    host = host_of()
    memory = dataclasses.replace(host.memory, huge_page_bytes=unknown("no Hugepagesize", "/proc/meminfo"))
    gucs = set_by(settings_of(18), {"huge_page_size": wanted})
    found = resources_of(
        dataclasses.replace(host, memory=memory), server_of(18, settings=gucs), Figures()
    ).huge_pages
    assert isinstance(found.value, Unknown)
    assert found.value.reason == why


def test_an_unreadable_limit_on_huge_pages_is_unknown() -> None:
    host = with_limits(host_of(), hugetlb_bytes=unknown("permission denied", "/sys/fs/cgroup/db"))
    found = resources_of(host, server_of(18), Figures()).huge_pages
    assert found.value == Unknown("permission denied")
