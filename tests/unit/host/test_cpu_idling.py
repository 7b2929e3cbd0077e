"""Files of the kernel that decide how CPUs idle."""

from __future__ import annotations

from pgdyno.host.cpu_idling import idling_files


def test_only_files_about_idle_cpus_are_found() -> None:
    idling = (
        "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
        "/sys/devices/system/cpu/cpu0/cpuidle/state1/disable",
        "/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us",
        "/sys/devices/system/cpu/cpuidle/current_governor",
    )
    others = (
        "/sys/module/kvm/parameters/halt_poll_ns",
        "/proc/sys/vm/swappiness",
        "/sys/devices/system/cpu/smt",
    )
    assert idling_files((others[0], *idling, *others[1:])) == idling
