"""What is special to each lever of the application layer; common rules are in tests/contract."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest
from tests.fix_settings import GB, MB, host_of, server_of, set_by, settings_of

from pgdyno.base.facts import Fact, unknown
from pgdyno.host.host import Host, HugePagePool
from pgdyno.host.probes import PageCompression
from pgdyno.model.plans.plan import Effect, Risk
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.levers._contract import PlanContext, PlanLine, Skipped
from pgdyno.postgres.server import Server

LEVERS = levers.load()


def context(
    server: Server, host: Host | None = None, planned: Mapping[str, str] | None = None, **stated: int
) -> PlanContext:
    where = host if host is not None else host_of()
    figures = Figures(**stated)  # type: ignore[arg-type]
    return PlanContext(
        settings=EffectiveSettings(server, planned or {}),
        resources=resources_of(where, server, figures),
        connections=figures.connections,
        host=proven_host(where, server),
    )


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


def with_capability(server: Server, name: str, value: tuple[str, ...]) -> Server:
    settings = dict(server.settings)
    settings[name] = dataclasses.replace(settings[name], enumvals=value)
    return dataclasses.replace(server, settings=settings)


@dataclasses.dataclass(frozen=True)
class Pages:
    """Stands for the probe of a server's pages."""

    found: Fact[PageCompression]

    def page_compression(self) -> Fact[PageCompression]:
        return self.found

    def shared_memory_bytes(self, settings: Mapping[str, str]) -> Fact[int]:
        return unknown(f"not asked for {settings}", "a test")


def with_pages(ctx: PlanContext, compressed_bytes: float) -> PlanContext:
    """Return a context whose pages of 8000 bytes take 10 µs, on a disk that takes 2 ns for a byte."""
    found = PageCompression(64, 8000.0, compressed_bytes, compression_us=10.0, write_ns=2.0)
    return dataclasses.replace(ctx, probe=Pages(Fact(found, "a test")))


def io_uring_server() -> Server:
    """Return a server with much data whose build lists io_uring."""
    return with_capability(server_of(18, data_bytes=100 * GB), "io_method", ("sync", "worker", "io_uring"))


class TestSharedBuffers:
    def test_small_data_still_gets_a_quarter(self) -> None:
        line = lines("shared_buffers", context(server_of(18)))["shared_buffers"]
        assert (line.change.current, line.change.value) == ("128MB", "6GB")
        assert line.reason == "25 % of 24\xa0GB, which holds all of the 612\xa0MB of data"
        assert line.change.effect is Effect.RESTART
        assert line.risk is Risk.RESTART

    def test_data_that_fits_into_40_percent_is_held_whole(self) -> None:
        # 7 GB and a quarter are 8.75 GB, within 9.6 GB = 40 % of 24 GB.
        line = lines("shared_buffers", context(server_of(18, data_bytes=7 * GB)))["shared_buffers"]
        assert line.change.value == "8960MB"
        assert line.reason == "holds all of the 7\xa0GB of data with room to grow, within 40 % of 24\xa0GB"

    def test_larger_data_gets_a_quarter(self) -> None:
        line = lines("shared_buffers", context(server_of(18, data_bytes=8 * GB)))["shared_buffers"]
        assert line.change.value == "6GB"
        assert line.reason == "25 % of 24\xa0GB; the 8\xa0GB of data would need more than 40 %"

    def test_unknown_data_gets_a_quarter(self) -> None:
        line = lines("shared_buffers", context(server_of(18, data_bytes=None)))["shared_buffers"]
        assert line.reason == "25 % of 24\xa0GB; the size of the data is not known"

    def test_a_container_counts_its_limit_and_not_the_machine(self) -> None:
        host = host_of()
        limits = dataclasses.replace(host.limits, memory_bytes=Fact(8 * GB, "memory.max"))
        ctx = context(server_of(18), dataclasses.replace(host, limits=limits))
        assert values("shared_buffers", ctx) == {"shared_buffers": "2GB"}

    def test_a_larger_value_found_is_kept(self) -> None:
        reason = skipped("shared_buffers", context(server_of(18, changes={"shared_buffers": "10GB"})))
        assert reason.startswith("10GB is at least the rule's value: 25 % of 24\xa0GB")

    def test_many_connections_leave_less(self) -> None:
        line = lines("shared_buffers", context(server_of(18), host_of(memory_bytes=4 * GB)))["shared_buffers"]
        assert int(line.change.value.removesuffix("MB")) < 1024
        assert line.reason.endswith("; reduced, because the worst case of more would not fit into memory")

    def test_where_connections_leave_nothing_it_says_what_to_state(self) -> None:
        reason = skipped("shared_buffers", context(server_of(18), host_of(memory_bytes=2 * GB)))
        assert reason.endswith(
            "but in the worst case 100 connections leave no room for more: "
            "state how many are needed with --connections"
        )

    def test_the_line_says_who_set_the_present_value(self) -> None:
        settings = set_by(
            settings_of(18), {"shared_buffers": "1GB"}, sourcefile="/etc/pg/postgresql.auto.conf"
        )
        line = lines("shared_buffers", context(server_of(18, settings=settings)))["shared_buffers"]
        assert line.reason.endswith(". The present value was set by ALTER SYSTEM (postgresql.auto.conf)")
        assert line.undo == "pgdyno revert; by hand: back to 1GB, then restart"


