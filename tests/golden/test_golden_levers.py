"""Golden files: the catalogue of levers on a terminal; ``pytest --snapshot-update`` rewrites them."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from pgdyno.base.text import printable
from pgdyno.model.plans.plan import Change, Effect, Layer, LeverEntry, LeverFinding, PlanLine, Risk
from pgdyno.plan.view.plan_text import lever_page, levers_text

PAGE = """swappiness: server memory swapped out last.

What it does:
    Sets vm.swappiness to 10.

References:
    https://docs.kernel.org/admin-guide/sysctl/vm.html"""


class _Text(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "txt"


def entry(name: str, layer: Layer, maturity: str, finding: LeverFinding | None) -> LeverEntry:
    return LeverEntry(name, f"what {name} is good for", layer, maturity, Risk.SHARED, PAGE, finding)


def line(key: str, current: str, value: str) -> PlanLine:
    change = Change("swappiness", "kernel", key, current, value, Effect.IMMEDIATE)
    return PlanLine(change, Layer.SYSTEM, "a reason", "a source", Risk.SHARED, "pgdyno revert")


CPUS = range(4)
PLANNED = LeverFinding("off", "vm.swappiness = 60", (line("/proc/sys/vm/swappiness", "60", "10"),), None)
MANY = LeverFinding(
    "partial",
    ", ".join(f"/sys/devices/system/cpu/cpu{cpu}/governor = powersave" for cpu in CPUS),
    tuple(line(f"/sys/devices/system/cpu/cpu{cpu}/governor", "powersave", "performance") for cpu in CPUS),
    None,
)
ABSENT = LeverFinding(
    "absent", "/sys/x: no such file", (), "not available: /sys/x: no such file, as on hosts without it"
)
HOSTILE = LeverFinding("on", "autovacuum = \x1b[2Joff\nsmt on", (), "\x1b]0;title\x07 was chosen")
LEVERS = (
    entry("jit", Layer.APPLICATION, "stable", HOSTILE),
    entry("swappiness", Layer.SYSTEM, "preview", PLANNED),
    entry("absent_lever", Layer.SYSTEM, "preview", ABSENT),
    entry("cpu_governor", Layer.HARDWARE, "retired", MANY),
)


def test_levers_on_a_server(snapshot: SnapshotAssertion) -> None:
    assert printable(levers_text(LEVERS)) == snapshot(extension_class=_Text)


def test_levers_without_a_server(snapshot: SnapshotAssertion) -> None:
    known = [entry(one.name, one.layer, one.maturity, None) for one in LEVERS]
    assert levers_text(known) == snapshot(extension_class=_Text)


def test_page_of_one_lever_shows_all_that_it_found(snapshot: SnapshotAssertion) -> None:
    assert lever_page(LEVERS[3]) == snapshot(extension_class=_Text)


def test_no_line_is_wider_than_the_terminal() -> None:
    assert max(map(len, levers_text(LEVERS, width=72).splitlines())) <= 72
