"""Processors that the fixture machines do not have."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.host.machines import load

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import NO_SUCH_FILE, Tree
from pgdyno.host.machine.cpu import (
    architecture_of,
    cpus_of_stat,
    features_of,
    first_processor,
    frequency_of,
    has_pmu,
    inspect_cpu,
    model_of,
    online_cpus,
)


@pytest.mark.parametrize(
    ("processor", "model"),
    [
        ({"model name": "AMD EPYC 7B12"}, "AMD EPYC 7B12"),
        ({"cpu": "POWER9 (architected), altivec supported"}, "POWER9 (architected), altivec supported"),
        ({"CPU implementer": "0x41", "CPU part": "0xd4f"}, "Arm Neoverse-V2"),
        ({"CPU implementer": "0x41", "CPU part": "0xfff"}, "Arm implementer 0x41 part 0xfff"),
        ({"CPU implementer": "0x41"}, Unknown("no model name")),
    ],
)
def test_processors_are_named_as_far_as_they_tell(processor: dict[str, str], model: str | Unknown) -> None:
    assert model_of(processor) == model


@pytest.mark.parametrize(
    ("processor", "architecture"),
    [
        ({"flags": "fpu lm"}, "x86_64"),
        ({"flags": "fpu"}, "i686"),
        ({"CPU architecture": "8"}, "aarch64"),
        ({"cpu": "POWER9"}, Unknown("neither x86 nor 64-bit Arm")),
    ],
)
def test_old_kernels_show_their_architecture_only_in_cpuinfo(
    processor: dict[str, str], architecture: str | Unknown
) -> None:
    assert architecture_of(processor) == architecture


def test_spe_is_a_feature_because_it_is_an_event_source() -> None:
    assert features_of({"Features": "fp atomics"}, ("arm_spe_0",)) == ("fp", "atomics", "spe")
    assert features_of({"Features": "fp atomics"}, ()) == ("fp", "atomics")
    assert features_of({}, ("arm_spe_0",)) == Unknown("no features listed")


@pytest.mark.parametrize(
    ("sources", "present"),
    [
        (("cpu", "msr"), True),
        (("cpu_atom", "cpu_core"), True),
        (("armv8_cortex_a72",), True),
        (("msr", "software", "uncore_imc"), False),
    ],
)
def test_hardware_counters_are_an_event_source_of_the_cpu(sources: tuple[str, ...], present: bool) -> None:  # noqa: FBT001
    assert has_pmu(sources) is present


@pytest.mark.parametrize(
    ("processor", "mhz"),
    [
        ({"flags": "fpu tsc", "cpu MHz": "2596.136"}, 2596.136),
        (
            {"flags": "fpu aperfmperf", "cpu MHz": "800.000"},
            "varies with the load, and the maximum is not reported",
        ),
        ({"Features": "fp atomics"}, "no frequency listed"),
        ({"cpu MHz": "Unknown"}, 'not a frequency: "Unknown"'),
    ],
)
def test_a_frequency_of_the_moment_is_not_taken_for_that_of_the_processor(
    processor: dict[str, str], mhz: float | str
) -> None:
    assert frequency_of(processor) == (Unknown(mhz) if isinstance(mhz, str) else mhz)


def test_the_highest_frequency_is_known_where_the_kernel_scales_it(tmp_path: Path) -> None:
    directory = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq"
    directory.mkdir(parents=True)
    (directory / "cpuinfo_max_freq").write_text("3500000\n", encoding="utf-8")
    source = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
    assert inspect_cpu(Tree(tmp_path), "self").frequency_mhz == Fact(3500.0, source)
    (directory / "cpuinfo_max_freq").write_text("<unknown>\n", encoding="utf-8")
    unknown = Fact[float](Unknown('not a frequency: "<unknown>"'), source)
    assert inspect_cpu(Tree(tmp_path), "self").frequency_mhz == unknown


def test_only_the_first_processor_is_read() -> None:
    text = "processor\t: 0\nmodel name\t: A\n\nprocessor\t: 1\nmodel name\t: B\nlast\t: x\n"
    assert first_processor(text) == {"processor": "0", "model name": "A"}


def test_cpus_that_are_offline_are_not_in_stat() -> None:
    assert cpus_of_stat("cpu  9 9\ncpu0 4 4\ncpu2 5 5\nintr 1\n") == (0, 2)
    assert cpus_of_stat("intr 1\n") == Unknown("no CPU listed")


def test_a_host_that_shows_nothing_has_unknown_cpus(tmp_path: Path) -> None:
    assert online_cpus(Tree(tmp_path)) == Fact(NO_SUCH_FILE, "/sys/devices/system/cpu/online")
    cpu = inspect_cpu(Tree(tmp_path), "self")
    assert (cpu.core_count.value, cpu.l3_bytes.value) == (NO_SUCH_FILE, NO_SUCH_FILE)


def test_offline_siblings_do_not_make_a_core_of_their_own(tmp_path: Path) -> None:
    # Four threads on two cores with thread 3 offline: the kernel leaves it out of core 1's list.
    cpus = tmp_path / "sys/devices/system/cpu"
    for number, siblings in ((0, "0,2"), (1, "1"), (2, "0,2")):
        (cpus / f"cpu{number}/topology").mkdir(parents=True)
        (cpus / f"cpu{number}/topology/core_cpus_list").write_text(siblings, encoding="utf-8")
    (cpus / "online").write_text("0-2\n", encoding="utf-8")
    cpu = inspect_cpu(Tree(tmp_path), "self")
    assert (cpu.logical_count.value, cpu.core_count.value) == (3, 2)
    assert cpu.is_smt_active.value is True


def test_counting_cores_reads_one_cpu_of_each() -> None:
    # The fixture has topology files for eight of its sixteen CPUs only, so this would be unknown otherwise.
    assert load("bare-metal-2-socket").inspect().cpu.core_count.value == 8
