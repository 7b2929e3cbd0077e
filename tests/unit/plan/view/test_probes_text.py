"""Probes as text; the lines are written by hand."""

from __future__ import annotations

from pgdyno.base.facts import Fact, unknown
from pgdyno.host.probes import Probes, WakeUp
from pgdyno.plan.view.host_text import probes_text

CPUS = "CPU 0 wakes a process on CPU 1, median of 300"


def test_every_probe_has_a_line_with_what_was_measured() -> None:
    probes = Probes(
        WakeUp(Fact(115.26, CPUS), unknown("there is one CPU", "two CPUs")),
        Fact(182.4, "getppid"),
        Fact(1727.0, "first write"),
        Fact(74.2, "/srv"),
        Fact(0.023, "/proc/stat"),
    )
    assert probes_text(probes).splitlines() == [
        "Probes of this machine",
        f"  wake-up on an idle CPU              115.3 µs  ({CPUS})",
        "  wake-up on a CPU kept busy          unknown: there is one CPU  (two CPUs)",
        "  system call                         182 ns  (getppid)",
        "  page fault                          1,727 ns  (first write)",
        "  write and fsync of 8 kB             74 µs  (/srv)",
        "  stolen CPU time                     2.3 %  (/proc/stat)",
    ]
