"""What is special to each lever of the system layer; common rules are in tests/contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.fix_settings import GB, MB, host_of, server_of

from pgdyno.base.facts import Fact, unknown
from pgdyno.host.host import BlockDevice, Host, HugePagePool, Mount, Nic, Owner
from pgdyno.host.probes import PageCompression
from pgdyno.model.plans.plan import Effect, Risk
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.levers._contract import PlanContext, PlanLine, Skipped, State
from pgdyno.postgres.server import Program, Server

LEVERS = levers.load()
SMALL_POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
SHARED_MEMORY = {"shared_buffers": "4GB"}
# On the reference server, which has 128 MB of shared_buffers and 150 MB of shared memory:
# 4096 + 22 + 3 % of 3968 + 16 = 4253 MB, with 2 % more 4338 MB, which are 2170 pages of 2 MB.


def context(
    host: Host | None = None,
    server: Server | None = None,
    *,
    planned: Mapping[str, str] | None = None,
    planned_files: Mapping[str, str] | None = None,
) -> PlanContext:
    here, found = host if host is not None else host_of(), server if server is not None else server_of(18)
    return PlanContext(
        settings=EffectiveSettings(found, planned or {}),
        resources=resources_of(here, found, Figures()),
        host=proven_host(here, found),
        planned_files=planned_files or {},
    )


def with_file(path: str, text: str | None) -> Host:
    """Return the reference host with one file's text changed; None: there is no such file."""
    fact: Fact[str] = unknown("no such file", path) if text is None else Fact(text, path)
    host = host_of()
    return replace(host, kernel_files={**host.kernel_files, path: fact})


def lines(lever: str, ctx: PlanContext) -> dict[str, PlanLine]:
    outcome = plan_one(LEVERS[lever], ctx)
    assert not isinstance(outcome, Skipped), outcome.reason
    return {line.change.key: line for line in outcome}


def values(lever: str, ctx: PlanContext) -> dict[str, str]:
    return {key: line.change.value for key, line in lines(lever, ctx).items()}


def skipped(lever: str, ctx: PlanContext) -> str:
    outcome = plan_one(LEVERS[lever], ctx)
    assert isinstance(outcome, Skipped), outcome
    return outcome.reason


def with_nodes(host: Host, count: int) -> Host:
    return replace(host, cpu=replace(host.cpu, numa_nodes=Fact(count, "/sys/devices/system/node/online")))


def open_server(**changes: str) -> Server:
    """Return a server that listens on all addresses."""
    return server_of(18, changes={"listen_addresses": "*", **changes})


def with_nic(queues: int = 1, interrupts: Mapping[str, str] | None = None, *, cpus: int = 8) -> Host:
    """Return a host with a network card eth0 and its interrupts' CPUs."""
    found = dict(interrupts or {"24": "0"})
    nic = Nic(
        name="eth0",
        rx_queues=Fact(queues, "/sys/class/net/eth0/queues"),
        tx_queues=Fact(queues, "/sys/class/net/eth0/queues"),
        rps_cpus=Fact(("0",) * queues, "/sys/class/net/eth0/queues"),
        irq_affinity=Fact(found, "/sys/class/net/eth0/device/msi_irqs"),
    )
    files = {f"/proc/irq/{number}/smp_affinity_list": text for number, text in found.items()}
    return replace(host_of(cpus=cpus, kernel_files=files), nics=Fact((nic,), "/sys/class/net"))


