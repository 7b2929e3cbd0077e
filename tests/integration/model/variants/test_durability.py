"""Ways to make one server less durable than its variant says, each planted in a real server and found."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, wait_until
from tests.golden.synthetic import experiment as synthetic

from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.attached_server import AttachedServer
from pgdyno.measure.evidence import read_durability
from pgdyno.measure.verdicts.durability import breaches
from pgdyno.model.variants.durability import READ_BACK, DurabilityReading
from pgdyno.model.variants.variant import Variant

pytestmark = pytest.mark.server

NO_SYNC = """
int fsync(int fd) { (void) fd; return 0; }
int fdatasync(int fd) { (void) fd; return 0; }
"""
LOST = "a crash can lose transactions that were reported as committed"
ASKED = "which its variant does not set"


def reading_of(server: RealServer, environment: dict[str, str] | None = None) -> DurabilityReading:
    """Read back a running server as an arm of an experiment."""
    found = AttachedServer(server.dsn, str(server.socket_directory), server.port, "postgres", server.pid)
    return read_durability(Arm(Variant("plan"), found, "postgres", environment or {}))


def found_in(*readings: DurabilityReading) -> tuple[str, ...]:
    """Return what an experiment with these readings says of its variant."""
    return breaches(replace(synthetic(), variants=(Variant("plan"),), durability=readings), "plan")


@contextmanager
def planted(server: RealServer, plant: str, remove: str) -> Iterator[None]:
    server.execute(plant)
    server.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        server.execute(remove)
        server.execute("SELECT pg_reload_conf()")


def test_a_server_as_it_was_created_shows_everything_and_nothing_is_wrong(pg18: RealServer) -> None:
    reading = reading_of(pg18)
    assert found_in(reading) == ()
    assert set(READ_BACK) - set(reading.settings) == {"ignore_invalid_pages"} - set(reading.settings)
    assert reading.settings["fsync"] == "on"
    assert (reading.replaced, reading.unknown) == ({}, "")


@pytest.mark.parametrize("way", ["ROLE postgres", "DATABASE postgres"])
def test_a_value_that_a_role_or_database_brings_is_seen_as_the_load_sees_it(
    pg18: RealServer, way: str
) -> None:
    plant, remove = (f"ALTER {way} {verb} synchronous_commit" for verb in ("SET", "RESET"))
    with planted(pg18, f"{plant} = off", remove):
        reading = reading_of(pg18)
    assert found_in(reading) == (f"the server of plan ran with synchronous_commit=off, {ASKED}: {LOST}",)


def test_a_value_in_the_servers_own_configuration_is_seen(pg18: RealServer) -> None:
    with planted(pg18, "ALTER SYSTEM SET full_page_writes = off", "ALTER SYSTEM RESET full_page_writes"):
        reading = eventually(lambda: reading_of(pg18), lambda one: one.settings["full_page_writes"] == "off")
    assert found_in(reading) == (
        (
            f"the server of plan ran with full_page_writes=off, {ASKED}: "
            "a crash during a write can leave torn pages that recovery cannot repair"
        ),
    )


def eventually(
    read: Callable[[], DurabilityReading], is_there: Callable[[DurabilityReading], bool]
) -> DurabilityReading:
    """Read until a reload has taken effect, and return that reading."""
    readings: list[DurabilityReading] = []

    def is_there_now() -> bool:
        readings.append(read())
        return is_there(readings[-1])

    wait_until(is_there_now)
    return readings[-1]


def test_options_in_the_callers_environment_are_seen(
    pg18: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c synchronous_commit=off")
    assert found_in(reading_of(pg18)) == (
        f"the server of plan ran with synchronous_commit=off, {ASKED}: {LOST}",
    )


@pytest.fixture
def no_sync(home: Path) -> Path:
    """A library whose fsync does nothing, where the server's user can read it."""
    if shutil.which("cc") is None:
        pytest.skip("not installed: cc (apt install gcc libc6-dev)")
    source, library = home / "quick.c", home / "libquick.so"
    source.write_text(NO_SYNC)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=250)
    return library


