"""``pgdyno awake``: refused where it would cost somebody else or does not help."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.measure.counted_spinners import CountedSpinners

from pgdyno.base.errors import RefusedError
from pgdyno.cli.awake import command
from pgdyno.host.cpu_idling import Awake, AwakeMeans
from pgdyno.host.files.tree import Tree
from pgdyno.host.probing.spinners import Spinners
from pgdyno.measure.awake import Probe, staying_awake


def test_it_says_what_a_wake_up_takes_now() -> None:
    spinners = CountedSpinners(Tree(), (0, 1))
    with staying_awake(spinners, lambda: 12.0 if spinners.running else 115.0) as awake:
        assert awake == Awake(AwakeMeans.SPINNERS, "", 115.0, 12.0)
        assert spinners.running == [0, 1]
    assert spinners.running == []


def refused(spinners: Spinners, probe: Probe) -> str:
    with pytest.raises(RefusedError) as caught, staying_awake(spinners, probe):
        pytest.fail("it stays awake")
    return str(caught.value)


def test_where_it_does_not_help_it_is_refused() -> None:
    spinners = CountedSpinners(Tree(), (0, 1))
    assert refused(spinners, lambda: 15.0 if spinners.running else 16.0) == (
        "keeping CPUs busy does not shorten a wake-up here\n"
        "DETAIL:  a wake-up takes 15.0 µs with it, and 16.0 µs without\n"
        "HINT:  in a KVM guest, the lever halt_polling may: pgdyno advise --layers system"
    )
    assert spinners.running == []


def test_where_nothing_is_known_of_the_machine_it_is_refused(tmp_path: Path) -> None:
    said = refused(Spinners(Tree(tmp_path), (0, 1)), lambda: 1.0)
    assert said.startswith("CPUs are not kept awake here\nDETAIL:  the kernel's platform is unknown: ")


def test_a_unit_is_printed_and_nothing_done() -> None:
    done = CliRunner().invoke(command, ["--unit"])
    assert done.exit_code == 0
    assert "ExecStart=" in done.output
    assert " awake\n" in done.output