class Told:
    """Stands for the server's own programs, which say how large its shared memory would be."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes

    def shared_memory_bytes(self, settings: Mapping[str, str]) -> Fact[int]:
        assert settings == SHARED_MEMORY
        return Fact(self.size_bytes, "postgres -C shared_memory_size")

    def page_compression(self) -> Fact[PageCompression]:
        return unknown("not asked", "a test")


class TestHugePagePool:
    def test_an_estimate_has_a_margin(self) -> None:
        line = lines("huge_page_pool", context(planned=SHARED_MEMORY))[SMALL_POOL]
        assert (line.change.current, line.change.value) == ("0", "2170")
        assert line.reason == (
            "4.15\xa0GB of shared memory (estimated, with a margin of 2 %) need 2170 pages of 2\xa0MB, "
            "and 0 are available. To allocate them only while the server runs: echo 2170 > "
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages, and start it while memory "
            "is not fragmented"
        )
        assert line.change.effect is Effect.RESTART
        assert line.risk is Risk.SHARED

    def test_what_the_servers_programs_say_is_taken_as_it_is(self) -> None:
        told = replace(context(planned=SHARED_MEMORY), probe=Told(2127 * 2 * MB))
        line = lines("huge_page_pool", told)[SMALL_POOL]
        assert line.change.value == "2127"
        assert "(postgres -C shared_memory_size)" in line.reason

    def test_pages_that_others_use_come_on_top(self) -> None:
        # 150 are reserved and 100 free: others have 50, and 2170 more than these are wanted.
        host = host_of(huge_pages={2 * MB: HugePagePool(150, 100, 0, 0)}, kernel_files={SMALL_POOL: "150"})
        assert values("huge_page_pool", context(host, planned=SHARED_MEMORY)) == {SMALL_POOL: "2220"}

    def test_a_pool_that_suffices_stays(self) -> None:
        host = host_of(huge_pages={2 * MB: HugePagePool(3000, 3000, 0, 0)}, kernel_files={SMALL_POOL: "3000"})
        ctx = context(host, planned=SHARED_MEMORY)
        assert skipped("huge_page_pool", ctx).endswith("; 3000 are available")

    def test_pages_that_the_kernel_may_lend_are_not_reserved_as_well(self) -> None:
        lending = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages"
        pools = {2 * MB: HugePagePool(100, 100, 0, 0)}
        host = host_of(huge_pages=pools, kernel_files={SMALL_POOL: "100", lending: "2100"})
        assert skipped("huge_page_pool", context(host, planned=SHARED_MEMORY)).endswith(
            "; 100 are available, and the kernel may add 2100 surplus pages at the server's start "
            "(nr_overcommit_hugepages), if memory is not fragmented by then"
        )

    def test_pages_that_are_lent_already_do_not_count_again(self) -> None:
        lending = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages"
        pools = {2 * MB: HugePagePool(2100, 0, 0, 2100)}
        host = host_of(huge_pages=pools, kernel_files={SMALL_POOL: "2100", lending: "2200"})
        assert values("huge_page_pool", context(host, planned=SHARED_MEMORY)) == {SMALL_POOL: "4270"}

    def test_pages_of_one_gigabyte_are_not_lent(self) -> None:
        path = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
        server = server_of(18, changes={"huge_page_size": "1GB"})
        line = lines("huge_page_pool", context(server=server, planned=SHARED_MEMORY))[path]
        assert line.change.value == "5"
        assert line.reason.endswith("and 0 are available")

    @pytest.mark.parametrize(
        ("major", "has_them", "state"),
        [
            (14, Fact(value=True, source="/proc/7/status"), State.ON),
            (16, Fact(value=True, source="/proc/7/status"), State.ON),
            (16, Fact(value=False, source="/proc/7/status"), State.OFF),
            (14, unknown("no such file", "/proc/7/status"), State.OFF),
        ],
    )
    def test_pages_that_the_server_holds_are_its_own_before_17_too(
        self, major: int, has_them: Fact[bool], state: State
    ) -> None:
        # All 75 pages of the pool are taken: 150 MB of shared memory with initdb's settings.
        server = replace(
            server_of(major),
            program=Program(has_huge_pages=has_them),
            shared_memory_bytes=Fact(150 * MB, "pg_shmem_allocations"),
        )
        host = host_of(huge_pages={2 * MB: HugePagePool(75, 0, 0, 0)}, kernel_files={SMALL_POOL: "75"})
        assert LEVERS["huge_page_pool"].detect(context(host, server)).state is state

    def test_little_shared_memory_needs_no_pool(self) -> None:
        assert skipped("huge_page_pool", context()) == (
            "150\xa0MB of shared memory (estimated, with a margin of 2 %) need 77 pages of 2\xa0MB; "
            "too little for page tables to matter"
        )

    def test_memory_that_is_not_there_is_not_reserved(self) -> None:
        ctx = context(host_of(memory_bytes=4 * GB), planned=SHARED_MEMORY)
        assert skipped("huge_page_pool", ctx).endswith(
            "; 4.24\xa0GB are missing, but only 4\xa0GB of memory is available"
        )

    def test_a_control_groups_limit_is_respected(self) -> None:
        host = host_of()
        limits = replace(host.limits, hugetlb_bytes=Fact({2 * MB: GB, GB: GB}, "hugetlb.2MB.max"))
        ctx = context(replace(host, limits=limits), planned=SHARED_MEMORY)
        assert skipped("huge_page_pool", ctx).endswith(
            "; the server's control group is limited to 1\xa0GB of them"
        )

    def test_a_server_that_wants_none_gets_none(self) -> None:
        ctx = context(server=server_of(18, changes={"huge_pages": "off"}), planned=SHARED_MEMORY)
        assert skipped("huge_page_pool", ctx) == "the server does not use huge pages: huge_pages is off"


class TestTransparentHugePages:
    POLICY = "/sys/kernel/mm/transparent_hugepage/enabled"
    EFFORT = "/sys/kernel/mm/transparent_hugepage/defrag"

    def test_always_becomes_madvise(self) -> None:
        assert values("transparent_huge_pages", context()) == {self.POLICY: "madvise"}

    def test_backends_do_not_compact_memory_for_everybody(self) -> None:
        host = with_file(self.EFFORT, "[always] defer defer+madvise madvise never")
        both = {self.POLICY: "madvise", self.EFFORT: "madvise"}
        assert values("transparent_huge_pages", context(host)) == both

    def test_never_stays(self) -> None:
        host = with_file(self.POLICY, "always madvise [never]")
        assert skipped("transparent_huge_pages", context(host)) == "the policy is never, the effort madvise"


class TestSwappiness:
    PATH = "/proc/sys/vm/swappiness"

    def test_sixty_becomes_ten(self) -> None:
        line = lines("swappiness", context())[self.PATH]
        assert (line.change.current, line.change.value) == ("60", "10")
        assert line.undo == (
            "pgdyno revert; by hand: write 60 to /proc/sys/vm/swappiness; a reboot undoes it too"
        )

    @pytest.mark.parametrize("found", ["10", "1", "0"])
    def test_ten_or_less_stays(self, found: str) -> None:
        ctx = context(with_file(self.PATH, found))
        assert skipped("swappiness", ctx) == f"vm.swappiness is already {found}"


class TestSchedAutogroup:
    PATH = "/proc/sys/kernel/sched_autogroup_enabled"

    def test_it_is_turned_off(self) -> None:
        assert values("sched_autogroup", context()) == {self.PATH: "0"}

    def test_a_kernel_without_it_is_told_apart(self) -> None:
        host = with_file(self.PATH, None)
        assert skipped("sched_autogroup", context(host)) == f"not available: {self.PATH}: no such file"


class TestShmemHugePages:
    PATH = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

    def test_it_is_left_alone_and_says_what_could_be_done(self) -> None:
        reason = skipped("shmem_huge_pages", context(planned=SHARED_MEMORY))
        assert reason.startswith("shmem_enabled stays at never: all shared memory on the machine would use")
        assert f"write within_size to {self.PATH}" in reason
        assert "ShmemPmdMapped" in reason

    def test_a_pool_makes_it_superfluous(self) -> None:
        why = "shmem_enabled stays at never: the pool holds the shared memory, and affects no other program"
        planned = context(planned=SHARED_MEMORY, planned_files={SMALL_POOL: "2170"})
        assert skipped("shmem_huge_pages", planned) == why
        host = host_of(huge_pages={2 * MB: HugePagePool(3000, 3000, 0, 0)})
        assert skipped("shmem_huge_pages", context(host, planned=SHARED_MEMORY)) == why

    def test_it_is_seen_in_use(self) -> None:
        ctx = context(with_file(self.PATH, "always [within_size] advise never deny force"))
        assert skipped("shmem_huge_pages", ctx).startswith(
            "shared memory can use them (shmem_enabled = within_size)"
        )
        assert LEVERS["shmem_huge_pages"].detect(ctx).state is State.ON
        assert LEVERS["shmem_huge_pages"].detect(context()).state is State.OFF


class TestMemoryOvercommit:
    PATH = "/proc/sys/vm/overcommit_memory"

    def test_strict_accounting_is_explained_and_not_proposed(self) -> None:
        # Half of 24 GB. The worst case in MB: 128 + 22 of shared memory, 100 × (6 + 4 × 3) for connections,
        # 8 × 18 for workers, 64 for an index, 3 × 64 for autovacuum, 28 of page tables.
        assert skipped("memory_overcommit", context()) == (
            "vm.overcommit_memory stays at 0: 2 improves stability, not speed. With 2, all programs together "
            "can reserve 12\xa0GB plus the swap space; the worst case of this server alone is 2.32\xa0GB, "
            "which would fit"
        )

    def test_a_limit_in_kb_goes_before_the_ratio(self) -> None:
        ctx = context(with_file("/proc/sys/vm/overcommit_kbytes", "1048576"))
        reason = skipped("memory_overcommit", ctx)
        assert "can reserve 1\xa0GB" in reason
        assert reason.endswith("which would not fit")

    def test_huge_pages_are_not_part_of_the_limit(self) -> None:
        # Half of 24 GB less 1024 pages of 2 MB.
        ctx = context(host_of(huge_pages={2 * MB: HugePagePool(1024, 1024, 0, 0)}))
        assert "can reserve 11\xa0GB" in skipped("memory_overcommit", ctx)

    def test_a_limit_that_is_not_told_is_not_made_up(self) -> None:
        ctx = context(with_file("/proc/sys/vm/overcommit_ratio", None))
        assert skipped("memory_overcommit", ctx) == (
            "vm.overcommit_memory stays at 0: 2 improves stability, not speed"
        )

    def test_strict_accounting_is_seen(self) -> None:
        ctx = context(with_file(self.PATH, "2"))
        assert skipped("memory_overcommit", ctx).startswith("already strict")
        assert LEVERS["memory_overcommit"].detect(ctx).state is State.ON


class TestZoneReclaim:
    PATH = "/proc/sys/vm/zone_reclaim_mode"

    def test_it_is_turned_off_where_there_are_nodes(self) -> None:
        ctx = context(with_nodes(with_file(self.PATH, "1"), 2))
        assert values("zone_reclaim", ctx) == {self.PATH: "0"}

    def test_one_node_has_nothing_to_reclaim_from(self) -> None:
        ctx = context(with_nodes(with_file(self.PATH, "1"), 1))
        assert skipped("zone_reclaim", ctx) == "no effect with one NUMA node (vm.zone_reclaim_mode = 1)"

    def test_off_stays_off(self) -> None:
        assert skipped("zone_reclaim", context()) == "vm.zone_reclaim_mode is already 0"


class TestNumaBalancing:
    PATH = "/proc/sys/kernel/numa_balancing"

    def test_it_is_turned_off_on_several_nodes(self) -> None:
        line = lines("numa_balancing", context(with_nodes(with_file(self.PATH, "1"), 4)))[self.PATH]
        assert line.change.value == "0"
        assert line.reason == "all 4 NUMA nodes use the shared buffers, which belong to none of them"

    def test_one_node_is_left_alone(self) -> None:
        ctx = context(with_nodes(with_file(self.PATH, "1"), 1))
        assert skipped("numa_balancing", ctx) == ("no effect with one NUMA node (kernel.numa_balancing = 1)")

    def test_an_unknown_number_of_nodes_is_no_reason(self) -> None:
        ctx = context(with_file(self.PATH, "1"))
        assert skipped("numa_balancing", ctx) == "the NUMA nodes are not known (kernel.numa_balancing = 1)"

    def test_tiers_of_memory_are_not_touched(self) -> None:
        ctx = context(with_nodes(with_file(self.PATH, "2"), 2))
        assert skipped("numa_balancing", ctx) == (
            "kernel.numa_balancing is 2: it also moves pages to slower memory"
        )


class TestBasePageSize:
    @staticmethod
    def machine(architecture: str, page_bytes: int) -> PlanContext:
        host = host_of()
        return context(
            replace(
                host,
                cpu=replace(host.cpu, architecture=Fact(architecture, "uname")),
                memory=replace(host.memory, page_bytes=Fact(page_bytes, "/proc/self/smaps")),
            )
        )

    def test_arm_has_kernels_with_larger_pages(self) -> None:
        ctx = self.machine("aarch64", 4096)
        assert "kernel-64k on Red Hat Enterprise Linux" in skipped("base_page_size", ctx)
        assert LEVERS["base_page_size"].detect(ctx).state is State.OFF

    def test_x86_has_not(self) -> None:
        assert skipped("base_page_size", self.machine("x86_64", 4096)) == (
            "the kernel's pages are 4\xa0kB: kernels for x86_64 offer no other size"
        )

    def test_larger_pages_are_seen(self) -> None:
        ctx = self.machine("aarch64", 65536)
        assert skipped("base_page_size", ctx).startswith("the kernel's pages are 64\xa0kB: fewer page table")
        assert LEVERS["base_page_size"].detect(ctx).state is State.ON


class TestAtomicWrites:
    PATH = "/sys/block/sda/queue/atomic_write_unit_max_bytes"

    @pytest.mark.parametrize(
        ("found", "promise"),
        [
            ("0", "sda does not support atomic writes"),
            ("4096", "sda can write up to 4\xa0kB atomically, but a page has 8\xa0kB"),
            (
                "16384",
                "sda can write up to 16\xa0kB atomically, enough for a page of 8\xa0kB, but only for",
            ),
        ],
    )
    def test_whatever_the_disk_promises_the_lock_stays(self, found: str, promise: str) -> None:
        reason = skipped("atomic_writes", context(with_file(self.PATH, found)))
        assert reason.startswith(promise)
        assert reason.endswith(": full_page_writes stays on")

    def test_a_kernel_that_does_not_tell_is_told_apart(self) -> None:
        assert skipped("atomic_writes", context(with_file(self.PATH, None))) == (
            "not available: none of /sys/block/*/queue/atomic_write_unit_max_bytes is readable here"
        )


def disk(name: str, *, is_rotational: bool = False) -> BlockDevice:
    return BlockDevice(
        name=name,
        is_rotational=Fact(is_rotational, f"/sys/block/{name}/queue/rotational"),
        scheduler=Fact("mq-deadline", f"/sys/block/{name}/queue/scheduler"),
        read_ahead_bytes=Fact(128 << 10, f"/sys/block/{name}/queue/read_ahead_kb"),
        size_bytes=Fact(GB, f"/sys/block/{name}/size"),
    )


def scheduler_of(name: str) -> str:
    return f"/sys/block/{name}/queue/scheduler"


class TestIoScheduler:
    CHOICES = "none [mq-deadline] kyber bfq"

    def test_a_disk_without_a_head_needs_none(self) -> None:
        line = lines("io_scheduler", context())[scheduler_of("sda")]
        assert (line.change.current, line.change.value) == ("mq-deadline", "none")
        assert line.reason == "mq-deadline sorts and delays requests for a disk head, but sda has no head"

    def test_a_disk_that_rotates_keeps_it(self) -> None:
        assert skipped("io_scheduler", context(host_of(is_rotational=True))) == (
            "sda rotates, and mq-deadline saves head movements"
        )

    def test_a_virtual_disk_does_not_rotate_whatever_it_says(self) -> None:
        files = {scheduler_of("vda"): self.CHOICES}
        host = host_of(device="vda", is_rotational=True, virtualisation="kvm", kernel_files=files)
        assert values("io_scheduler", context(host)) == {scheduler_of("vda"): "none"}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("[none] mq-deadline kyber", "sda already has the scheduler none"),
            ("[mq-deadline] kyber", "this kernel does not offer none for sda"),
        ],
    )
    def test_none_has_to_be_offered_and_new(self, text: str, reason: str) -> None:
        assert skipped("io_scheduler", context(with_file(scheduler_of("sda"), text))) == reason

    def test_the_wals_disk_counts_and_others_do_not(self) -> None:
        names = ("nvme1n1", "sdb", "sdc")
        files = {scheduler_of(name): self.CHOICES for name in names}
        host = host_of(kernel_files=files)
        wal = Mount("/wal", "/dev/sdb1", "ext4", ("rw",), Fact(80 * GB, "statvfs /wal"), Fact("sdb", "/sys"))
        devices = (*host.block_devices.or_else(()), *map(disk, names))
        host = replace(
            host,
            block_devices=Fact(devices, "/sys/block"),
            mounts=Fact((*host.mounts.or_else(()), wal), "/proc/self/mountinfo"),
        )
        both = [scheduler_of("sda"), scheduler_of("sdb")]
        assert values("io_scheduler", context(host)) == dict.fromkeys(both, "none")
        found = LEVERS["io_scheduler"].detect(context(host)).detail
        assert found == f"{scheduler_of('sda')} = mq-deadline, {scheduler_of('sdb')} = mq-deadline"

    def test_without_the_disk_it_is_skipped(self) -> None:
        ctx = context(replace(host_of(), mounts=unknown("no permission", "/proc/7/mountinfo")))
        assert skipped("io_scheduler", ctx) == "the data directory's block device was not found"
        assert LEVERS["io_scheduler"].detect(ctx).state is State.UNKNOWN


class TestReadAhead:
    PATH = "/sys/block/sda/queue/read_ahead_kb"

    def test_megabytes_become_the_kernels_default_where_the_data_are_larger_than_memory(self) -> None:
        line = lines("read_ahead", context(server=server_of(18, data_bytes=200 * GB)))[self.PATH]
        assert (line.change.current, line.change.value) == ("8192", "128")
        assert line.reason == (
            "the read-ahead of sda is up to 8\xa0MB for reads that appear sequential, and evicts cached "
            "data (200\xa0GB of data and 24\xa0GB of memory)"
        )

    def test_data_that_fit_into_memory_are_hardly_read(self) -> None:
        assert skipped("read_ahead", context()) == (
            "the read-ahead of sda is up to 8\xa0MB, but all data fits into memory (612\xa0MB of data and "
            "24\xa0GB of memory): little is read"
        )

    @pytest.mark.parametrize(("found", "shown"), [("128", "128\xa0kB"), ("1024", "1\xa0MB")])
    def test_a_megabyte_or_less_stays(self, found: str, shown: str) -> None:
        ctx = context(with_file(self.PATH, found), server_of(18, data_bytes=200 * GB))
        assert skipped("read_ahead", ctx) == f"the read-ahead of sda is up to {shown}"


class TestIoQueueDepth:
    def test_it_says_how_long_the_queue_is_and_what_tells_more(self) -> None:
        assert skipped("io_queue_depth", context()) == (
            "sda can queue 256 requests: iostat -x under load shows how many are queued (aqu-sz); only a "
            "full queue justifies a change"
        )

    def test_a_disk_without_a_queue_is_told_apart(self) -> None:
        assert skipped("io_queue_depth", context(host_of(device="dm-0"))) == "dm-0 has no queue"


class TestMountOptions:
    @staticmethod
    def mounted(*options: str) -> PlanContext:
        host = host_of()
        (root,) = host.mounts.or_else(())
        return context(replace(host, mounts=Fact((replace(root, options=options),), host.mounts.source)))

    def test_access_times_and_trimming_have_a_command_each(self) -> None:
        ctx = self.mounted("rw", "relatime", "discard")
        assert skipped("mount_options", ctx) == (
            "/ (ext4) records access times and trims at every delete (fstrim.timer trims in bulk): "
            "mount -o remount,noatime,nodiscard /, and the same in /etc/fstab"
        )
        assert LEVERS["mount_options"].detect(ctx).state is State.OFF

    def test_with_both_options_there_is_nothing_to_advise(self) -> None:
        ctx = self.mounted("rw", "noatime")
        assert skipped("mount_options", ctx) == (
            "/ (ext4) does not record access times or trim at every delete"
        )
        assert LEVERS["mount_options"].detect(ctx).state is State.ON

    def test_the_roots_options_are_not_taken_for_the_data_directorys(self) -> None:
        hidden = replace(server_of(18), data_directory=unknown("hidden from this role", "pg_settings"))
        assert skipped("mount_options", context(server=hidden)).startswith("not available: ")


class TestSchedBaseSlice:
    PATH = "/sys/kernel/debug/sched/base_slice_ns"

    def test_a_small_machine_gets_a_large_ones_slice(self) -> None:
        line = lines("sched_base_slice", context())[self.PATH]
        assert (line.change.current, line.change.value) == ("1400000", "2800000")
        assert line.reason == (
            "a process may be preempted after 1.4 ms, on machines with 8 CPUs or more after 2.8 ms"
        )

    @pytest.mark.parametrize(("found", "shown"), [("2800000", "2.8"), ("3000000", "3")])
    def test_a_large_machines_slice_stays(self, found: str, shown: str) -> None:
        assert skipped("sched_base_slice", context(with_file(self.PATH, found))) == (
            f"a process may be preempted after {shown} ms, as on machines with 8 CPUs or more"
        )

    def test_without_debugfs_it_is_not_available_and_says_so(self) -> None:
        host = host_of()
        files = {path: fact for path, fact in host.kernel_files.items() if "/debug/" not in path}
        files[self.PATH] = unknown("no such file", self.PATH)
        assert skipped("sched_base_slice", context(replace(host, kernel_files=files))) == (
            "not available: /sys/kernel/debug/sched/base_slice_ns: no such file; debugfs must be mounted on "
            "/sys/kernel/debug, and only root can read it"
        )

    def test_a_kernel_without_slices_is_told_from_one_without_debugfs(self) -> None:
        assert skipped("sched_base_slice", context(with_file(self.PATH, None))) == (
            "not available: /sys/kernel/debug/sched/base_slice_ns: no such file"
        )


class TestSchedMigrationCost:
    DEBUG = "/sys/kernel/debug/sched/migration_cost_ns"
    SYSCTL = "/proc/sys/kernel/sched_migration_cost_ns"

    def test_half_a_millisecond_becomes_five(self) -> None:
        line = lines("sched_migration_cost", context())[self.DEBUG]
        assert line.change.value == "5000000"
        assert line.reason == "a backend may be moved to another of 2 CPUs 0.5 ms after it ran"

    def test_older_kernels_have_it_among_the_sysctls(self) -> None:
        host = with_file(self.DEBUG, None)
        host = replace(host, kernel_files={**host.kernel_files, self.SYSCTL: Fact("500000", self.SYSCTL)})
        assert values("sched_migration_cost", context(host)) == {self.SYSCTL: "5000000"}

    def test_tuneds_value_stays(self) -> None:
        assert skipped("sched_migration_cost", context(with_file(self.DEBUG, "50000000"))) == (
            "a process is already considered cache-hot for 50 ms"
        )

    def test_one_cpu_has_nowhere_to_migrate_to(self) -> None:
        assert skipped("sched_migration_cost", context(host_of(cpus=1))) == ("no migration with one CPU")


class TestSchedGranularity:
    def test_kernels_before_6_6_have_both_in_debugfs(self) -> None:
        runs, lead = (f"/sys/kernel/debug/sched/{name}_granularity_ns" for name in ("min", "wakeup"))
        host = host_of(kernel_files={runs: "3000000", lead: "20000000"})
        planned = lines("sched_granularity", context(host))
        assert list(planned) == [runs]
        assert planned[runs].change.value == "10000000"
        assert planned[runs].reason == "up to 100 backends may preempt each other after 3 ms"

    def test_kernels_before_5_13_have_both_among_the_sysctls(self) -> None:
        names = ("sched_min_granularity_ns", "sched_wakeup_granularity_ns")
        files = {f"/proc/sys/kernel/{name}": "4000000" for name in names}
        assert values("sched_granularity", context(host_of(kernel_files=files))) == {
            "/proc/sys/kernel/sched_min_granularity_ns": "10000000",
            "/proc/sys/kernel/sched_wakeup_granularity_ns": "15000000",
        }

    def test_later_kernels_have_neither(self) -> None:
        assert skipped("sched_granularity", context()).startswith("not available: ")
        assert LEVERS["sched_granularity"].detect(context()).state is State.ABSENT


class TestPreemptionModel:
    PATH = "/sys/kernel/debug/sched/preempt"

    @pytest.mark.parametrize(
        ("text", "model", "ending"),
        [
            ("none voluntary (full) lazy", "full", f"; or write none to {PATH}"),
            ("full (lazy)", "lazy", "Huge pages avoid these faults"),
        ],
    )
    def test_models_that_interrupt_inside_the_kernel_are_pointed_out(
        self, text: str, model: str, ending: str
    ) -> None:
        ctx = context(with_file(self.PATH, text))
        reason = skipped("preemption_model", ctx)
        assert reason.startswith(f"the model is {model}: a backend may be preempted during a page fault")
        assert reason.endswith(ending)
        assert LEVERS["preemption_model"].detect(ctx).state is State.OFF

    def test_none_is_what_a_server_wants(self) -> None:
        ctx = context(with_file(self.PATH, "(none) voluntary full lazy"))
        assert skipped("preemption_model", ctx) == (
            "the model is none: in the kernel a process runs until it yields"
        )
        assert LEVERS["preemption_model"].detect(ctx).state is State.ON


NETWORK = (
    "busy_poll",
    "interrupt_coalescing",
    "irq_affinity",
    "receive_flow_steering",
    "receive_packet_steering",
    "tcp_buffers",
    "tcp_keepalive",
    "transmit_packet_steering",
)


@pytest.mark.parametrize("lever", NETWORK)
class TestNetwork:
    @pytest.mark.parametrize("addresses", ["", "localhost", "127.0.0.1, ::1"])
    def test_local_clients_gain_nothing(self, lever: str, addresses: str) -> None:
        server = server_of(18, changes={"listen_addresses": addresses})
        assert skipped(lever, context(with_nic(), server)) == (
            f"all clients are on this machine: listen_addresses = '{addresses}'"
        )

    def test_a_machine_without_a_network_card_gains_nothing(self, lever: str) -> None:
        assert skipped(lever, context(server=open_server())) == ("no network card is known on this machine")

    def test_a_containers_network_is_not_judged_from_outside(self, lever: str) -> None:
        host = with_nic()
        cpu = replace(host.cpu, virtualisation=Fact("container:docker on kvm", "/proc/7/cgroup"))
        assert skipped(lever, context(replace(host, cpu=cpu), open_server())) == (
            "the server runs in a container, which may have a separate network"
        )


class TestReceivePacketSteering:
    PATH = "/sys/class/net/eth0/queues/rx-0/rps_cpus"

    @pytest.mark.parametrize(
        ("cpus", "mask"), [(4, "f"), (8, "ff"), (36, "f,ffffffff"), (64, "ffffffff,ffffffff")]
    )
    def test_all_cpus_take_in_what_one_queue_receives(self, cpus: int, mask: str) -> None:
        line = lines("receive_packet_steering", context(with_nic(cpus=cpus), open_server()))[self.PATH]
        assert (line.change.current, line.change.value) == ("0", mask)
        assert line.reason == (f"eth0 has one receive queue: one of {cpus} CPUs receives for all clients")

    def test_two_cpus_gain_nothing(self) -> None:
        assert skipped("receive_packet_steering", context(with_nic(cpus=2), open_server())) == (
            "2 CPUs: inter-processor interrupts would cost as much as one of them saves"
        )

    def test_cards_with_several_queues_gain_nothing(self) -> None:
        assert skipped("receive_packet_steering", context(with_nic(4), open_server())) == (
            "eth0 has 4 receive queues, each with its own interrupt"
        )

    def test_packets_stay_on_the_cards_numa_node(self) -> None:
        ctx = context(with_nodes(with_nic(), 2), open_server())
        assert skipped("receive_packet_steering", ctx) == (
            "2 NUMA nodes: packets should stay on the network card's node"
        )

    def test_a_mask_that_somebody_has_set_stays(self) -> None:
        host = with_nic()
        files = {**host.kernel_files, self.PATH: Fact("00000000,0000000c", self.PATH)}
        ctx = context(replace(host, kernel_files=files), open_server())
        assert skipped("receive_packet_steering", ctx) == "eth0 already steers packets (00000000,0000000c)"


def with_queues(files: Mapping[str, str], queues: int = 1, *, cpus: int = 8) -> Host:
    """Return a host whose card's queues have these files."""
    host = with_nic(queues, cpus=cpus)
    paths = {f"/sys/class/net/eth0/queues/{name}": text for name, text in files.items()}
    found = {path: Fact(text, path) for path, text in paths.items()}
    return replace(host, kernel_files={**host.kernel_files, **found})


