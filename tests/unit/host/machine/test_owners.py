"""Who sets values of the kernel by himself, on directories that look like machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.owners import find_owners

GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
PREFERENCE = "/sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference"
SWAPPINESS, IRQ = "/proc/sys/vm/swappiness", "/proc/irq/41/smp_affinity_list"
TUNED = "/usr/bin/python3 -Es /usr/sbin/tuned -l -P"


def machine(root: Path, *commands: str, profile: str | None = None) -> Tree:
    (root / "proc").mkdir(parents=True)
    for pid, command in enumerate(("/sbin/init", "", *commands), start=1):
        (root / f"proc/{pid}").mkdir()
        (root / f"proc/{pid}/cmdline").write_text(command.replace(" ", "\0") + "\0")
    if profile is not None:
        (root / "etc/tuned").mkdir(parents=True)
        (root / "etc/tuned/active_profile").write_text(f"{profile}\n")
    return Tree(root)


def owned(tree: Tree) -> dict[str, list[str]]:
    """Return each owner's warning, with which of some files are its own."""
    owners = find_owners(tree).or_else(())
    files = (SWAPPINESS, GOVERNOR, PREFERENCE, IRQ)
    return {one.warning: [path for path in files if one.sets(path)] for one in owners}


@pytest.mark.parametrize("command", [TUNED, "/usr/sbin/tuned -l -P"])
def test_tuned_owns_everything_while_it_runs_with_a_profile(tmp_path: Path, command: str) -> None:
    assert owned(machine(tmp_path, command, profile="balanced postgresql")) == {
        "TuneD is active with profile balanced postgresql, and would restore its own values": [
            SWAPPINESS, GOVERNOR, PREFERENCE, IRQ
        ]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "profile"),
    [
        (TUNED, None),
        (TUNED, ""),  # after tuned-adm off
        ("/usr/bin/python3 /usr/bin/firewalld", "balanced"),  # its profile stays when it is stopped
        ("/usr/bin/less /usr/sbin/tuned", "balanced"),
        ("/usr/bin/python3", "balanced"),
    ],
)
def test_tuned_owns_nothing_without_a_profile_or_a_process(
    tmp_path: Path, command: str, profile: str | None
) -> None:
    assert owned(machine(tmp_path, command, profile=profile)) == {}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/libexec/power-profiles-daemon", "power-profiles-daemon"),
        (
            "/opt/auto-cpufreq/venv/bin/python /opt/auto-cpufreq/venv/bin/auto-cpufreq --daemon",
            "auto-cpufreq",
        ),
    ],
)
def test_services_for_power_own_the_frequencies(tmp_path: Path, command: str, name: str) -> None:
    tree = machine(tmp_path, command)
    assert owned(tree) == {f"{name} runs, and would restore its own values": [GOVERNOR, PREFERENCE]}
    assert [one.instead for one in find_owners(tree).or_else(())] == [f"stop it: systemctl stop {name}"]


def test_tlp_is_known_by_what_it_has_set_since_the_start(tmp_path: Path) -> None:
    tree = machine(tmp_path)
    (tmp_path / "run/tlp").mkdir(parents=True)
    (tmp_path / "run/tlp/last_pwr").write_text("0 0\n")
    assert owned(tree) == {"TLP is active, and would restore its own values": [GOVERNOR, PREFERENCE]}


def test_irqbalance_owns_the_affinities_of_interrupts(tmp_path: Path) -> None:
    assert owned(machine(tmp_path, "/usr/sbin/irqbalance --foreground")) == {
        "irqbalance runs, and would restore its own values": [IRQ]
    }


def test_nobody_owns_anything_on_a_plain_machine(tmp_path: Path) -> None:
    found = find_owners(machine(tmp_path, "/usr/lib/postgresql/17/bin/postgres -D /data"))
    assert (found.value, found.source) == ((), "/proc")


def test_a_pattern_of_a_lever_is_owned_like_its_files(tmp_path: Path) -> None:
    (owner,) = find_owners(machine(tmp_path, "/usr/libexec/power-profiles-daemon")).or_else(())
    assert owner.sets("/sys/devices/system/cpu/cpufreq/*/scaling_governor")
    assert not owner.sets("/sys/devices/system/cpu/cpu*/cpuidle/*/disable")