class TestMaxConnections:
    def test_without_a_stated_number_it_is_left_alone(self) -> None:
        assert skipped("max_connections", context(server_of(18))) == (
            "left at 100: the required number was not stated (--connections)"
        )

    def test_reserved_connections_are_added_to_what_was_asked_for(self) -> None:
        server = server_of(18, changes={"reserved_connections": "5"})
        assert values("max_connections", context(server, connections=200)) == {"max_connections": "208"}

    def test_it_is_lowered_when_less_was_asked_for(self) -> None:
        assert values("max_connections", context(server_of(15), connections=20)) == {"max_connections": "23"}

    def test_a_standby_is_left_alone(self) -> None:
        server = dataclasses.replace(server_of(18), is_in_recovery=True)
        assert skipped("max_connections", context(server, connections=20)) == (
            "left at 100: a standby must allow at least as many as its primary"
        )


class TestHugePages:
    POOL = HugePagePool(total=4096, free=4096, reserved=0, surplus=0)

    def test_try_stays_and_says_whether_the_pool_suffices(self) -> None:
        assert skipped("huge_pages", context(server_of(18))) == (
            "already try, which uses huge pages if they suffice: 150\xa0MB of shared memory are planned and "
            "the pool has 0\xa0B"
        )

    def test_on_without_enough_pages_for_the_planned_buffers_becomes_try(self) -> None:
        server = server_of(18, changes={"huge_pages": "on"})
        host = host_of(huge_pages={2 * MB: HugePagePool(total=100, free=100, reserved=0, surplus=0)})
        line = lines("huge_pages", context(server, host, {"shared_buffers": "6GB"}))["huge_pages"]
        assert line.change.value == "try"
        assert line.reason.startswith(
            "6.21\xa0GB of shared memory are planned and the pool has 200\xa0MB: with on the server "
            "might not start"
        )

    def test_on_with_an_unknown_pool_becomes_try(self) -> None:
        server = server_of(18, changes={"huge_pages": "on"})
        host = host_of()
        hidden = dataclasses.replace(host.memory, huge_pages=unknown("no permission", "/sys"))
        ctx = context(server, dataclasses.replace(host, memory=hidden))
        assert "the pool's size is not known" in lines("huge_pages", ctx)["huge_pages"].reason

    def test_on_with_enough_pages_stays(self) -> None:
        server = server_of(18, changes={"huge_pages": "on"})
        ctx = context(server, host_of(huge_pages={2 * MB: self.POOL}), {"shared_buffers": "6GB"})
        assert skipped("huge_pages", ctx).startswith("on, and the pool suffices")

    def test_off_becomes_try_where_the_pool_suffices(self) -> None:
        server = server_of(18, changes={"huge_pages": "off"})
        ctx = context(server, host_of(huge_pages={2 * MB: self.POOL}))
        assert values("huge_pages", ctx) == {"huge_pages": "try"}
        assert skipped("huge_pages", context(server)).startswith("left off")


