"""Checks of the processors, and of the builds of the kernel and the server for them."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.plan.levers._contract import Check, Layer, Lever, PlanContext, Risk, is_virtual
from pgdyno.postgres.server import Atomics

OPTIONS = "host.kernel.profile_options"

ATOMICS, FEATURES = "server.program.atomics", "host.cpu.isa_features"
LSE = "atomics"  # the kernel's name of the feature
INLINE_BY = "compiled with -march=armv8.2-a"

ANSWERS = "host.cpu.mitigations"
MITIGATED, VULNERABLE = "Mitigation", "Vulnerable"  # first words of the kernel's texts

NODES, SOCKETS = "host.cpu.numa_nodes", "host.cpu.socket_count"

CONTROL = "/sys/devices/system/cpu/smt/control"
IS_ACTIVE, CPUS, CORES = "host.cpu.is_smt_active", "host.cpu.logical_count", "host.cpu.core_count"
OFF = {
    "off": f"off, and the kernel can turn it on: echo on > {CONTROL}",
    "forceoff": "turned off in the firmware or on the kernel's command line; only there can it be turned on",
    "notsupported": "this processor's cores have one thread each",
}


def _kernel_profile(ctx: PlanContext) -> str:
    found = "built without a profile; docs/guides/kernel-profile.md explains how to build with one"
    if _has_options(ctx):
        options = ", ".join(ctx.known(OPTIONS))
        found = f"configured with {options}; the kernel does not report whether a profile was used"
    return f"reported only: {found}"


def _has_options(ctx: PlanContext) -> bool:
    return bool(ctx.known(OPTIONS))


def _lse_atomics(ctx: PlanContext) -> str:
    counted: Atomics = ctx.known(ATOMICS)
    if counted.inline > counted.outline:
        found = f"the server's code has {counted.inline} of the instructions inline"
    elif counted.outline:
        found = (
            f"the instructions are in {counted.outline} helpers, which check the processor at every call; "
            f"{INLINE_BY} they would be inline"
        )
    elif LSE in ctx.known(FEATURES):
        found = f"the processor has the instructions, but the server does not use them; {INLINE_BY} it would"
    else:
        found = "the processor and the server do not have the instructions"
    return f"reported only: {found}"


def _has_atomics(ctx: PlanContext) -> bool:
    counted: Atomics = ctx.known(ATOMICS)
    return counted.inline + counted.outline > 0


def _mitigations(ctx: PlanContext) -> str:
    mitigated, open_ = (_names(ctx, beginning) for beginning in (MITIGATED, VULNERABLE))
    return f"reported only, never changed: mitigated: {mitigated}; open: {open_}"


def _names(ctx: PlanContext, beginning: str) -> str:
    answers: Mapping[str, str] = ctx.known(ANSWERS)
    return ", ".join(sorted(name for name in answers if answers[name].startswith(beginning))) or "none"


def _is_mitigated(ctx: PlanContext) -> bool:
    return _names(ctx, MITIGATED) != "none"


def _numa_clustering(ctx: PlanContext) -> str:
    nodes, sockets = ctx.known(NODES), ctx.known(SOCKETS)
    found = f"nodes {nodes}, sockets {sockets}: the processors are not divided"
    if nodes > sockets:
        found = (
            f"nodes {nodes}, sockets {sockets}: the firmware divides each processor (SNC, NPS); for one "
            "server on the whole machine, undivided processors are simpler"
        )
    elif nodes < sockets:
        found = f"nodes {nodes}, sockets {sockets}: the firmware hides which memory is local"
    return f"reported only: {found}{_guest_caveat(ctx)}"


def _guest_caveat(ctx: PlanContext) -> str:
    is_guest = ctx.host is not None and is_virtual(ctx.host)
    return "; the hypervisor decides which values are visible here" if is_guest else ""


def _is_divided(ctx: PlanContext) -> bool:
    return bool(ctx.known(NODES) > ctx.known(SOCKETS))


def _smt(ctx: PlanContext) -> str:
    found = f"on: {ctx.known(CPUS)} CPUs on {ctx.known(CORES)} cores"
    if not _is_active(ctx):
        found = OFF.get(ctx.value(CONTROL) or "", f"off: {ctx.known(CPUS)} CPUs on {ctx.known(CORES)} cores")
    return f"reported only: {found}{_guest_caveat(ctx)}"


def _is_active(ctx: PlanContext) -> bool:
    return bool(ctx.known(IS_ACTIVE))


CHECKS = (
    Check(
        Lever(
            name="kernel_profile",
            title="a kernel built with a profile",
            layer=Layer.HARDWARE,
            risk=Risk.REBOOT,
            facts=(OPTIONS,),
        ),
        _kernel_profile,
        _has_options,
        "a kernel optimised with AutoFDO or Propeller, for those who maintain their own kernel: it speeds up "
        "the kernel's part of short transactions. Google, on Linux 6.9: 2.2 to 2.6 % in UnixBench, 6.1 % in "
        "a network benchmark, up to 5 % in applications. No figure for PostgreSQL. You must then maintain "
        "updates, support and signatures yourself.",
        (
            "https://docs.kernel.org/dev-tools/autofdo.html",
            "https://docs.kernel.org/dev-tools/propeller.html",
            "docs/guides/kernel-profile.md: the commands",
        ),
    ),
    Check(
        Lever(
            name="lse_atomics",
            title="atomic operations in one instruction",
            layer=Layer.HARDWARE,
            risk=Risk.RESTART,
            facts=(ATOMICS, FEATURES),
        ),
        _lse_atomics,
        _has_atomics,
        "inline atomic instructions of Armv8.1, if many CPUs contend: without them every lock and pin is a "
        "loop that restarts when another CPU interferes. Such a program does not run on Armv8.0. A. Korotkov "
        "(2021): a dramatic effect on 64 cores of Graviton2, none on M1, slightly worse on Kunpeng 920. Not "
        "yet measured by pgdyno.",
        (
            "https://akorotkov.github.io/blog/2021/04/30/arm/",
            "https://github.com/aws/aws-graviton-getting-started",
            "https://gcc.gnu.org/onlinedocs/gcc/AArch64-Options.html",
        ),
    ),
    Check(
        Lever(
            name="mitigations",
            title="mitigations of CPU vulnerabilities",
            layer=Layer.HARDWARE,
            risk=Risk.REBOOT,
            facts=(ANSWERS,),
        ),
        _mitigations,
        _is_mitigated,
        "all of them: without them one program can read another's memory, and pgdyno does not trade security "
        "for speed. A comparison of two machines must account for them. Reported in 2018: they cost 7 to "
        "23 % with a load like TPC-H. Not yet measured by pgdyno.",
        (
            "https://docs.kernel.org/admin-guide/hw-vuln/index.html",
            "https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-devices-system-cpu",
        ),
    ),
    Check(
        Lever(
            name="numa_clustering",
            title="processors divided into NUMA nodes",
            layer=Layer.HARDWARE,
            risk=Risk.REBOOT,
            facts=(NODES, SOCKETS),
        ),
        _numa_clustering,
        _is_divided,
        "as many nodes as sockets, for one server on the whole machine; only the firmware can change it "
        "(SNC, NPS). In a published benchmark series on a divided processor, the placement of shared memory "
        "changed with every restart, and so did the results. Not yet measured by pgdyno.",
        (
            "https://docs.kernel.org/admin-guide/mm/numaperf.html",
            "https://github.com/andrewkim-pkt/postgres-pgo-lto-bolt",
        ),
    ),
    Check(
        Lever(
            name="smt",
            title="two threads on each core",
            layer=Layer.HARDWARE,
            risk=Risk.REBOOT,
            reads=(CONTROL,),
            facts=(IS_ACTIVE, CPUS, CORES),
        ),
        _smt,
        _is_active,
        "on, unless deliberately turned off: a backend spends much of its time waiting for memory, during "
        "which the core can run another. Data may leak between the two threads through what they share. Not "
        "yet measured by pgdyno.",
        (
            "https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-devices-system-cpu",
            "https://docs.kernel.org/admin-guide/hw-vuln/index.html",
        ),
    ),
)
