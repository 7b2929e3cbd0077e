"""Machines, virtual machines and containers, by the words that these systems write into their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.host.machines import FixtureTree

from pgdyno.base.facts import Fact
from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.cpu import first_processor
from pgdyno.host.machine.virtualisation import inspect_virtualisation

DMI = "/sys/class/dmi/id"
CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
GUEST = {"/proc/cpuinfo": "flags : fpu lm hypervisor"}
METAL = {"/proc/cpuinfo": "flags : fpu lm"}
ARM = {"/proc/cpuinfo": "Features : fp atomics"}
OWN_PIDS, HOST_PIDS = "pid:[4026532561]", "pid:[4026531836]"
OVERLAY = "690 510 0:45 / / rw - overlay overlay rw\n"
DISK = "27 1 254:0 / / rw - ext4 /dev/vda rw\n"


def inspect(
    root: Path, files: dict[str, str], namespace: str | None = HOST_PIDS, process: str = "self"
) -> Fact[str]:
    for path, text in files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    if namespace is not None:
        (root / "proc/self/ns").mkdir(parents=True)
        (root / "proc/self/ns/pid").symlink_to(namespace)
    tree = Tree(root)
    return inspect_virtualisation(tree, tree.read("/proc/cpuinfo", first_processor), process)


@pytest.mark.parametrize(
    ("files", "expected", "source"),
    [
        (METAL, "none", "/proc/cpuinfo"),
        (GUEST | {CLOCKS: "tsc kvm-clock acpi_pm"}, "kvm", CLOCKS),
        (GUEST | {CLOCKS: "hyperv_clocksource_tsc_page acpi_pm"}, "hyperv", CLOCKS),
        (GUEST | {CLOCKS: "xen tsc"}, "xen", CLOCKS),
        (
            GUEST | {f"{DMI}/sys_vendor": "QEMU", f"{DMI}/product_name": "Standard PC"},
            "kvm",
            f"{DMI}/sys_vendor",
        ),
        (
            GUEST | {f"{DMI}/sys_vendor": "Microsoft Corporation", f"{DMI}/product_name": "Virtual Machine"},
            "hyperv",
            f"{DMI}/product_name",
        ),
        (
            ARM | {f"{DMI}/sys_vendor": "Amazon EC2", f"{DMI}/product_name": "c7g.metal"},
            "none",
            f"{DMI}/product_name",
        ),
        (
            ARM | {f"{DMI}/sys_vendor": "Amazon EC2", f"{DMI}/product_name": "c7g.large"},
            "kvm",
            f"{DMI}/sys_vendor",
        ),
        (
            ARM | {"/proc/device-tree/hypervisor/compatible": "linux,kvm\0"},
            "kvm",
            "/proc/device-tree/hypervisor/compatible",
        ),
        (GUEST, "hypervisor of unknown make", "/proc/cpuinfo"),
        (
            {"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2"},
            "wsl",
            "/proc/sys/kernel/osrelease",
        ),
    ],
)
def test_the_machine_below_is_told_by_its_files(
    tmp_path: Path, files: dict[str, str], expected: str, source: str
) -> None:
    assert inspect(tmp_path, files) == Fact(expected, source)


def test_a_machine_that_tells_nothing_is_unknown(tmp_path: Path) -> None:
    found = inspect(tmp_path, ARM)
    assert found.or_none() is None
    assert found.source == f"{DMI}/sys_vendor, {DMI}/product_name"


HOSTS = "713 690 253:0 {} /etc/hosts rw - xfs /dev/sda1 rw\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/.dockerenv": ""}, "container:docker"),
        ({"/run/.containerenv": 'engine="podman"'}, "container:podman"),
        ({"/proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/x.scope"}, "container:kubernetes"),
        ({"/proc/self/cgroup": "4:memory:/lxc/db"}, "container:lxc"),
        (
            {"/proc/self/mountinfo": OVERLAY + HOSTS.format("/var/lib/kubelet/pods/1/etc-hosts")},
            "container:kubernetes",
        ),
        (
            {
                "/proc/self/mountinfo": OVERLAY
                + HOSTS.format("/containers/storage/overlay-containers/1/hosts")
            },
            "container:podman",
        ),
        ({}, "container:unknown"),
    ],
)
def test_a_container_has_a_pid_namespace_of_its_own(
    tmp_path: Path, files: dict[str, str], expected: str
) -> None:
    assert inspect(tmp_path, METAL | files, OWN_PIDS).value == expected


def test_a_container_on_a_guest_names_both(tmp_path: Path) -> None:
    found = inspect(tmp_path, GUEST | {CLOCKS: "kvm-clock", "/.dockerenv": ""}, OWN_PIDS)
    assert found == Fact("container:docker on kvm", f"/.dockerenv, {CLOCKS}")


def test_a_virtual_machine_made_from_a_container_image_is_no_container(tmp_path: Path) -> None:
    files = METAL | {"/.dockerenv": "", "/proc/self/mountinfo": DISK}
    assert inspect(tmp_path, files, HOST_PIDS).value == "none"


def test_a_container_that_shares_the_hosts_pids_has_an_overlay_as_its_root(tmp_path: Path) -> None:
    files = METAL | {"/.dockerenv": "", "/proc/self/mountinfo": OVERLAY}
    assert inspect(tmp_path, files, HOST_PIDS).value == "container:docker"


def test_without_a_readable_namespace_the_markers_are_believed(tmp_path: Path) -> None:
    assert inspect(tmp_path, METAL | {"/.dockerenv": ""}, None).value == "container:docker"
    assert inspect(tmp_path, METAL, None).value == "container:docker"


def test_a_wsl_distribution_is_no_container_for_its_pid_namespace(tmp_path: Path) -> None:
    files = {"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2"}
    assert inspect(tmp_path, files, OWN_PIDS).value == "wsl"
    assert inspect(tmp_path, {"/.dockerenv": ""}, None).value == "container:docker on wsl"


NESTED = {"/proc/7/status": "NSpid:\t7\t1\n"}  # a container's first process, seen from the host
BESIDE = {"/proc/7/status": "NSpid:\t7\n"}  # in the PID namespace that we are in


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/7/cgroup": "0::/system.slice/docker-5d0f.scope"}, "container:docker"),
        ({"/proc/7/mountinfo": OVERLAY + HOSTS.format("/docker/containers/1/hosts")}, "container:docker"),
        ({"/proc/7/root/run/.containerenv": ""}, "container:podman"),
        ({}, "container:unknown"),
    ],
)
def test_a_server_in_a_container_is_told_from_outside(
    tmp_path: Path, files: dict[str, str], expected: str
) -> None:
    assert inspect(tmp_path, METAL | NESTED | files, HOST_PIDS, "7").value == expected


def test_a_server_beside_us_on_the_host_is_in_no_container(tmp_path: Path) -> None:
    files = METAL | BESIDE | {"/proc/7/cgroup": "0::/system.slice/postgresql.service", "/.dockerenv": ""}
    assert inspect(tmp_path, files, HOST_PIDS, "7").value == "none"


def test_a_server_that_shares_the_hosts_pids_is_told_by_its_own_root(tmp_path: Path) -> None:
    files = METAL | BESIDE | {"/proc/self/mountinfo": DISK, "/proc/7/cgroup": "0::/docker/5d0f"}
    assert inspect(tmp_path / "hidden", files, HOST_PIDS, "7").value == "container:docker"
    overlay = files | {"/proc/7/mountinfo": OVERLAY}
    assert inspect(tmp_path / "overlay", overlay, HOST_PIDS, "7").value == "container:docker"
    disk = files | {"/proc/7/mountinfo": DISK}
    assert inspect(tmp_path / "disk", disk, HOST_PIDS, "7").value == "none"


def test_a_server_in_our_own_container_is_in_it(tmp_path: Path) -> None:
    files = METAL | BESIDE | {"/proc/7/cgroup": "0::/"}
    assert inspect(tmp_path, files, OWN_PIDS, "7").value == "container:unknown"


def test_a_container_root_that_may_not_be_entered_is_no_marker(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    inspect(root, METAL | BESIDE, HOST_PIDS, "7")
    tree = FixtureTree(root, ("/proc/7/root/*", "/proc/7/mountinfo"))
    found = inspect_virtualisation(tree, tree.read("/proc/cpuinfo", first_processor), "7")
    assert found.value == "none"
