"""What differs besides the machines: found, weighed, and never taken for equal because it is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.synthetic import experiment

from pgdyno.host.cpu_idling import Awake, AwakeMeans
from pgdyno.model.experiments.experiment import DesignKind, Experiment
from pgdyno.model.experiments.machine_comparison import Difference, Weight
from pgdyno.model.variants.variant import Variant
from pgdyno.results.machines.difference_catalogue import ENTRIES
from pgdyno.results.machines.machine_comparison import compare_machines, differences

BASE = experiment()
BUILD = "PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit"


def fact(value: object) -> dict[str, object]:
    return {"value": value, "source": "a file"}


def unknown() -> dict[str, object]:
    return {"unknown": "permission denied", "source": "a file"}


def guc(setting: str, unit: str | None = None, **more: object) -> dict[str, object]:
    return {"setting": setting, "unit": unit, "source": "default", **more}


def on(
    host: Mapping[str, Any] | None = None, server: Mapping[str, Any] | None = None, **changes: Any
) -> Experiment:
    """Return the experiment with these facts alone."""
    return replace(BASE, **{"id": "x", "host": host or {}, "server": server or {}, **changes})


def found(subject: str, a: Experiment, b: Experiment) -> Difference | None:
    """Return the difference of a subject, None where both are known to be alike."""
    return next((one for one in differences(a, b, ("default",)) if one.subject == subject), None)


def known(a: Experiment, b: Experiment) -> list[tuple[str, str | None, str | None, Weight]]:
    return [
        (one.subject, one.a, one.b, one.weight) for one in differences(a, b, ("default",)) if one.is_known
    ]


def kernel(release: str, **sysctls: str) -> dict[str, Any]:
    return {"kernel": {"release": fact(release), "sysctls": {k: fact(v) for k, v in sysctls.items()}}}


@pytest.mark.parametrize(
    ("other", "weight"),
    [("6.1.0-41-amd64", Weight.FEW), ("6.12.0", Weight.TENS), ("odd", Weight.TENS)],
)
def test_a_kernel_of_another_series_matters_more(other: str, weight: Weight) -> None:
    difference = found("kernel", on(kernel("6.1.0-40-amd64")), on(kernel(other)))
    assert difference is not None
    assert (difference.a, difference.b, difference.weight) == ("6.1.0-40-amd64", other, weight)


def test_what_is_alike_is_not_told() -> None:
    assert found("kernel", on(kernel("6.1.0")), on(kernel("6.1.0"))) is None


@pytest.mark.parametrize("missing", [{}, {"kernel": {"release": unknown()}}, {"kernel": "odd"}])
def test_what_is_unknown_on_one_side_or_both_is_never_equal(missing: dict[str, Any]) -> None:
    one = found("kernel", on(kernel("6.1.0")), on(missing))
    assert one is not None
    assert (one.a, one.b, one.is_known, one.weight) == ("6.1.0", None, False, Weight.TENS)
    both = found("kernel", on(missing), on(missing))
    assert both is not None
    assert (both.a, both.b) == (None, None)


def test_every_entry_says_why_it_matters_and_who_says_so() -> None:
    for entry in ENTRIES:
        assert entry.reason
        assert entry.source
    assert len({entry.subject for entry in ENTRIES}) == len(ENTRIES)


def test_the_heaviest_come_first() -> None:
    a = on(kernel("6.1.0", **{"vm.swappiness": "60"}), {"settings": {"fsync": guc("on")}, "version": "18.6"})
    b = on(kernel("6.1.1", **{"vm.swappiness": "1"}), {"settings": {"fsync": guc("off")}, "version": "17.2"})
    assert known(a, b) == [
        ("fsync", "on", "off", Weight.DECIDES),
        ("PostgreSQL", "18.6", "17.2", Weight.TENS),
        ("kernel", "6.1.0", "6.1.1", Weight.FEW),
        ("vm.swappiness", "60", "1", Weight.LITTLE),
    ]
    ranks = [one.weight.rank for one in differences(a, b, ("default",))]
    assert ranks == sorted(ranks)


def test_kernel_settings_that_matter_little_take_one_line() -> None:
    a = on(kernel("6", **{"fs.nr_open": "1", "net.core.somaxconn": "2", "kernel.numa_balancing": "0"}))
    b = on(kernel("6", **{"fs.nr_open": "9", "net.core.somaxconn": "8", "kernel.numa_balancing": "1"}))
    assert known(a, b) == [
        ("kernel.numa_balancing", "0", "1", Weight.FEW),
        ("fs.nr_open, net.core.somaxconn", "1, 2", "9, 8", Weight.LITTLE),
    ]


def program(flags: str, configure: str = "", build: str = BUILD, **facts: object) -> dict[str, Any]:
    capabilities = {"build_flags": fact(configure), "compiler_flags": fact(flags)}
    told = {name: fact(value) for name, value in facts.items()}
    return {"version": "18.6", "build": build, "capabilities": capabilities, "program": told}


def test_of_builds_only_what_may_change_the_code_is_told_and_only_what_the_other_has_not() -> None:
    a = on(server=program("-Wall -O2 -g -fwrapv", "'--prefix=(path)' '--with-llvm'"))
    b = on(server=program("-Wextra -O3 -fwrapv -flto", "'--prefix=(other)' '--without-llvm' '--with-lz4'"))
    assert known(a, b) == [
        ("compiler's flags", "-O2", "-O3 -flto", Weight.TENS),
        ("configure options", "lz4 compression: no, LLVM JIT compilation: yes",
         "lz4 compression: yes, LLVM JIT compilation: no", Weight.FEW),
    ]  # fmt: skip


def test_compilers_and_packages_are_told() -> None:
    other = BUILD.replace("gcc (Debian 12.2.0-14) 12.2.0", "clang version 19.1.7").replace(
        "x86_64", "aarch64"
    )
    a, b = on(server=program("-O2")), on(server=program("-O2", build=other))
    assert known(a, b) == [("compiler", "gcc (Debian 12.2.0-14) 12.2.0", "clang version 19.1.7", Weight.FEW)]
    packaged = on(server={**program("-O2"), "version": "18.6 (Debian 18.6-1.pgdg12+1)"})
    assert ("package", "none", "Debian 18.6-1.pgdg12+1", Weight.FEW) in known(a, packaged)


def test_a_build_that_does_not_record_its_options_is_unknown() -> None:
    a, b = on(server=program("-O2", "'--with-llvm'")), on(server=program("-O2", "not recorded"))
    options = found("configure options", a, b)
    assert options is not None
    assert options.b is None


def test_variants_on_another_server_have_an_unknown_build() -> None:
    variants = (Variant("default"), Variant("default-17", server="server-2"))
    one = on(variants=variants)
    subjects = [d.subject for d in differences(one, one, ("default", "default-17"))]
    assert "build of the server of default-17" in subjects
    assert "build of the server of default" not in subjects


def test_allocator_pages_and_scheduling_of_the_program_are_told() -> None:
    a = on(server=program("-O2", allocator="glibc", has_huge_pages=False, scheduling_policy="SCHED_OTHER",
                          malloc_variables={}))  # fmt: skip
    b = on(server=program("-O2", allocator="jemalloc", has_huge_pages=True, scheduling_policy="SCHED_BATCH",
                          malloc_variables={"LD_PRELOAD": "(path)", "A": "1"}))  # fmt: skip
    assert known(a, b) == [
        ("explicit huge pages", "no", "yes", Weight.TENS),
        ("memory allocator", "glibc", "jemalloc", Weight.FEW),
        ("malloc's variables", "none", "A=1, LD_PRELOAD=(path)", Weight.FEW),
        ("scheduling policy", "SCHED_OTHER", "SCHED_BATCH", Weight.FEW),
    ]


def test_arms_atomics_concern_two_arm_machines_only() -> None:
    def arm(inline: int, architecture: str = "aarch64") -> Experiment:
        server = program("-O2", atomics={"inline": inline, "outline": 0})
        return on({"cpu": {"architecture": fact(architecture)}}, server)

    assert ("LSE atomics of the program", "0 in its own code, 0 in helpers",
            "7 in its own code, 0 in helpers", Weight.TENS) in known(arm(0), arm(7))  # fmt: skip
    assert found("LSE atomics of the program", arm(0), arm(7, "x86_64")) is None


def test_the_place_of_client_and_arms_is_told() -> None:
    a = on(design=replace(BASE.design, is_isolated=True, slice_s=0.05))
    b = on(design=replace(BASE.design, is_isolated=False, kind=DesignKind.ALTERNATING))
    assert known(a, b) == [
        ("client", "on separate CPUs", "on the server's CPUs", Weight.TENS),
        ("side by side", "in turns of 50 ms, alongside another server", "whole trials, one server at a time",
         Weight.FEW),
    ]  # fmt: skip


def stolen(share: float) -> Experiment:
    return on(blocks=tuple(replace(block, audit={"steal_share": share}) for block in BASE.blocks))


@pytest.mark.parametrize(("share", "weight"), [(0.05, Weight.FEW), (0.10, Weight.TENS)])
def test_time_that_the_hypervisor_took_is_a_difference_between_machines(share: float, weight: Weight) -> None:
    assert known(stolen(0.002), stolen(share)) == [
        ("CPU time taken by the hypervisor", "0\xa0%", f"{share * 100:.0f}\xa0%", weight)
    ]


def test_cpus_of_the_server_differ_besides_the_machine_only_if_the_machines_have_as_many() -> None:
    def limited(count: float, cpus: int = 8) -> Experiment:
        return on({"cpu": {"logical_count": fact(cpus)}, "limits": {"cpu_count": fact(count)}})

    assert known(limited(8.0), limited(2.0)) == [("CPUs that the server may use", "6", "2", Weight.DECIDES)]
    assert known(limited(8.0), limited(16.0, cpus=16)) == []


def test_whether_limits_were_read_before_the_server_was_pinned_makes_no_difference() -> None:
    """Of 8 CPUs the client has a quarter, where it has CPUs of its own."""

    def read(count: float, *, is_isolated: bool = True) -> Experiment:
        host = {"cpu": {"logical_count": fact(8)}, "limits": {"cpu_count": fact(count)}}
        return on(host, design=replace(BASE.design, is_isolated=is_isolated))

    assert known(read(8.0), read(6.0)) == []
    assert known(read(8.0), read(8.0, is_isolated=False)) == [
        ("CPUs that the server may use", "6", "8", Weight.DECIDES),
        ("client", "on separate CPUs", "on the server's CPUs", Weight.TENS),
    ]


def test_on_a_machine_of_one_cpu_the_client_has_none_of_its_own() -> None:
    one = on({"cpu": {"logical_count": fact(1)}})
    assert found("client", one, on({"cpu": {"logical_count": fact(8)}})) is not None


def test_disks_and_file_systems_of_the_data_are_told() -> None:
    def stored(filesystem: str, scheduler: str) -> Experiment:
        disks = [{"name": "vda", "scheduler": fact(scheduler)}, {"name": "vdb", "scheduler": fact("other")}]
        mounts = [{"filesystem": filesystem, "options": ["rw", "noatime"], "disk": fact("vda")}]
        return on({"block_devices": fact(disks), "mounts": fact(mounts)})

    assert known(stored("ext4", "none"), stored("xfs", "mq-deadline")) == [
        ("file systems", "ext4", "xfs", Weight.TENS),
        ("I/O scheduler", "none", "mq-deadline", Weight.FEW),
    ]


def cpus(**counts: object) -> Experiment:
    return on({"cpu": {name: fact(value) for name, value in counts.items()}})


_LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_INNER = _LEAF | st.lists(_LEAF, max_size=3)
_KEYS = st.sampled_from(["value", "source", "unknown", "name", "disk", "setting"])
ODD = _INNER | st.lists(_INNER, max_size=3) | st.dictionaries(_KEYS, _INNER, max_size=4)


def _odd(draw: st.DrawFn, node: object) -> object:
    """Return a document of which some part is something else."""
    if draw(st.integers(0, 12)) == 0:
        return draw(ODD)
    if isinstance(node, dict):
        return {key: _odd(draw, value) for key, value in node.items()}
    if isinstance(node, list):
        return [_odd(draw, value) for value in node]
    return node


@st.composite
def odd_documents(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    host, server = _odd(draw, BASE.host), _odd(draw, BASE.server)
    return host if isinstance(host, dict) else {}, server if isinstance(server, dict) else {}


@settings(max_examples=30)  # each draws for every fact of two documents
@given(odd_documents())
def test_facts_of_any_form_can_be_compared(documents: tuple[dict[str, Any], dict[str, Any]]) -> None:
    host, server = documents
    assert compare_machines(BASE, on(host, server)).sides[1].name == "B"


def test_whether_idle_cpus_were_kept_awake_is_told_where_it_is_known() -> None:
    entry = next(entry for entry in ENTRIES if entry.subject == "idle CPUs")
    old = experiment()
    kept = replace(old, awake=Awake(AwakeMeans.HALTPOLL, "", 115.0, 9.0))
    booted = replace(old, awake=Awake(None, "--as-booted was given", 115.0))
    assert [entry.read(one) for one in (old, kept, booted)] == [None, "kept awake", "as booted"]
    assert not entry.concerns(old, old)
    assert entry.concerns(old, kept)