class TestWalSettings:
    def test_automatic_wal_buffers_stay_automatic(self) -> None:
        ctx = context(server_of(18), planned={"shared_buffers": "6GB"})
        assert skipped("wal_buffers", ctx) == "automatic sizing gives 16\xa0MB"

    def test_wal_buffers_that_were_made_smaller_become_automatic_again(self) -> None:
        ctx = context(server_of(18, changes={"wal_buffers": "1MB"}), planned={"shared_buffers": "6GB"})
        assert values("wal_buffers", ctx) == {"wal_buffers": "-1"}

    def test_larger_wal_buffers_are_kept(self) -> None:
        ctx = context(server_of(18, changes={"wal_buffers": "64MB"}), planned={"shared_buffers": "6GB"})
        assert skipped("wal_buffers", ctx).startswith("64MB is at least the automatic size")

    def test_wal_is_sized_for_the_time_between_checkpoints(self) -> None:
        # By hand: (2 CPUs × 3 MB/s × 900 s + 612 MB of whole pages) × 1.9 = 11 423 MB; rounded up 16 GB.
        ctx = context(server_of(18), planned={"checkpoint_timeout": "15min", "shared_buffers": "6GB"})
        found = lines("max_wal_size", ctx)
        assert found["max_wal_size"].change.value == "16GB"
        assert found["max_wal_size"].reason == (
            "2 CPUs writing for 15min need about 11.2\xa0GB; at most 64\xa0GB and a quarter of 80\xa0GB "
            "of free disk. Crash recovery replays at most about 8.42\xa0GB"
        )

    def test_a_quarter_of_it_is_kept_for_reuse(self) -> None:
        ctx = context(server_of(18), planned={"max_wal_size": "16GB"})
        line = lines("wal_ready", ctx)["min_wal_size"]
        assert line.change.value == "4GB"
        assert line.reason == (
            "a quarter of max_wal_size is kept for reuse, so bursts create no segments; the number created "
            "so far is not known (the server was not asked)"
        )
        counted = dataclasses.replace(server_of(18), wal_segments_made=Fact(37, "pg_stat_io"))
        line = lines("wal_ready", context(counted, planned={"max_wal_size": "16GB"}))["min_wal_size"]
        assert line.reason.endswith("the server has created 37 since its statistics were reset (pg_stat_io)")

    def test_what_is_kept_takes_a_sixteenth_of_the_free_disk_at_most(self) -> None:
        # 100 GB, chosen by hand: a quarter is 25 GB, and of 80 GB 5 may be taken.
        server = server_of(18, changes={"max_wal_size": "100GB"})
        assert skipped("wal_ready", context(server)) == (
            "left at 80MB: 25\xa0GB is more than 1/16 of the free disk, 80\xa0GB"
        )

    def test_more_that_is_kept_stays(self) -> None:
        server = server_of(18, changes={"max_wal_size": "4GB", "min_wal_size": "1GB"})
        assert skipped("wal_ready", context(server)) == "1GB is a quarter of max_wal_size or more"

    def test_a_quarter_of_the_free_disk_is_the_most(self) -> None:
        ctx = context(server_of(18), host_of(free_disk_bytes=20 * GB), {"checkpoint_timeout": "15min"})
        assert values("max_wal_size", ctx)["max_wal_size"] == "4GB"

    def test_a_nearly_full_disk_changes_nothing(self) -> None:
        ctx = context(server_of(18), host_of(free_disk_bytes=2 * GB))
        assert skipped("max_wal_size", ctx) == "1GB is at least the rule's value, with 2\xa0GB of free disk"

    def test_a_larger_value_found_is_kept(self) -> None:
        ctx = context(server_of(18, changes={"max_wal_size": "100GB", "min_wal_size": "8GB"}))
        assert "at least the rule's value" in skipped("max_wal_size", ctx)

    def test_compression_is_lz4_where_the_build_lists_it_and_never_pglz(self) -> None:
        ctx = with_pages(context(server_of(15)), compressed_bytes=2000)
        line = lines("wal_compression", ctx)["wal_compression"]
        assert line.change.value == "lz4"
        assert line.reason == (
            "64 sampled pages shrink by 75\xa0%, which takes 10.0 µs each; writing the saved bytes "
            "takes "
            "12.0 µs"
        )
        assert skipped("wal_compression", context(server_of(18))) == (
            "left at off: this build has no lz4, and pglz costs more than it saves"
        )
        assert "no lz4" in skipped("wal_compression", context(server_of(14)))

    def test_compression_has_to_save_more_time_than_it_takes(self) -> None:
        ctx = with_pages(context(server_of(15)), compressed_bytes=7200)
        assert skipped("wal_compression", ctx) == (
            "not worthwhile: 64 sampled pages shrink by 10\xa0%, which takes 10.0 µs each; writing "
            "the saved bytes takes 1.6 µs"
        )

    def test_compression_is_left_alone_where_nothing_can_be_sampled(self) -> None:
        assert skipped("wal_compression", context(server_of(15))) == (
            "the benefit is not known: the server's programs are not accessible"
        )
        ctx = dataclasses.replace(context(server_of(15)), probe=Pages(unknown("permission denied", "base")))
        assert skipped("wal_compression", ctx) == "the benefit is not known: permission denied"

    def test_compression_that_is_lz4_already_is_not_probed(self) -> None:
        assert skipped("wal_compression", context(server_of(15, changes={"wal_compression": "lz4"}))) == (
            "already lz4"
        )

    def test_zstd_found_is_left_to_whoever_chose_it(self) -> None:
        assert "explicitly set to zstd" in skipped(
            "wal_compression", context(server_of(15, changes={"wal_compression": "zstd"}))
        )

    def test_checkpoints_move_to_15_minutes_and_are_spread(self) -> None:
        server = server_of(18, changes={"checkpoint_completion_target": "0.5"})
        assert values("checkpoint_timeout", context(server)) == {
            "checkpoint_timeout": "15min",
            "checkpoint_completion_target": "0.9",
        }
        rare = server_of(18, changes={"checkpoint_timeout": "1h"})
        assert "1h apart" in skipped("checkpoint_timeout", context(rare))