class TestReceiveFlowSteering:
    ENTRIES = "/proc/sys/net/core/rps_sock_flow_entries"

    def count(self, queue: int) -> str:
        return f"/sys/class/net/eth0/queues/rx-{queue}/rps_flow_cnt"

    def test_a_queue_that_steers_packets_gets_all_entries(self) -> None:
        host = with_queues({"rx-0/rps_cpus": "ff", "rx-0/rps_flow_cnt": "0"})
        found = lines("receive_flow_steering", context(host, open_server()))
        assert {path: (line.change.current, line.change.value) for path, line in found.items()} == {
            self.ENTRIES: ("0", "32768"),
            self.count(0): ("0", "32768"),
        }
        assert found[self.ENTRIES].reason == (
            "eth0 steers packets to CPUs by a hash, not to the backend's CPU"
        )

    def test_it_follows_steering_that_is_only_planned(self) -> None:
        mask = "/sys/class/net/eth0/queues/rx-0/rps_cpus"
        host = with_queues({"rx-0/rps_cpus": "00", "rx-0/rps_flow_cnt": "0"})
        ctx = replace(context(host, open_server()), planned_files={mask: "ff"})
        assert list(values("receive_flow_steering", ctx)) == [self.ENTRIES, self.count(0)]

    def test_several_queues_share_the_entries_in_powers_of_two(self) -> None:
        files = {f"rx-{queue}/rps_cpus": "f" for queue in range(3)}
        files |= {f"rx-{queue}/rps_flow_cnt": "0" for queue in range(3)}
        planned = values("receive_flow_steering", context(with_queues(files, 3), open_server()))
        assert planned == {self.ENTRIES: "32768", **{self.count(queue): "16384" for queue in range(3)}}

    def test_queues_without_steering_come_first(self) -> None:
        host = with_queues({"rx-0/rps_cpus": "00", "rx-0/rps_flow_cnt": "0"})
        assert skipped("receive_flow_steering", context(host, open_server())) == (
            "no queue of eth0 steers packets to other CPUs, which is required"
        )

    def test_larger_tables_stay(self) -> None:
        host = with_queues({"rx-0/rps_cpus": "ff", "rx-0/rps_flow_cnt": "65536"})
        host = replace(host, kernel_files={**host.kernel_files, self.ENTRIES: Fact("65536", self.ENTRIES)})
        assert skipped("receive_flow_steering", context(host, open_server())) == (
            "flows are already steered, with 65536 entries"
        )


