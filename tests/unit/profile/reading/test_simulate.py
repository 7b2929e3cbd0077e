"""A simulation without valgrind, and of a program with instructions that valgrind does not know."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fix_progress import Remembered

from pgdyno.base.errors import MeasurementError, ServerError, ServerStartError, UsageError
from pgdyno.host.tracing.valgrind import Valgrind
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import parse_variant
from pgdyno.profile.reading import simulate
from pgdyno.profile.reading.profile import ProfileRequest
from pgdyno.workload.bundled.pgbench_select import WORKLOAD


def test_without_valgrind_its_package_is_named_before_anything_is_measured() -> None:
    request = ProfileRequest((), WORKLOAD, None, Design(), 2)
    with pytest.raises(UsageError, match="--simulate requires valgrind, which is not installed") as caught:
        simulate.profile_and_simulate(request, Remembered(), find=lambda: None)
    assert "apt-get install valgrind" in (caught.value.hint or "")


def test_an_instruction_that_valgrind_does_not_know_is_named(tmp_path: Path) -> None:
    # Recorded: valgrind 3.19 on AVX-512, within a server's log.
    words = "vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7D 0x48 0xFE 0xC0 0xB8 0x0 0x0 0x0"
    (tmp_path / "data.log").write_text(f"LOG:  starting PostgreSQL\n{words}\nLOG:  server process\n")
    failed = ServerStartError("the server did not start")
    with pytest.raises(ServerError, match=r"valgrind 3\.19\.0 does not support an instruction") as caught:
        simulate.explain(tmp_path, Valgrind("/usr/bin/valgrind", "3.19.0"), failed)
    assert caught.value.detail == words.removeprefix("vex amd64->IR: ")
    assert "pgdyno build --portable x86-64-v3" in (caught.value.hint or "")


def test_other_failures_are_left_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "data.log").write_text("FATAL:  out of memory\n")
    failed = ServerStartError("the server did not start")
    simulate.explain(tmp_path, Valgrind("/usr/bin/valgrind", "3.19.0"), failed)
    assert failed.__cause__ is None  # and nothing was raised in its place


def test_nothing_that_begins_by_the_clock_comes_between() -> None:
    asked = parse_variant("mine:checkpoint_timeout=5min,autovacuum=on,work_mem=64MB")
    taken = simulate.for_valgrind(asked).settings
    assert (taken["checkpoint_timeout"], taken["autovacuum"], taken["work_mem"]) == ("1d", "off", "64MB")


def test_the_reason_has_an_errors_detail_on_one_line() -> None:
    assert (
        simulate.unknown_misses(MeasurementError("the driver failed", detail="it said:\n  no room")).reason
        == "simulated: no data misses by structure, because the driver failed (it said: no room)"
    )
    assert simulate.unknown_misses(MeasurementError("there is no room")).reason.endswith(
        "because there is no room"
    )


def test_of_a_long_detail_the_end_is_said() -> None:
    log = "LOG:  starting\n" * 100 + "LOG:  database system is shut down"
    reason = simulate.unknown_misses(ServerError("the server was not ready", detail=log)).reason
    assert "because the server was not ready (… " in reason
    assert reason.endswith("LOG: starting LOG: database system is shut down)")
    assert len(reason) < 400
