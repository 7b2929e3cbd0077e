"""Processor facts: identity, instruction set, topology, caches, kernel settings."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.kernel_files import cpu_list, flag, key_values, number, size_bytes
from pgdyno.host.files.tree import NO_SUCH_FILE, Tree, first_known, parsed, together
from pgdyno.host.host import Cache, Cpu
from pgdyno.host.machine.virtualisation import inspect_virtualisation

_CPUS = "/sys/devices/system/cpu"
_EVENT_SOURCES = "/sys/bus/event_source/devices"
_FIRST_PROCESSOR_BYTES = 16384  # of /proc/cpuinfo: each processor has 1 to 2 kB, and reading all is slow
# MIDR implementer and part, as in Linux, arch/arm64/include/asm/cputype.h.
_ARM_PARTS = {
    ("0x41", "0xd0c"): "Arm Neoverse-N1",
    ("0x41", "0xd40"): "Arm Neoverse-V1",
    ("0x41", "0xd49"): "Arm Neoverse-N2",
    ("0x41", "0xd4f"): "Arm Neoverse-V2",
    ("0x41", "0xd84"): "Arm Neoverse-V3",
    ("0x41", "0xd8e"): "Arm Neoverse-N3",
    ("0x48", "0xd01"): "HiSilicon TaiShan-v110",
    ("0xc0", "0xac3"): "Ampere-1",
    ("0xc0", "0xac4"): "Ampere-1a",
}
_FIRST_CACHES = "/sys/devices/system/cpu/cpu0/cache"


def inspect_cpu(tree: Tree, process: str) -> Cpu:
    """Return facts about the host's processors; ``limits.py`` has the limits on their use.

    The container is that of ``process`` (``self`` or a process id).
    """
    processor = tree.read("/proc/cpuinfo", first_processor, _FIRST_PROCESSOR_BYTES)
    online = online_cpus(tree)
    events = tree.names(_EVENT_SOURCES)
    cores = _count_groups(tree, online, ("core_cpus_list", "thread_siblings_list"))
    caches = _caches(tree, online)
    return Cpu(
        model=parsed(processor, model_of),
        architecture=first_known(tree.text("/proc/sys/kernel/arch"), parsed(processor, architecture_of)),
        isa_features=parsed(processor, lambda pairs: features_of(pairs, events.or_else(()))),
        logical_count=parsed(online, len),
        core_count=cores,
        socket_count=_count_groups(tree, online, ("package_cpus_list", "core_siblings_list")),
        numa_nodes=parsed(tree.read("/sys/devices/system/node/online", cpu_list), len),
        is_smt_active=_is_smt_active(tree, online, cores),
        l1d_bytes=parsed(caches, lambda sizes: _cache_size(sizes, 1, "Data")),
        l2_bytes=parsed(caches, lambda sizes: _cache_size(sizes, 2, "Unified")),
        l3_bytes=parsed(caches, lambda sizes: _cache_size(sizes, 3, "Unified")),
        has_pmu=parsed(events, has_pmu),
        virtualisation=inspect_virtualisation(tree, processor, process),
        clocksource=tree.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        governor=_governor(tree, online),
        frequency_mhz=_frequency(tree, online, processor),
        mitigations=_mitigations(tree),
    )


def online_cpus(tree: Tree) -> Fact[tuple[int, ...]]:
    """Return the numbers of the CPUs that are online."""
    return first_known(tree.read(f"{_CPUS}/online", cpu_list), tree.read("/proc/stat", cpus_of_stat))


def first_processor(text: str) -> dict[str, str]:
    """Return the first processor's block of /proc/cpuinfo; the other blocks repeat it."""
    return key_values(text.partition("\n\n")[0])


def cpus_of_stat(text: str) -> tuple[int, ...] | Unknown:
    """Return the CPUs in /proc/stat, which has a line "cpuN …" for each online CPU."""
    names = [
        line.split(" ", 1)[0].removeprefix("cpu") for line in text.splitlines() if line.startswith("cpu")
    ]
    return tuple(int(name) for name in names if name.isdecimal()) or Unknown("no CPU listed")


def model_of(processor: dict[str, str]) -> str | Unknown:
    """Return the processor's name; Arm processors report only numbers."""
    for key in ("model name", "cpu", "uarch"):
        if processor.get(key):
            return processor[key]
    implementer, part = processor.get("CPU implementer"), processor.get("CPU part")
    if implementer is None or part is None:
        return Unknown("no model name")
    return _ARM_PARTS.get((implementer, part), f"Arm implementer {implementer} part {part}")


def architecture_of(processor: dict[str, str]) -> str | Unknown:
    """Infer the architecture from the keys in cpuinfo, for kernels before 6.1, which lack kernel.arch."""
    if "flags" in processor:
        return "x86_64" if "lm" in processor["flags"].split() else "i686"
    if processor.get("CPU architecture") == "8":
        return "aarch64"
    return Unknown("neither x86 nor 64-bit Arm")


def features_of(processor: dict[str, str], event_sources: tuple[str, ...]) -> tuple[str, ...] | Unknown:
    """Return the instruction set's features, in the kernel's order and under its names.

    Arm's Statistical Profiling Extension is an event source and not a feature in cpuinfo: it is added as
    "spe".
    """
    for key in ("flags", "Features", "features"):
        if key in processor:
            has_spe = any(name.startswith("arm_spe") for name in event_sources)
            return (*processor[key].split(), *(("spe",) if has_spe else ()))
    return Unknown("no features listed")