class TestTransmitPacketSteering:
    @staticmethod
    def masks(*masks: str) -> dict[str, str]:
        return {f"tx-{number}/xps_cpus": mask for number, mask in enumerate(masks)}

    def told(self, masks: Mapping[str, str], queues: int, cpus: int = 2) -> str:
        host = with_queues(masks, queues, cpus=cpus)
        return skipped("transmit_packet_steering", context(host, open_server()))

    def test_each_cpu_gets_a_queue_of_its_own(self) -> None:
        ctx = context(with_queues(self.masks("0", "0", "0"), 3, cpus=2), open_server())
        found = lines("transmit_packet_steering", ctx)
        assert {path: line.change.value for path, line in found.items()} == {
            "/sys/class/net/eth0/queues/tx-0/xps_cpus": "1",
            "/sys/class/net/eth0/queues/tx-1/xps_cpus": "2",
        }
        assert {line.reason for line in found.values()} == {
            "any of 2 CPUs may send through any queue of eth0, and then waits for its lock"
        }

    def test_one_queue_leaves_no_choice(self) -> None:
        assert self.told({}, 1) == "eth0 has one transmit queue: no choice"

    def test_where_all_cards_have_one_queue_the_kernel_shows_no_masks(self) -> None:
        host = with_nic()
        files = {path: fact for path, fact in host.kernel_files.items() if not path.endswith("/xps_cpus")}
        ctx = context(replace(host, kernel_files=files), open_server())
        told = "no network card has several transmit queues to choose from"
        assert skipped("transmit_packet_steering", ctx) == f"not available: {told}"
        found = LEVERS["transmit_packet_steering"].detect(ctx)
        assert (found.state, found.detail) == (State.ABSENT, told)

    def test_queues_that_the_driver_has_assigned_stay(self) -> None:
        assert self.told(self.masks("1", "2"), 2) == (
            "the transmit queues of eth0 are already assigned (1; 2)"
        )

    def test_which_cpus_share_a_queue_is_left_to_the_driver(self) -> None:
        assert self.told(self.masks("00", "00"), 2, cpus=8) == (
            "eth0 has 2 transmit queues for 8 CPUs: the sharing is the driver's choice"
        )

    def test_queues_without_masks_are_not_known(self) -> None:
        assert self.told({}, 4) == "the transmit queues of eth0 are not known"


