"""A profile of tuned as a peer: what the kernel has of it."""

from __future__ import annotations

import dataclasses

from tests.fix_settings import host_of
from tests.unit.studies.bundled.test_tuned_vs_default import SWAPPINESS

from pgdyno.base.facts import Fact
from pgdyno.plan.peers.tuned_profile import tuned_files

GOVERNORS = [f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor" for cpu in (0, 1)]


def test_of_the_profile_is_taken_what_the_kernel_has() -> None:
    host = dataclasses.replace(host_of(), kernel_files={SWAPPINESS: Fact("60", SWAPPINESS)})
    assert tuned_files(host) == {SWAPPINESS: "3"}
    assert tuned_files(host_of())["/sys/kernel/mm/transparent_hugepage/enabled"] == "never"


def test_a_governor_is_set_on_every_cpu() -> None:
    files = tuned_files(host_of(kernel_files=dict.fromkeys(GOVERNORS, "powersave")))
    assert [files[path] for path in GOVERNORS] == ["performance", "performance"]


def test_a_choice_that_the_kernel_does_not_offer_is_left_out() -> None:
    files = tuned_files(host_of(kernel_files={"/sys/kernel/mm/transparent_hugepage/enabled": "[always]"}))
    assert "/sys/kernel/mm/transparent_hugepage/enabled" not in files
