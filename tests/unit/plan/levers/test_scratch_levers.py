"""Levers for scratch servers alone, which nobody depends on: each refusal with a reason."""

from __future__ import annotations

from dataclasses import replace

from tests.fix_settings import host_of, server_of

from pgdyno.base.facts import Fact
from pgdyno.host.host import Host
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.levers._contract import PlanContext, Skipped, State
from pgdyno.postgres.server import Server

LEVERS = levers.load()
QUEUE = "/sys/block/sda/queue/"
FILES = {f"{QUEUE}iostats": "1", f"{QUEUE}nomerges": "0", f"{QUEUE}wbt_lat_usec": "75000"}


def context(host: Host, server: Server | None = None, *, is_scratch: bool = True) -> PlanContext:
    found = server or server_of()
    return PlanContext(
        settings=EffectiveSettings(found),
        resources=resources_of(host, found, Figures()),
        host=proven_host(host, found),
        statements=Fact((), "a test") if is_scratch else None,
    )


def planned(lever: str, ctx: PlanContext) -> dict[str, str]:
    outcome = plan_one(LEVERS[lever], ctx)
    assert not isinstance(outcome, Skipped), outcome.reason
    return {line.change.key: line.change.value for line in outcome}


def skipped(lever: str, ctx: PlanContext) -> str:
    outcome = plan_one(LEVERS[lever], ctx)
    assert isinstance(outcome, Skipped), outcome
    return outcome.reason


class TestDebugIoDirect:
    def on(self, *, release: str = "6.18.0", filesystem: str = "ext4") -> Host:
        host = host_of()
        mounts = tuple(replace(mount, filesystem=filesystem) for mount in host.mounts.or_else(()))
        kernel = replace(host.kernel, release=Fact(release, "uname"))
        return replace(host, kernel=kernel, mounts=Fact(mounts, "/proc/self/mountinfo"))

    def test_where_folios_are_large_it_is_said_how_to_try_it(self) -> None:
        for release in ("6.18.0", "6.16.0-rc1", "10.1-amd64"):
            for is_scratch in (True, False):
                assert skipped(
                    "debug_io_direct", context(self.on(release=release), is_scratch=is_scratch)
                ) == (
                    "reported only: a developer option without a measured gain; to try in a "
                    "variant: debug_io_direct=wal_init"
                )

    def test_where_folios_are_small_it_gains_nothing(self) -> None:
        for release in ("6.15.9", "5.18.0"):
            assert skipped("debug_io_direct", context(self.on(release=release))) == (
                f"ext4 has no large folios in Linux {release}"
            )
        assert skipped("debug_io_direct", context(self.on(filesystem="xfs"))) == (
            "it applies to ext4, but the server's data is on xfs"
        )
        assert skipped("debug_io_direct", context(self.on(release="mainline"))) == (
            'the kernel release "mainline" contains no version'
        )

    def test_without_the_host_nothing_is_known(self) -> None:
        elsewhere = server_of(is_colocated=False)
        assert skipped("debug_io_direct", context(self.on(), elsewhere)) == (
            "the kernel or the server's file systems are not known"
        )

    def test_what_was_chosen_stays(self) -> None:
        chosen = server_of(changes={"debug_io_direct": "wal"})
        assert skipped("debug_io_direct", context(self.on(), chosen)) == "explicitly set to wal"
        assert skipped("debug_io_direct", context(self.on(), server_of(15))) == (
            "PostgreSQL 15.18 has no debug_io_direct"
        )


class TestBlockQueue:
    def test_what_could_be_tried_is_said_to_everybody(self) -> None:
        for is_scratch in (True, False):
            assert skipped("block_queue", context(host_of(kernel_files=FILES), is_scratch=is_scratch)) == (
                "reported only: its benefit is not measured; to try in a variant: "
                f"{QUEUE}iostats=0,{QUEUE}nomerges=2,{QUEUE}wbt_lat_usec=0"
            )

    def test_a_disk_without_throttling_has_two_of_them(self) -> None:
        files = {path: text for path, text in FILES.items() if not path.endswith("wbt_lat_usec")}
        assert skipped("block_queue", context(host_of(kernel_files=files))).endswith(
            f": {QUEUE}iostats=0,{QUEUE}nomerges=2"
        )

    def test_a_disk_with_a_head_gains_by_merging_unless_it_only_says_so(self) -> None:
        real = host_of(kernel_files=FILES, is_rotational=True)
        assert skipped("block_queue", context(real)) == "a rotating disk benefits from merging"
        virtual = host_of(kernel_files=FILES, is_rotational=True, virtualisation="kvm")
        assert "iostats=0" in skipped("block_queue", context(virtual))

    def test_the_state_is_what_the_kernel_shows_whoever_asks(self) -> None:
        wanted = {f"{QUEUE}iostats": "0", f"{QUEUE}nomerges": "2", f"{QUEUE}wbt_lat_usec": "0"}
        for is_scratch in (True, False):
            before = context(host_of(kernel_files=FILES), is_scratch=is_scratch)
            after = context(host_of(kernel_files=wanted), is_scratch=is_scratch)
            assert LEVERS["block_queue"].detect(before).state is State.OFF
            assert LEVERS["block_queue"].detect(after).state is State.ON
            assert "iostats = 0" in LEVERS["block_queue"].detect(after).detail
