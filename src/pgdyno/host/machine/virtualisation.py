"""Virtualisation of a process: bare metal, virtual machine, or a container on either.

Every result is based on a file, as in systemd-detect-virt(1); CPUID is not queried. The container is that of
the process: a server may run in one, and pgdyno outside it.
"""

from __future__ import annotations

from pgdyno.base.facts import Fact, unknown
from pgdyno.host.files.kernel_files import key_values
from pgdyno.host.files.tree import EMPTY, Tree
from pgdyno.host.machine.mounts import mount_of, read_mountinfo

_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO in Linux, include/linux/proc_ns.h
_RELEASE = "/proc/sys/kernel/osrelease"
_CLOCKSOURCES = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
_DMI = ("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name")
_DEVICE_TREE = "/proc/device-tree/hypervisor/compatible"

# A guest kernel lists its hypervisor's clock source.
_CLOCKS = {"kvm-clock": "kvm", "hyperv_clocksource": "hyperv", "xen": "xen"}

# Words in DMI's vendor and product. A vendor's bare-metal machines (Amazon's *.metal) are excluded first.
_VENDORS = {
    "QEMU": "kvm",
    "KVM": "kvm",
    "Amazon EC2": "kvm",
    "Google": "kvm",
    "OpenStack": "kvm",
    "VMware": "vmware",
    "VirtualBox": "virtualbox",
    "Virtual Machine": "hyperv",
    "Xen": "xen",
}

# Words in the control group of a container's processes, and in the files that its runtime mounts.
_RUNTIMES = {
    "kubepods": "kubernetes",
    "kubelet": "kubernetes",
    "etc-hosts": "kubernetes",
    "libpod": "podman",
    "overlay-containers": "podman",
    "docker": "docker",
    "lxc": "lxc",
}
_MARKER_FILES = {"/run/.containerenv": "podman", "/.dockerenv": "docker"}


def inspect_virtualisation(tree: Tree, processor: Fact[dict[str, str]], process: str) -> Fact[str]:
    """Return "none", a hypervisor ("kvm", "wsl", …), or "container:RUNTIME" with " on HYPERVISOR".

    ``process`` is ``self`` or a process id.
    """
    machine = _machine(tree, processor)
    container = _container(tree, process, is_wsl=machine.or_none() == "wsl")
    if container is None:
        return machine
    below = machine.or_else("none")
    name = f"container:{container.value}" + ("" if below == "none" else f" on {below}")
    return Fact(name, container.source if below == "none" else f"{container.source}, {machine.source}")


def _machine(tree: Tree, processor: Fact[dict[str, str]]) -> Fact[str]:
    """Return the kernel's platform: bare metal ("none") or a hypervisor, ignoring containers."""
    release = tree.text(_RELEASE)
    if "microsoft" in release.or_else("").lower():
        return Fact("wsl", release.source)
    flags = processor.or_else({}).get("flags")
    if flags is not None and "hypervisor" not in flags.split():
        return Fact("none", processor.source)
    for fact in (_by_clock(tree), _by_dmi(tree), _by_device_tree(tree)):
        if fact is not None:
            return fact
    if flags is not None:
        return Fact("hypervisor of unknown make", processor.source)
    return unknown("clock source, DMI and device tree do not show it", ", ".join(_DMI))


def _by_clock(tree: Tree) -> Fact[str] | None:
    clocks = tree.text(_CLOCKSOURCES)
    return _matching(_CLOCKS, clocks.or_else(""), clocks.source)


def _by_dmi(tree: Tree) -> Fact[str] | None:
    vendor, product = (tree.text(path) for path in _DMI)
    if product.or_else("").endswith("metal"):
        return Fact("none", product.source)
    for fact in (vendor, product):
        found = _matching(_VENDORS, fact.or_else(""), fact.source)
        if found is not None:
            return found
    return Fact("none", vendor.source) if vendor.is_known else None


def _by_device_tree(tree: Tree) -> Fact[str] | None:
    compatible = tree.text(_DEVICE_TREE)
    return _matching({"kvm": "kvm", "xen": "xen"}, compatible.or_else(""), compatible.source)


def _container(tree: Tree, process: str, *, is_wsl: bool) -> Fact[str] | None:
    """Return the container's runtime; None outside containers.

    Marker files alone are no proof: a container image keeps them when a virtual machine boots it. A container
    has its own PID namespace or, with --pid=host, at least an overlay as its root file system.
    """
    if process != "self" and (namespace := _nested(tree, process)) is not None:
        return _runtime(tree, process) or Fact("unknown", namespace.source)
    namespace = tree.link("/proc/self/ns/pid")  # also the process's, since it has one process id only
    runtime = _runtime(tree, process)
    if namespace.value == _INITIAL_PID_NAMESPACE:
        root = mount_of("/", read_mountinfo(tree, process).or_else(()))
        return runtime if root is None or root.filesystem == "overlay" else None
    if runtime is None and namespace.is_known and not is_wsl:  # WSL gives each distribution a namespace
        return Fact("unknown", namespace.source)
    return runtime


def _nested(tree: Tree, process: str) -> Fact[str] | None:
    """Return a process's ids in nested PID namespaces; None if it is in pgdyno's namespace.

    Every user may read them, unlike /proc/PID/ns.
    """
    numbers = tree.read(f"/proc/{process}/status", lambda text: key_values(text).get("NSpid", ""))
    return numbers if len(numbers.or_else("").split()) > 1 else None


def _runtime(tree: Tree, process: str) -> Fact[str] | None:
    group = tree.text(f"/proc/{process}/cgroup")
    mounts = read_mountinfo(tree, process)
    hosts = mount_of("/etc/hosts", mounts.or_else(()))
    mounted = hosts.root if hosts is not None and hosts.mount_point == "/etc/hosts" else ""
    by_group = _matching(_RUNTIMES, group.or_else(""), group.source)
    by_mount = _matching(_RUNTIMES, mounted, mounts.source)
    if by_group is not None or by_mount is not None:
        return by_group or by_mount
    root = "" if process == "self" else f"/proc/{process}/root"
    for path, runtime in _MARKER_FILES.items():
        marker = tree.text(f"{root}{path}")
        if marker.is_known or marker.value == EMPTY:
            return Fact(runtime, f"{root}{path}")
    return None


def _matching(words: dict[str, str], text: str, source: str) -> Fact[str] | None:
    """Return the meaning of the first of ``words`` that is in ``text``."""
    return next((Fact(meaning, source) for word, meaning in words.items() if word in text), None)
