"""Checks of the processors, and of the kernel's and the server's builds for them."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.plan.levers._contract import Check, Layer, Lever, Maturity, PlanContext, Risk, is_virtual
from pgdyno.postgres.server import Atomics

OPTIONS = "host.kernel.profile_options"

ATOMICS, FEATURES = "server.program.atomics", "host.cpu.isa_features"
LSE = "atomics"  # the kernel's word for it
INLINE_BY = "compiled with -march=armv8.2-a"

ANSWERS = "host.cpu.mitigations"
MITIGATED, VULNERABLE = "Mitigation", "Vulnerable"  # how the kernel's answers begin

NODES, SOCKETS = "host.cpu.numa_nodes", "host.cpu.socket_count"

CONTROL = "/sys/devices/system/cpu/smt/control"
IS_ACTIVE, CPUS, CORES = "host.cpu.is_smt_active", "host.cpu.logical_count", "host.cpu.core_count"
OFF = {
    "off": f"off, and the kernel can turn it on: echo on > {CONTROL}",
    "forceoff": "off by the firmware or the kernel's command line, where alone it can be turned on",
    "notsupported": "this processor's cores have one thread each",
}


def _kernel_profile(ctx: PlanContext) -> str:
    found = "built without a profile; docs/guides/kernel-profile.md tells how to build with one"
    if _has_options(ctx):
        options = ", ".join(ctx.known(OPTIONS))
        found = f"configured with {options}: whether a profile was used, the kernel does not tell"
    return f"reported only: {found}"


def _has_options(ctx: PlanContext) -> bool:
    return bool(ctx.known(OPTIONS))


def _lse_atomics(ctx: PlanContext) -> str:
    counted: Atomics = ctx.known(ATOMICS)
    if counted.inline > counted.outline:
        found = f"the server's own code has {counted.inline} of the instructions"
    elif counted.outline:
        found = (
            f"they are in {counted.outline} helpers, which ask each time whether the processor has them; "
            f"{INLINE_BY} they would be in the server's own code"
        )
    elif LSE in ctx.known(FEATURES):
        found = f"the processor has them, and the server does not use them; {INLINE_BY} it would"
    else:
        found = "neither the processor nor the server has them"
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
            "server on all of it, undivided is the simpler choice"
        )
    elif nodes < sockets:
        found = f"nodes {nodes}, sockets {sockets}: the firmware hides which memory is near"
    return f"reported only: {found}{_told_by(ctx)}"


def _told_by(ctx: PlanContext) -> str:
    is_guest = ctx.host is not None and is_virtual(ctx.host)
    return "; the hypervisor decides which values are visible here" if is_guest else ""


def _is_divided(ctx: PlanContext) -> bool:
    return bool(ctx.known(NODES) > ctx.known(SOCKETS))


def _smt(ctx: PlanContext) -> str:
    found = f"on: {ctx.known(CPUS)} CPUs on {ctx.known(CORES)} cores"
    if not _is_active(ctx):
        found = OFF.get(ctx.value(CONTROL) or "", f"off: {ctx.known(CPUS)} CPUs on {ctx.known(CORES)} cores")
    return f"reported only: {found}{_told_by(ctx)}"


def _is_active(ctx: PlanContext) -> bool:
    return bool(ctx.known(IS_ACTIVE))


CHECKS = (
    Check(
        Lever(
            name="kernel_profile",
            title="a kernel built with a profile",
            layer=Layer.HARDWARE,
            risk=Risk.REBOOT,
            maturity=Maturity.PREVIEW,
            facts=(OPTIONS,),
        ),
        _kernel_profile,
        _has_options,
        "a kernel laid out by AutoFDO or Propeller, for who keeps a kernel of his own: the part of a short "
        "transaction that is the kernel's gets faster. Google, on Linux 6.9: 2.2 to 2.6 % in UnixBench, 6.1 "
        "% in a network benchmark. up to 5 % in applications. No figure for PostgreSQL. Updates, support "
        "and signatures are one's own then.",
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
            maturity=Maturity.PREVIEW,
            facts=(ATOMICS, FEATURES),
        ),
        _lse_atomics,
        _has_atomics,
        "the instructions of Armv8.1 in the server's own code, where many CPUs contend: without them every "
        "lock and pin is a loop that starts over when another CPU interferes. Such a program does not run "
        "on Armv8.0. A. Korotkov (2021): a dramatic effect on 64 cores of Graviton2, none on M1, slightly "
        "worse on Kunpeng 920. No figure of our own yet.",
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
            maturity=Maturity.PREVIEW,
            facts=(ANSWERS,),
        ),
        _mitigations,
        _is_mitigated,
        "all of them: without them one program can read another's memory, and pgdyno does not trade that "
        "for speed. Who compares two machines has to know of them. Reported in 2018: 7 to 23 % of a load "
        "like TPC-H. No figure of our own yet.",
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
            maturity=Maturity.PREVIEW,
            facts=(NODES, SOCKETS),
        ),
        _numa_clustering,
        _is_divided,
        "as many nodes as sockets, for one server on all of a machine: only the firmware can change it "
        "(SNC, NPS). In a published campaign on a divided processor the placement of shared memory changed "
        "with every restart, and the results with it. No figure of our own yet.",
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
            maturity=Maturity.PREVIEW,
            reads=(CONTROL,),
            facts=(IS_ACTIVE, CPUS, CORES),
        ),
        _smt,
        _is_active,
        "on, unless it is off on purpose: a backend waits for memory much of its time, and the core works "
        "for another meanwhile. What two threads share may leak from one to the other. No figure of our own "
        "yet.",
        (
            "https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-devices-system-cpu",
            "https://docs.kernel.org/admin-guide/hw-vuln/index.html",
        ),
    ),
)