def has_pmu(event_sources: tuple[str, ...]) -> bool:
    """Whether hardware counters are an event source: cpu, cpu_core on hybrid x86, armv8_pmuv3_0."""
    return any(name in ("cpu", "cpu_core") or name.startswith("armv") for name in event_sources)


def frequency_of(processor: dict[str, str]) -> float | Unknown:
    """Return the frequency in MHz from /proc/cpuinfo, unless it is the momentary one.

    With APERF and MPERF, cpuinfo shows the current frequency; without them, the rate of the time stamp
    counter, which is the nominal frequency: Linux, arch/x86/kernel/cpu/aperfmperf.c.
    """
    if "aperfmperf" in processor.get("flags", "").split():
        return Unknown("varies with the load, and the maximum is not reported")
    try:
        return float(processor["cpu MHz"])
    except KeyError:
        return Unknown("no frequency listed")
    except ValueError:
        return Unknown(f'not a frequency: "{processor["cpu MHz"]}"')


def _count_groups(tree: Tree, online: Fact[tuple[int, ...]], files: tuple[str, str]) -> Fact[int]:
    """Count cores or packages. Reads the file of one CPU per group, which lists the group's other CPUs.

    ``files`` are the file's name since Linux 5.3 and its older name.
    """
    if isinstance(online.value, Unknown):
        return Fact(online.value, online.source)
    source = files[0]
    seen: set[int] = set()
    count = 0
    for cpu in online.value:
        if cpu in seen:
            continue
        group = first_known(*(tree.read(f"{_CPUS}/cpu{cpu}/topology/{name}", cpu_list) for name in files))
        if isinstance(group.value, Unknown):
            return Fact(group.value, group.source)
        source = group.source.replace(f"/cpu{cpu}/", "/cpu*/")
        seen.update(group.value, (cpu,))
        count += 1
    return Fact(count, source)


def _is_smt_active(tree: Tree, online: Fact[tuple[int, ...]], cores: Fact[int]) -> Fact[bool]:
    stated = tree.read(f"{_CPUS}/smt/active", flag)
    return first_known(stated, parsed(cores, lambda count: count < len(online.or_else(()))))


def _caches(tree: Tree, online: Fact[tuple[int, ...]]) -> Fact[dict[str, int]]:
    """Return the caches of the first CPU: "level type" → size in bytes."""
    if isinstance(online.value, Unknown):
        return Fact(online.value, online.source)
    directory = f"{_CPUS}/cpu{online.value[0]}/cache"
    names = tree.names(directory)
    found: dict[str, Fact[int]] = {}
    for name in (name for name in names.or_else(()) if name.startswith("index")):
        level, kind = (tree.text(f"{directory}/{name}/{file}").or_else("?") for file in ("level", "type"))
        found[f"{level} {kind}"] = tree.read(f"{directory}/{name}/size", size_bytes)
    return parsed(names, lambda _: together(found, directory).value)


def _cache_size(caches: dict[str, int], level: int, kind: str) -> int | Unknown:
    return caches.get(f"{level} {kind}", Unknown(f"no level {level} cache listed"))


def _governor(tree: Tree, online: Fact[tuple[int, ...]]) -> Fact[str]:
    first = online.or_else(()) or (0,)
    return tree.text(f"{_CPUS}/cpu{first[0]}/cpufreq/scaling_governor")


def _frequency(tree: Tree, online: Fact[tuple[int, ...]], processor: Fact[dict[str, str]]) -> Fact[float]:
    """Return the first CPU's maximum frequency in MHz; without frequency scaling, the nominal one."""
    first = online.or_else(()) or (0,)
    scaled = tree.read(f"{_CPUS}/cpu{first[0]}/cpufreq/cpuinfo_max_freq", _khz_as_mhz)
    if scaled.value != NO_SUCH_FILE:
        return scaled
    return first_known(scaled, parsed(processor, frequency_of))


def _khz_as_mhz(text: str) -> float | Unknown:
    return int(text) / 1000 if text.isdecimal() else Unknown(f'not a frequency: "{text}"')


def _mitigations(tree: Tree) -> Fact[dict[str, str]]:
    directory = f"{_CPUS}/vulnerabilities"
    names = tree.names(directory)
    if isinstance(names.value, Unknown):
        return Fact(names.value, names.source)
    return together({name: tree.text(f"{directory}/{name}") for name in names.value}, directory)


def read_caches(tree: Tree) -> tuple[Cache, ...]:
    """Return the caches with a geometry reported by the kernel; a virtual machine may show none."""
    return tuple(_with_geometry(tree))


def _with_geometry(tree: Tree) -> Iterator[Cache]:
    for name in tree.names(_FIRST_CACHES).or_else(()):
        path = f"{_FIRST_CACHES}/{name}"
        size = tree.read(f"{path}/size", size_bytes).or_none()
        level, ways, line = (
            tree.read(f"{path}/{file}", number).or_none()
            for file in ("level", "ways_of_associativity", "coherency_line_size")
        )
        if name.startswith("index") and size and level and ways is not None and line:
            yield Cache(level, tree.text(f"{path}/type").or_else(""), size, ways or size // line, line)