class TestPlannerCosts:
    def test_flash_makes_random_reads_cheap(self) -> None:
        found = lines("random_page_cost", context(server_of(18, data_bytes=200 * GB)))
        assert found["random_page_cost"].change.value == "1.1"
        assert found["random_page_cost"].reason.startswith("storage is ssd, where a random read costs little")

    def test_data_that_stays_in_memory_does_too_whatever_it_lies_on(self) -> None:
        host = host_of(device="vda", is_rotational=True, virtualisation="kvm")
        found = lines("random_page_cost", context(server_of(18), host))
        assert found["random_page_cost"].reason == "612\xa0MB of data stay cached in 24\xa0GB of memory"

    def test_large_data_on_unknown_or_rotating_storage_changes_nothing(self) -> None:
        server = server_of(18, data_bytes=200 * GB)
        virtual = host_of(device="vda", is_rotational=True, virtualisation="kvm")
        assert "state it with --storage" in skipped("random_page_cost", context(server, virtual))
        assert skipped("random_page_cost", context(server, host_of(is_rotational=True))) == (
            "storage rotates, and the data is not known to fit into memory"
        )

    def test_a_low_value_found_is_kept(self) -> None:
        server = server_of(18, changes={"random_page_cost": "1.5"})
        assert skipped("random_page_cost", context(server)) == "1.5 is already low"

    def test_a_cache_larger_than_memory_is_corrected_downwards_with_the_reason(self) -> None:
        line = lines("effective_cache_size", context(server_of(18), host_of(memory_bytes=2 * GB)))
        assert line["effective_cache_size"].change.value == "1536MB"
        assert "the planner assumes a cache that does not exist" in line["effective_cache_size"].reason

    def test_a_larger_cache_within_memory_is_kept(self) -> None:
        server = server_of(18, changes={"effective_cache_size": "22GB"})
        reason = skipped("effective_cache_size", context(server))
        assert reason.startswith("the present value is not below 75 % of 24\xa0GB")

    def test_jit_is_switched_off_only_where_there_is_one(self) -> None:
        assert values("jit", context(server_of(15, has_jit=True))) == {"jit": "off"}
        assert skipped("jit", context(server_of(18, has_jit=False))) == (
            "this build has no just-in-time compilation, so the setting has no effect"
        )
        server = server_of(18)
        hidden = dataclasses.replace(
            server.capabilities, has_jit=unknown("no permission", "pg_jit_available()")
        )
        assert skipped("jit", context(dataclasses.replace(server, capabilities=hidden))) == "no permission"