class TestInterruptCoalescing:
    POLLS, WAITS_NS = "/sys/class/net/eth0/napi_defer_hard_irqs", "/sys/class/net/eth0/gro_flush_timeout"

    def context(self, polls: str, waits_ns: str) -> PlanContext:
        host, files = with_nic(), {self.POLLS: polls, self.WAITS_NS: waits_ns}
        found = {path: Fact(text, path) for path, text in files.items()}
        return context(replace(host, kernel_files={**host.kernel_files, **found}), open_server())

    @pytest.mark.parametrize(("polls", "waits_ns"), [("0", "0"), ("10", "0"), ("0", "20000")])
    def test_without_both_values_the_kernel_does_not_wait(self, polls: str, waits_ns: str) -> None:
        ctx = self.context(polls, waits_ns)
        assert skipped("interrupt_coalescing", ctx) == (
            "eth0 re-enables interrupts as soon as all packets are received; ethtool -c eth0 shows the "
            "card's own coalescing. For less CPU time at a higher latency, in a variant: "
            "/sys/class/net/eth0/napi_defer_hard_irqs=10,/sys/class/net/eth0/gro_flush_timeout=20000. For "
            "low latency: ethtool -C eth0 adaptive-rx off"
        )
        assert LEVERS["interrupt_coalescing"].detect(ctx).state is State.OFF

    def test_a_kernel_that_waits_is_seen(self) -> None:
        ctx = self.context("10", "20000")
        assert skipped("interrupt_coalescing", ctx) == (
            "eth0 re-enables interrupts after 10 empty polls, 20 µs apart; ethtool -c eth0 shows the "
            "card's own coalescing"
        )
        assert LEVERS["interrupt_coalescing"].detect(ctx).state is State.ON


