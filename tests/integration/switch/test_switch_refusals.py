"""What cannot run a server is listed, and the server is left as it is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fix_builds import MANIFEST
from tests.fix_debian import DebianCluster
from tests.fix_home import pgdyno
from tests.fix_pooler import running_pooler
from tests.integration.switch.programs import PROGRAMS, SHARED, Switch, described, pg_ctl_conf, running

from pgdyno.builds.product.manifest import FILE, AppliedPatch, Patched, dump_manifest

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.root]


def test_what_the_programs_lack_is_listed(debian15: DebianCluster, other: Path, switch: Switch) -> None:
    debian15.execute("CREATE EXTENSION pgcrypto")
    debian15.execute(
        "CREATE FUNCTION raw(text) RETURNS text AS '$libdir/unaccent', 'unaccent_dict' LANGUAGE C"
    )
    (other / "lib/pgcrypto.so").unlink()
    (other / "lib/unaccent.so").unlink()
    for script in (other.parents[3] / SHARED.relative_to("/") / "extension").glob("pgcrypto*"):
        script.unlink()
    before = described(pg_ctl_conf(debian15))
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 4
    assert f"{other}/bin cannot run this server as it is" in errors
    assert "extension pgcrypto 1.3 is missing; library $libdir/pgcrypto cannot be loaded: " in errors
    assert 'library $libdir/unaccent cannot be loaded: could not access file "$libdir/unaccent"' in errors
    assert described(pg_ctl_conf(debian15)) == before
    assert running(debian15) == PROGRAMS / "bin/postgres"


def test_a_patched_build_takes_a_flag_and_no_libraries_of_others(
    debian15: DebianCluster, other: Path, switch: Switch
) -> None:
    def patch(*own: str) -> None:
        assert MANIFEST.optimised is not None
        patched = Patched((AppliedPatch("send-buffer", "ab"),), own)
        optimised = replace(MANIFEST.optimised, patched=patched)
        (other / FILE).write_text(dump_manifest(replace(MANIFEST, optimised=optimised)))

    debian15.execute("CREATE EXTENSION pgcrypto")
    libraries = [path.stem for path in (other / "lib").glob("*.so")]
    patch("plpgsql", *libraries)
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 4
    assert f"{MANIFEST.name} is a patched PostgreSQL" in errors
    assert "HINT:  --patched accepts it" in errors
    patch("plpgsql", *(name for name in libraries if name != "pgcrypto"))
    code, _, errors = switch("switch", "--to", str(other), "--patched")
    assert code == 4
    assert "is a patched PostgreSQL, but the server uses libraries not built with it" in errors
    assert "DETAIL:  not built from the same source: pgcrypto, $libdir/pgcrypto\n" in errors
    assert running(debian15) == PROGRAMS / "bin/postgres"
    patch("plpgsql", *libraries)
    code, output, errors = switch("switch", "--to", str(other), "--patched")
    assert (code, running(debian15)) == (0, other / "bin/postgres"), errors
    assert f"{MANIFEST.name} is a patched PostgreSQL: send-buffer" in output


def test_another_major_version_is_refused(debian15: DebianCluster, switch: Switch) -> None:
    code, _, errors = switch("switch", "--to", "embedded")
    assert code == 4
    assert "cannot run this server" in errors
    assert "a different major version requires pg_upgrade" in errors


def test_a_preloaded_library_that_is_missing_is_listed(
    debian15: DebianCluster, other: Path, switch: Switch
) -> None:
    debian15.execute("ALTER SYSTEM SET shared_preload_libraries = 'auto_explain'")
    debian15.execute("CREATE TABLE documents (body xml)")
    debian15.control("restart")
    (other / "lib/auto_explain.so").unlink()
    (other.parents[3] / SHARED.relative_to("/") / "tsearch_data/english.stop").unlink()
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 4
    assert "library auto_explain cannot be loaded: could not access file" in errors
    assert "text search dictionaries use a file english, which the binaries' tsearch_data lacks" in errors
    assert "xml" not in errors
    assert running(debian15) == PROGRAMS / "bin/postgres"


def test_a_library_that_a_role_names_for_itself_is_neither_loaded_nor_a_reason_to_refuse(
    debian15: DebianCluster, other: Path, switch: Switch
) -> None:
    """Each role may set local_preload_libraries; slashes in it could lead to a file of its own."""
    debian15.execute("CREATE ROLE mallory LOGIN")
    for library in ("nothere", "../../../../../evil/evil"):
        debian15.execute(f"ALTER ROLE mallory SET local_preload_libraries = '{library}'")
        code, output, errors = switch("switch", "--to", str(other), "--dry-run", restart=False)
        assert (code, library in output + errors) == (0, False), errors


def test_behind_a_pooler_no_database_is_entered(debian15: DebianCluster, other: Path, home: Path) -> None:
    """A session of template1 that a pooler keeps would stand in the way of CREATE DATABASE."""
    server: Any = SimpleNamespace(
        socket_directory=debian15.directory, port=debian15.port, execute=debian15.execute
    )
    with running_pooler(server, "transaction") as pooler:
        where = ("--dsn", pooler.dsn_for("postgres", "postgres"), "--to", str(other))
        done = pgdyno("switch", *where, "--dry-run", PGDYNO_HOME=str(home))
        assert done.returncode == 4, done.stdout
        assert f"port={debian15.port}" in done.stderr
        sessions = "SELECT DISTINCT datname FROM pg_stat_activity WHERE backend_type = 'client backend'"
        assert debian15.execute(sessions) == [("postgres",)]


def test_a_cluster_that_does_not_run_from_what_was_chosen_is_left_alone(
    debian15: DebianCluster, other: Path, switch: Switch
) -> None:
    text = pg_ctl_conf(debian15).read_text().replace("''", f"'-p {other}/bin/postgres'")
    pg_ctl_conf(debian15).write_text(text)
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 4
    assert f"the server does not run the programs that {pg_ctl_conf(debian15)} selects" in errors
    assert f"it runs from {PROGRAMS}/bin, but the file selects {other}/bin/postgres" in errors
    assert pg_ctl_conf(debian15).read_text() == text


def test_a_server_that_names_the_configuration_of_another_one_is_refused(
    debian15: DebianCluster, other: Path, switch: Switch
) -> None:
    here = debian15.configuration_directory
    text = (here / "postgresql.conf").read_text()
    try:
        shutil.chown(here, "daemon")
        code, _, errors = switch("switch", "--to", str(other))
        assert code == 4
        assert f"{pg_ctl_conf(debian15)} does not belong to this server" in errors
    finally:
        shutil.chown(here, "postgres")
    another = text.replace(f"'{debian15.data_directory}'", f"'{debian15.directory}'")
    (here / "postgresql.conf").write_text(another)
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 4
    assert f"{here}/postgresql.conf is not this server's configuration" in errors
    assert running(debian15) == PROGRAMS / "bin/postgres"
    (here / "postgresql.conf").write_text(text)