class TestReadingAndWriting:
    def test_read_ahead_is_raised_before_18_and_left_at_18s_default(self) -> None:
        assert values("effective_io_concurrency", context(server_of(17))) == {
            "effective_io_concurrency": "200"
        }
        assert "16 is at least 16" in skipped("effective_io_concurrency", context(server_of(18)))

    def test_read_ahead_below_18s_default_returns_to_it(self) -> None:
        server = server_of(18, changes={"effective_io_concurrency": "1"})
        assert values("effective_io_concurrency", context(server)) == {"effective_io_concurrency": "16"}

    def test_io_uring_needs_the_build_the_kernel_and_something_to_read(self) -> None:
        without = server_of(18, data_bytes=100 * GB)
        server = with_capability(without, "io_method", ("sync", "worker", "io_uring"))
        assert values("io_method", context(server)) == {"io_method": "io_uring"}
        assert "has no io_uring" in skipped("io_method", context(without))
        fits = dataclasses.replace(server, databases_bytes=Fact(100 * MB, "pg_database_size()"))
        assert "fit into shared_buffers" in skipped("io_method", context(fits))

    def test_io_uring_is_not_proposed_where_it_might_keep_the_server_down(self) -> None:
        server = io_uring_server()
        container = host_of(virtualisation="container:docker")
        assert "may run in a container" in skipped("io_method", context(server, container))
        host = host_of()
        forbidden = dataclasses.replace(host.kernel, sysctls={"kernel.io_uring_disabled": Fact("2", "/proc")})
        silent = dataclasses.replace(host.kernel, sysctls={})
        for kernel in (forbidden, silent):
            ctx = context(server, dataclasses.replace(host, kernel=kernel))
            assert "kernel.io_uring_disabled is not known to be 0" in skipped("io_method", ctx)
        elsewhere = dataclasses.replace(server, is_colocated=Fact(value=False, source="/proc"))
        assert "not known" in skipped("io_method", context(elsewhere))

    @pytest.mark.parametrize(
        ("seccomp", "mode"),
        [
            (Fact("filter", "/proc/7/status"), "filter"),
            (Fact("strict", "/proc/7/status"), "strict"),
            (unknown("no permission", "/proc/7/status"), "not known"),
        ],
    )
    def test_io_uring_is_not_proposed_under_a_seccomp_filter(self, seccomp: Fact[str], mode: str) -> None:
        host = host_of()
        limits = dataclasses.replace(host.limits, seccomp=seccomp)
        ctx = context(io_uring_server(), dataclasses.replace(host, limits=limits))
        assert skipped("io_method", ctx) == (
            f"left at worker: seccomp of the server's process is {mode}, and a filter may forbid io_uring"
        )

    # 18's defaults: 100 connections, 8 workers, 10 WAL senders, 16 autovacuum slots and 64 others are 198.
    @pytest.mark.parametrize(("limit", "fits"), [("395", False), ("396", True), ("unlimited", True)])
    def test_io_uring_needs_a_file_for_every_process(self, limit: str, *, fits: bool) -> None:
        host = host_of()
        rlimits = Fact({"Max open files": limit}, "/proc/7/limits")
        here = dataclasses.replace(host, limits=dataclasses.replace(host.limits, rlimits=rlimits))
        ctx = context(io_uring_server(), here)
        if fits:
            assert values("io_method", ctx) == {"io_method": "io_uring"}
        else:
            assert skipped("io_method", ctx) == (
                "left at worker: the server's limit is 395 open files, and io_uring would need 198"
            )

    def test_io_uring_is_not_proposed_where_the_limit_on_files_is_hidden(self) -> None:
        host = host_of()
        limits = dataclasses.replace(host.limits, rlimits=unknown("no permission", "/proc/7/limits"))
        ctx = context(io_uring_server(), dataclasses.replace(host, limits=limits))
        assert "the server's limit on open files is not known" in skipped("io_method", ctx)

    def test_io_workers_follow_the_cpus_only_with_workers(self) -> None:
        large = host_of(memory_bytes=256 * GB, cpus=64)
        assert values("io_workers", context(server_of(18), large)) == {"io_workers": "16"}
        assert skipped("io_workers", context(server_of(18))) == "3 workers suffice for 2 CPUs"
        sync = context(server_of(18), large, {"io_method": "sync"})
        assert skipped("io_workers", sync) == "io_method is sync, which has no workers"

    def test_a_raised_read_size_is_made_effective(self) -> None:
        server = server_of(18, changes={"io_combine_limit": "256kB"})
        line = lines("io_combine_limit", context(server))["io_max_combine_limit"]
        assert line.change.value == "256kB"
        assert line.reason == "io_combine_limit is 256kB, but reads are silently limited to 128kB"
        assert "reads of up to 128kB are in effect" in skipped("io_combine_limit", context(server_of(18)))

    def test_autovacuum_may_work_faster_on_much_data(self) -> None:
        # 200 / 20 × 8 kB every 2 ms = 39 MB/s: 200 GB take 87 min, 2.9 times too long for half an hour.
        server = server_of(18, data_bytes=200 * GB)
        line = lines("autovacuum_cost_limit", context(server))["autovacuum_vacuum_cost_limit"]
        assert line.change.value == "500"
        assert line.reason == "at 39.1\xa0MB/s a pass over 200\xa0GB takes 87.4 min"
        assert "keeps up" in skipped("autovacuum_cost_limit", context(server_of(18)))

    def test_autovacuum_that_is_not_throttled_is_left_alone(self) -> None:
        server = server_of(18, data_bytes=900 * GB, changes={"autovacuum_vacuum_cost_delay": "0"})
        assert skipped("autovacuum_cost_limit", context(server)) == "autovacuum is not throttled"

    def test_a_limit_of_zero_is_that_of_vacuum(self) -> None:
        server = server_of(18, data_bytes=200 * GB, changes={"autovacuum_vacuum_cost_limit": "0"})
        assert values("autovacuum_cost_limit", context(server)) == {"autovacuum_vacuum_cost_limit": "500"}

    def test_dirty_pages_that_cost_nothing_are_no_division_by_zero(self) -> None:
        server = server_of(18, data_bytes=900 * GB, changes={"vacuum_cost_page_dirty": "0"})
        assert skipped("autovacuum_cost_limit", context(server)) == (
            "autovacuum is not throttled for dirtied pages (vacuum_cost_page_dirty)"
        )

    def test_rotating_storage_is_not_given_to_autovacuum(self) -> None:
        server = server_of(18, data_bytes=900 * GB)
        assert "storage rotates" in skipped(
            "autovacuum_cost_limit", context(server, host_of(is_rotational=True))
        )