class TestNumaInterleave:
    def test_one_node_has_nothing_to_spread(self) -> None:
        ctx = context(with_nodes(host_of(), 1))
        assert skipped("numa_interleave", ctx) == "reported only: one NUMA node, all memory is local"

    def test_on_several_nodes_it_says_how_the_server_is_started(self) -> None:
        ctx = context(with_nodes(host_of(), 4))
        assert skipped("numa_interleave", ctx) == (
            "reported only: 4 NUMA nodes, and shared memory is placed at its first use; to spread it: "
            "NUMAPolicy=interleave and NUMAMask=all in the unit's [Service], or start the server with "
            "numactl --interleave=all before the command"
        )


class TestWalDevice:
    def test_on_the_datas_disk_it_says_how_another_is_compared(self) -> None:
        assert skipped("wal_device", context()) == (
            "reported only: the WAL is on sda with the data. To compare the flush times of disks: "
            "pg_test_fsync -f FILE, with FILE on the disk and outside the data directory, while "
            "nothing else writes. To move the WAL: stop the server, mv /var/lib/postgresql/data/pg_wal to "
            "the other disk, ln -s from there to /var/lib/postgresql/data/pg_wal"
        )
        assert LEVERS["wal_device"].detect(context()).state is State.OFF

    def test_a_disk_of_its_own_is_seen(self) -> None:
        host = host_of()
        (data,) = host.mounts.or_else(())
        wal = replace(data, target="/wal", device="/dev/sdb1", disk=Fact("sdb", "/sys/dev/block"))
        ctx = context(replace(host, mounts=Fact((data, wal), "/proc/self/mountinfo")))
        assert skipped("wal_device", ctx) == "reported only: the data is on sda, the WAL on sdb"
        assert LEVERS["wal_device"].detect(ctx).state is State.ON