def test_a_library_in_place_of_fsync_is_seen_whatever_it_is_called(
    scratch_pg18: RealServer, no_sync: Path
) -> None:
    scratch_pg18.stop()
    scratch_pg18.environment = {"LD_PRELOAD": str(no_sync)}
    scratch_pg18.start()
    reading = reading_of(scratch_pg18)
    assert reading.loader == {"LD_PRELOAD": "libquick.so"}
    assert reading.replaced == {"libquick.so": ("fdatasync", "fsync")}
    assert found_in(reading) == (
        (
            "the server of plan ran with libquick.so, which replaces fdatasync, fsync: "
            "written data may not be on disk"
        ),
    )


@pytest.mark.root
def test_a_library_is_seen_although_a_harmless_one_has_its_name(
    scratch_pg18: RealServer, no_sync: Path
) -> None:
    scratch_pg18.stop()
    scratch_pg18.environment = {"LD_PRELOAD": str(no_sync)}
    scratch_pg18.start()
    no_sync.unlink()
    shutil.copy(scratch_pg18.bin_directory / "pg_config", no_sync.with_name("libquick.so (deleted)"))
    reading = reading_of(scratch_pg18)
    assert reading.replaced == {"libquick.so (deleted)": ("fdatasync", "fsync")}


@pytest.fixture
def cheating(pg18_bin: Path, home: Path, no_sync: Path) -> Iterator[Callable[[str], Path]]:
    """Return what makes an installation whose server starts through a shell's words."""
    made: list[Path] = []

    def make(start: str) -> Path:
        prefix = home / f"cheating-{len(made)}"
        made.append(prefix)
        (prefix / "bin").mkdir(parents=True)
        for program in pg18_bin.iterdir():
            (prefix / "bin" / program.name).symlink_to(program)
        for beside in ("lib", "share"):
            (prefix / beside).symlink_to(pg18_bin.parent / beside)
        (prefix / "bin" / "postgres").unlink()
        words = start.format(library=no_sync, postgres=pg18_bin / "postgres")
        (prefix / "bin" / "postgres").write_text(f"#!/bin/sh\n{words}\n")
        (prefix / "bin" / "postgres").chmod(0o755)
        return prefix / "bin"

    yield make
    for prefix in made:
        shutil.rmtree(prefix)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (
            'exec {postgres} "$@" -c synchronous_commit=off',
            f"the server of quick ran with synchronous_commit=off, {ASKED}: {LOST}",
        ),
        (
            'LD_PRELOAD={library} exec {postgres} "$@"',
            "the server of quick ran with libquick.so, which replaces fdatasync, fsync",
        ),
    ],
)
def test_no_verdict_is_given_on_a_server_that_cheats(
    home: Path, cheating: Callable[[str], Path], pg18_bin: Path, tmp_path: Path, start: str, said: str
) -> None:
    cheat = cheating(start)
    options = ("--workload", "pgbench-select", "--scale", "1", "--block", "1s", "--blocks", "6")
    run = pgdyno("compare", f"{pg18_bin}@slow", f"{cheat}@quick", *options, "--json")
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert document["comparisons"]
    for verdict in document["comparisons"]:
        assert verdict["verdict"] == "inconclusive"
        assert said in verdict["reason"]
    assert {reading["variant"] for reading in document["durability"]["readings"]} == {"slow", "quick"}
    assert document["durability"]["warnings"][0].startswith(f"NOT DURABLE: {said}")

    shown = pgdyno("report", document["experiment"], "--output", str(tmp_path / "page.html"))
    assert shown.returncode == 0, shown.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"NOT DURABLE: {said.split(',', maxsplit=1)[0]}" in page
    packed = pgdyno("bundle", "export", document["experiment"], "--output", str(tmp_path / "cheat.zip"))
    assert packed.returncode == 0, packed.stderr
    with zipfile.ZipFile(tmp_path / "cheat.zip") as bundle:
        (name,) = (one for one in bundle.namelist() if one.endswith("experiment.json"))
        assert json.loads(bundle.read(name))["durability"]
    assert pgdyno("bundle", "verify", str(tmp_path / "cheat.zip")).returncode == 0