class TestMemoryOfSessions:
    def test_maintenance_gets_a_sixteenth_and_autovacuum_a_quarter_of_that(self) -> None:
        assert values("maintenance_work_mem", context(server_of(18))) == {
            "maintenance_work_mem": "1536MB",
            "autovacuum_work_mem": "384MB",
        }

    def test_autovacuums_own_memory_is_left_alone(self) -> None:
        server = server_of(18, changes={"autovacuum_work_mem": "1GB"})
        assert values("maintenance_work_mem", context(server)) == {"maintenance_work_mem": "1536MB"}

    def test_a_large_value_found_is_kept_but_not_for_every_autovacuum_worker(self) -> None:
        server = server_of(18, changes={"maintenance_work_mem": "4GB"})
        assert values("maintenance_work_mem", context(server)) == {"autovacuum_work_mem": "384MB"}

    # By hand for 200: 80 % of 24 GB less 6144 + 238 shared, 203 × 6 private, 8 × 6 workers, 1536 + 1152
    # maintenance and 214 × 12 MB page tables leave 6757 MB for 3 × (203 + 8) allowances: 10.7 MB.
    @pytest.mark.parametrize(("connections", "work_mem"), [(20, "64MB"), (97, "24MB"), (200, "10MB")])
    def test_work_mem_is_what_every_connection_can_have(self, connections: int, work_mem: str) -> None:
        planned = {
            "max_connections": str(connections + 3),
            "shared_buffers": "6GB",
            "maintenance_work_mem": "1536MB",
            "autovacuum_work_mem": "384MB",
        }
        assert values("work_mem", context(server_of(18), planned=planned)) == {"work_mem": work_mem}

    def test_work_mem_that_cannot_fit_is_lowered_with_the_reason(self) -> None:
        line = lines("work_mem", context(server_of(18, changes={"work_mem": "1GB"})))["work_mem"]
        assert line.change.value == "48MB"
        assert line.reason.startswith(
            "lowered: at present 100 connections could need more than the available memory"
        )

    def test_work_mem_that_fits_but_could_not_grow_is_kept(self) -> None:
        ctx = context(server_of(18), host_of(memory_bytes=4 * GB), {"shared_buffers": "848MB"})
        assert skipped("work_mem", ctx) == "left at 4MB: much more for 100 connections would not fit"

    def test_parallel_workers_follow_many_cpus_and_ignore_few(self) -> None:
        large = context(server_of(18), host_of(memory_bytes=256 * GB, cpus=32))
        assert values("parallel_workers", large) == {
            "max_worker_processes": "32",
            "max_parallel_workers": "32",
            "max_parallel_maintenance_workers": "4",
        }
        assert skipped("parallel_workers", context(server_of(18))) == "the present limits suffice for 2 CPUs"
