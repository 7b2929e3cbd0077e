"""Builds of a tree that behaves like PostgreSQL's: configure, make, and an installation below DESTDIR."""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.fix_servers import wait_until

from pgdyno.base.errors import InstallationError
from pgdyno.builds.compiling.source_build import SourceBuild
from pgdyno.builds.spec.configure_options import ConfigureOptions, plan_options
from pgdyno.postgres.process.processes import is_alive

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("setpriv") is None,
    reason="not installed: make, or setpriv (apt install make util-linux)",
)

CONFIGURE = """\
#!/bin/sh
echo "checking $*"
printf 'all:\\n\\t@echo gcc -c -o one.o one.c\\n\\t@sh ./broken\\n' > Makefile
printf 'install:\\n\\tmkdir -p $(DESTDIR)/opt/pg/bin && cp pg_config $(DESTDIR)/opt/pg/bin\\n' >> Makefile
"""
PG_CONFIG = """\
#!/bin/sh
case $1 in
--version) echo PostgreSQL 17.11;;
--cflags) echo -Wall {cflags};;
esac
"""
CONTRIB = "all:\n\t@echo gcc -c -o two.o two.c\ninstall:\n\t@true\n"


def plan() -> ConfigureOptions:
    return plan_options((17,), (), "gcc", "-O2", wants_liburing=False)


@pytest.fixture
def build(tmp_path: Path) -> SourceBuild:
    tree = tmp_path / "tree"
    for extension in plan().extensions:
        (tree / "contrib" / extension).mkdir(parents=True)
        (tree / "contrib" / extension / "Makefile").write_text(CONTRIB)
    script(tree / "configure", CONFIGURE)
    script(tree / "pg_config", PG_CONFIG.format(cflags="-O2"))
    (tree / "broken").write_text("")
    return SourceBuild(17, tree, plan(), Path("/opt/pg"), tmp_path / "build.log")


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_a_build_lands_below_the_destination_and_nowhere_else(build: SourceBuild, tmp_path: Path) -> None:
    built = build.run(tmp_path / "destination", lambda _: None)
    assert built.staged == tmp_path / "destination/opt/pg"
    assert (built.server_version, built.cflags) == ("17.11", "-Wall -O2")
    assert not Path("/opt/pg").exists()


def test_what_is_installed_can_be_run_by_everybody(build: SourceBuild, tmp_path: Path) -> None:
    built = build.run(tmp_path / "destination", lambda _: None)
    for path in (built.staged, built.staged / "bin", built.staged / "bin/pg_config"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_every_program_of_a_build_runs_as_it_is_told(build: SourceBuild, tmp_path: Path) -> None:
    ran = []

    def run_as(argv: Sequence[str]) -> list[str]:
        ran.append(Path(argv[0]).name)
        return ["env", "WHO=account", *argv]

    script(build.tree / "configure", CONFIGURE + 'echo "as $WHO"\n')
    replace(build, run_as=run_as).run(tmp_path / "destination", lambda _: None)
    assert "as account\n" in build.log.read_text()
    assert set(ran) == {"configure", "make", "pg_config"}


def test_flags_of_the_callers_environment_do_not_reach_the_build(
    build: SourceBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFLAGS", "-O0")
    monkeypatch.setenv("COPT", "-O0")
    script(build.tree / "configure", CONFIGURE + 'echo "environment: $CFLAGS$COPT."\n')
    build.run(tmp_path / "destination", lambda _: None)
    assert "environment: .\n" in build.log.read_text()


def test_a_failed_build_shows_the_last_lines_and_where_the_log_is(build: SourceBuild, tmp_path: Path) -> None:
    (build.tree / "broken").write_text("echo 'one.c:1: error: expected identifier' >&2; exit 3\n")
    with pytest.raises(InstallationError) as caught:
        build.run(tmp_path / "destination", lambda _: None)
    assert caught.value.message == 'building PostgreSQL 17: "make" failed with status 2'
    assert caught.value.hint == f"the whole log is in {build.log}"
    lines = [line.strip() for line in (caught.value.detail or "").splitlines()]
    assert lines[0] == "the last lines of its output are:"
    assert "one.c:1: error: expected identifier" in lines


def test_a_failed_configure_is_told_apart(build: SourceBuild, tmp_path: Path) -> None:
    script(build.tree / "configure", "#!/bin/sh\necho 'configure: error: ICU library not found'; exit 1\n")
    with pytest.raises(InstallationError) as caught:
        build.run(tmp_path / "destination", lambda _: None)
    assert caught.value.message == 'building PostgreSQL 17: "./configure" failed with status 1'
    assert "configure: error: ICU library not found" in (caught.value.detail or "")


def test_a_build_that_lost_its_flags_is_not_accepted(build: SourceBuild, tmp_path: Path) -> None:
    script(build.tree / "pg_config", PG_CONFIG.format(cflags="-O1"))
    with pytest.raises(InstallationError) as caught:
        build.run(tmp_path / "destination", lambda _: None)
    assert caught.value.message == "PostgreSQL 17 was not built with -O2"
    assert caught.value.detail == "pg_config reports: -Wall -O1"


def test_a_step_that_never_ends_is_ended_with_all_its_processes(
    build: SourceBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "pid"

    def monotonic() -> float:  # its two hours are over as soon as it is there
        return time.monotonic() + (8000 if written.exists() and written.read_text().endswith("\n") else 0)

    monkeypatch.setattr("pgdyno.host.processes.running.time", SimpleNamespace(monotonic=monotonic))
    script(build.tree / "configure", f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/pid; wait\n")
    with pytest.raises(InstallationError) as caught:
        build.run(tmp_path / "destination", lambda _: None)
    assert caught.value.message == 'building PostgreSQL 17: "./configure" did not end within 7200 s'
    pid = int(written.read_text())
    # Nobody waits for what was started by the program that was killed: it ends a moment later.
    wait_until(lambda: not is_alive(pid))