class TestIrqAffinity:
    def test_one_queue_has_nothing_to_gather(self) -> None:
        assert skipped("irq_affinity", context(with_nic(), open_server())) == (
            "eth0 has one queue: nothing to concentrate"
        )

    def test_it_says_where_the_interrupts_are_and_how_to_gather_them(self) -> None:
        ctx = context(with_nic(2, {"40": "0-7", "41": "0", "42": "1"}), open_server())
        assert skipped("irq_affinity", ctx) == (
            "eth0 has 2 queues, with 3 interrupts on CPUs 0-7, 0, 1. To try fewer CPUs, concentrate "
            "them in a variant: 40, 41, 42 to 0 (each as /proc/irq/40/smp_affinity_list=CPU)"
        )
        assert LEVERS["irq_affinity"].detect(ctx).state is State.OFF

    def test_it_says_who_would_spread_them_again(self) -> None:
        irqbalance = Owner("irqbalance", "runs", ("/proc/irq/*",), "stop it")
        host = replace(with_nic(2, {"40": "0", "41": "1"}), owners=Fact((irqbalance,), "/proc"))
        assert skipped("irq_affinity", context(host, open_server())).endswith(
            "To try fewer CPUs, stop irqbalance, which would reset them, and concentrate them in a variant: "
            "40, 41 to 0 (each as /proc/irq/40/smp_affinity_list=CPU)"
        )

    def test_four_queues_share_a_cpu_that_has_some_of_the_interrupts_now(self) -> None:
        lists = {str(40 + number): str(8 + number) for number in range(8)}
        reason = skipped("irq_affinity", context(with_nic(8, lists), open_server()))
        assert "in a variant: 40, 41, 42, 43 to 8; 44, 45, 46, 47 to 9 (each" in reason

    def test_interrupts_that_may_go_anywhere_share_the_first_cpus(self) -> None:
        lists = {str(40 + number): "0-3" for number in range(8)}
        reason = skipped("irq_affinity", context(with_nic(8, lists), open_server()))
        assert "in a variant: 40, 41, 42, 43 to 0; 44, 45, 46, 47 to 1 (each" in reason

    def test_two_interrupts_of_eight_queues_go_to_a_cpu_each(self) -> None:
        reason = skipped("irq_affinity", context(with_nic(8, {"40": "0-7", "41": "0-7"}), open_server()))
        assert "in a variant: 40 to 0; 41 to 1 (each" in reason

    def test_interrupts_on_few_cpus_are_seen(self) -> None:
        ctx = context(with_nic(2, {"40": "3", "41": "3"}), open_server())
        assert skipped("irq_affinity", ctx) == (
            "eth0 has 2 queues, with 2 interrupts on CPUs 3: already concentrated, on CPUs that must receive "
            "for all clients"
        )
        assert LEVERS["irq_affinity"].detect(ctx).state is State.ON


class TestBusyPoll:
    def test_more_clients_than_cpus_cannot_wait_awake(self) -> None:
        assert skipped("busy_poll", context(with_nic(), open_server())) == (
            "left off (net.core.busy_read = 0, net.core.busy_poll = 0): with up to 100 clients and 8 CPUs, "
            "it would take CPU time from busy backends"
        )

    def test_it_is_seen_in_use(self) -> None:
        host, path = with_nic(), "/proc/sys/net/core/busy_read"
        host = replace(host, kernel_files={**host.kernel_files, path: Fact("50", path)})
        ctx = context(host, open_server())
        assert skipped("busy_poll", ctx).startswith("on (net.core.busy_read = 50, net.core.busy_poll = 0)")
        assert LEVERS["busy_poll"].detect(ctx).state is State.ON


class TestTcpBacklog:
    ACCEPTED = "/proc/sys/net/core/somaxconn"
    BEING_MADE = "/proc/sys/net/ipv4/tcp_max_syn_backlog"

    def test_kernels_defaults_suffice_for_a_hundred_connections(self) -> None:
        assert skipped("tcp_backlog", context()) == (
            "the server requests a backlog of 200, twice max_connections; the kernel allows 4096"
        )

    def test_a_shorter_queue_is_raised_to_what_the_server_asks_for(self) -> None:
        line = lines("tcp_backlog", context(with_file(self.ACCEPTED, "128")))[self.ACCEPTED]
        assert line.change.value == "200"
        assert line.reason == (
            "the server requests a backlog of 200, twice max_connections, but gets 128; effective from its "
            "next start"
        )

    def test_planned_connections_count(self) -> None:
        ctx = context(with_file(self.ACCEPTED, "128"), planned={"max_connections": "500"})
        assert values("tcp_backlog", ctx) == {self.ACCEPTED: "1000"}

    @pytest.mark.parametrize(("cookies", "paths"), [("1", [ACCEPTED]), ("0", [ACCEPTED, BEING_MADE])])
    def test_with_syn_cookies_the_other_queue_is_no_limit(self, cookies: str, paths: list[str]) -> None:
        files = {self.ACCEPTED: "128", self.BEING_MADE: "128", "/proc/sys/net/ipv4/tcp_syncookies": cookies}
        host = with_nic()
        changed = {**host.kernel_files, **{path: Fact(text, path) for path, text in files.items()}}
        ctx = context(replace(host, kernel_files=changed), open_server())
        assert list(values("tcp_backlog", ctx)) == paths


class TestTcpBuffers:
    def test_it_says_which_rate_they_allow(self) -> None:
        # 4 MB in every 100 ms.
        assert skipped("tcp_buffers", context(with_nic(), open_server())).startswith(
            "buffers grow automatically, to 4\xa0MB for sending and 32\xa0MB for receiving: with a round "
            "trip of 100 ms, a client gets up to 40\xa0MB per second."
        )


class TestTcpKeepalive:
    def test_it_says_when_a_vanished_client_is_noticed(self) -> None:
        # 7200 s, and 9 probes of 75 s: 7875 s.
        reason = skipped("tcp_keepalive", context(with_nic(), open_server()))
        assert reason.startswith(
            "a dead client connection is detected after 131 minutes, and keeps its locks until"
        )

    def test_times_of_the_servers_own_are_seen(self) -> None:
        ctx = context(with_nic(), open_server(tcp_keepalives_idle="60"))
        assert skipped("tcp_keepalive", ctx) == (
            "the server overrides the kernel's times: tcp_keepalives_idle = 60 s"
        )
        assert LEVERS["tcp_keepalive"].detect(ctx).state is State.ON


def test_who_is_not_root_gets_reports_and_no_changes() -> None:
    ctx = replace(context(), may_change_host=False)
    assert skipped("swappiness", ctx) == (
        "not available: only root may change the machine, and not in a container"
    )
    assert skipped("io_queue_depth", ctx).startswith("sda can queue 256 requests")
