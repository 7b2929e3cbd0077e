"""Debian packages of a small build, made, read and installed with Debian's own tools.

The build is a program that asks a library of its own which version it is, as psql asks libpq.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fix_builds import LICENCE, MANIFEST

from pgdyno.base.errors import InstallationError
from pgdyno.builds.product.manifest import Manifest, read_manifest
from pgdyno.cli.build import command

_NEEDED = ("dpkg-deb", "dpkg-shlibdeps", "objdump", "gcc", "setpriv")
_MISSING = [name for name in _NEEDED if shutil.which(name) is None]
pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(
        bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)}: apt install dpkg-dev binutils gcc"
    ),
]
FILE = "pgdyno-postgresql-18-00000000000a_18.6+pgdyno20261122000000_{}.deb"
CROSS = "aarch64-linux-gnu-gcc"
PLACE = "usr/lib/pgdyno/built-00000000000a"
LIBRARY = '#include <math.h>\nconst char *version(double x) { return cbrt(x) > 0 ? "18.6" : ""; }\n'
PROGRAM = """#include <stdio.h>
const char *version(double);
int main(int n, char **words) { printf("%s (PostgreSQL) %s\\n", words[0], version(n)); return 0; }
"""


def run(*argv: str | Path) -> str:
    done = subprocess.run(
        [str(one) for one in argv], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def compile_into(prefix: Path, sources: Path, runpath: str, compiler: str = "gcc") -> None:
    """Put a program and its library there, whose place the program knows by ``runpath``."""
    for name, text in (("library.c", LIBRARY), ("program.c", PROGRAM)):
        (sources / name).write_text(text)
    library = prefix / "lib/libpq.so.5.18"
    (prefix / "lib/pkgconfig").mkdir(parents=True)
    (prefix / "lib/pkgconfig/libpq.pc").write_text(f"prefix={prefix}\n")
    named = ("-shared", "-fPIC", "-Wl,-soname,libpq.so.5")
    run(compiler, *named, "-o", library, sources / "library.c", "-lm")
    for name in ("libpq.so.5", "libpq.so"):
        (prefix / "lib" / name).symlink_to(library.name)
    for program in ("postgres", "psql"):
        (prefix / "bin" / program).unlink(missing_ok=True)
        linked = (f"-L{prefix}/lib", "-lpq", f"-Wl,-rpath,{runpath}")
        run(compiler, "-o", prefix / "bin" / program, sources / "program.c", *linked)
    # A program for tests, which does not know where libpq is.
    (prefix / "lib/postgresql/pgxs").mkdir(parents=True)
    tester = prefix / "lib/postgresql/pgxs/tester"
    run(compiler, "-o", tester, sources / "program.c", f"-L{prefix}/lib", "-lpq")
    with (prefix / "bin/psql").open("ab") as psql:
        psql.write(b"\0" + LICENCE.encode() + b"\0")
    os.link(prefix / "bin/postgres", prefix / "lib/postgresql/pgxs/linked")


@pytest.fixture
def prefix(install_build: Callable[[Manifest], Path], tmp_path: Path) -> Path:
    prefix = install_build(MANIFEST)
    compile_into(prefix, tmp_path, "$ORIGIN/../lib")
    return prefix


def packaged(directory: Path, name: str = "built") -> tuple[Path, dict[str, str]]:
    directory.mkdir()
    done = CliRunner().invoke(command, ["deb", name, "--output", str(directory), "--json"])
    assert done.exit_code == 0, done.output + str(done.exception)
    said = json.loads(done.stdout)
    return Path(said["path"]), said["fields"]


@pytest.mark.usefixtures("prefix")
def test_the_package_says_what_it_needs_and_touches_one_directory(tmp_path: Path) -> None:
    package, fields = packaged(tmp_path / "out")
    assert package.name == FILE.format(run("dpkg", "--print-architecture").strip())
    shown = run("dpkg-deb", "--field", package)
    assert "Package: pgdyno-postgresql-18-00000000000a\nVersion: 18.6+pgdyno20261122000000\n" in shown
    assert run("dpkg-deb", "--field", package, "Depends").strip() == fields["Depends"]
    assert fields["Depends"].startswith("libc6 (>= ")
    assert "libpq" not in fields["Depends"]  # its own
    listed = [line.split() for line in run("dpkg-deb", "--contents", package).splitlines()]
    assert {line[1] for line in listed} == {"root/root"}
    assert {line[0] for line in listed} == {"drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--", "lrwxrwxrwx"}
    modes = {line[5]: line[0] for line in listed}
    assert modes[f"./{PLACE}/bin/psql"] == "-rwxr-xr-x"
    assert modes[f"./{PLACE}/lib/libpq.so.5.18"] == "-rw-r--r--"
    documents = "./usr/share/doc/pgdyno-postgresql-18-00000000000a"
    assert sorted(line[5] for line in listed) == [
        "./", "./usr/", "./usr/lib/", "./usr/lib/pgdyno/", f"./{PLACE}/", f"./{PLACE}/bin/",
        f"./{PLACE}/bin/postgres", f"./{PLACE}/bin/psql", f"./{PLACE}/lib/", f"./{PLACE}/lib/libpq.so",
        f"./{PLACE}/lib/libpq.so.5", f"./{PLACE}/lib/libpq.so.5.18", f"./{PLACE}/lib/postgresql/",
        f"./{PLACE}/lib/postgresql/pgxs/", f"./{PLACE}/lib/postgresql/pgxs/linked",
        f"./{PLACE}/lib/postgresql/pgxs/tester",
        f"./{PLACE}/manifest.json",
        "./usr/share/", "./usr/share/doc/", f"{documents}/", f"{documents}/changelog.gz",
        f"{documents}/copyright",
    ]  # fmt: skip
    run("dpkg-deb", "--control", package, tmp_path / "control")
    assert [path.name for path in (tmp_path / "control").iterdir()] == ["control"]  # and no scripts


@pytest.mark.skipif(
    not Path("/usr/lib/aarch64-linux-gnu/libc.so.6").exists() or shutil.which(CROSS) is None,
    reason="needs another machine's compiler and libraries: apt install gcc-aarch64-linux-gnu libc6:arm64",
)
def test_a_package_for_another_machine_needs_that_machines_libraries(
    install_build: Callable[[Manifest], Path], tmp_path: Path
) -> None:
    foreign = replace(MANIFEST, machine="aarch64")
    compile_into(install_build(foreign), tmp_path, "$ORIGIN/../lib", CROSS)
    package, fields = packaged(tmp_path / "out", foreign.name)
    assert package.name == FILE.format("arm64")
    assert run("dpkg-deb", "--field", package, "Architecture") == "arm64\n"
    assert fields["Depends"].startswith("libc6 (>= ")


def test_what_is_unpacked_elsewhere_works_and_is_what_was_verified(prefix: Path, tmp_path: Path) -> None:
    package, _ = packaged(tmp_path / "out")
    run("dpkg-deb", "--extract", package, tmp_path / "host")
    moved = tmp_path / "host" / PLACE
    for name in ("bin/postgres", "bin/psql", "lib/libpq.so.5.18", "manifest.json"):
        assert (moved / name).read_bytes() == (prefix / name).read_bytes()
    shutil.rmtree(prefix)
    assert run(moved / "bin/postgres").endswith("/bin/postgres (PostgreSQL) 18.6\n")
    assert read_manifest(moved).value == MANIFEST
    documents = tmp_path / "host/usr/share/doc/pgdyno-postgresql-18-00000000000a"
    assert "Permission to use is hereby granted." in (documents / "copyright").read_text()
    assert (
        "(18.6+pgdyno20261122000000)" in gzip.decompress((documents / "changelog.gz").read_bytes()).decode()
    )


def test_the_same_build_gives_the_same_bytes(prefix: Path, tmp_path: Path) -> None:
    first, _ = packaged(tmp_path / "first")
    os.utime(prefix / "bin/psql", (1_000_000_000, 1_000_000_000))
    (prefix / "lib").chmod(0o700)
    second, _ = packaged(tmp_path / "second")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="dpkg gives files to root: needs root")
@pytest.mark.usefixtures("prefix")
def test_it_can_be_installed_and_removed_and_nothing_is_left(tmp_path: Path) -> None:
    package, _ = packaged(tmp_path / "out")
    host = tmp_path / "host"
    (host / "var/lib/dpkg/info").mkdir(parents=True)
    (host / "var/lib/dpkg/updates").mkdir()
    (host / "var/lib/dpkg/status").touch()
    before = {path for path in host.rglob("*") if "dpkg" not in path.parts}
    dpkg = ("dpkg", f"--root={host}", f"--log={tmp_path}/log", "--force-depends", "--force-bad-path")
    run(*dpkg, "--install", package)
    assert run(host / PLACE / "bin/psql").endswith("18.6\n")
    assert run(*dpkg, "--verify", "pgdyno-postgresql-18-00000000000a") == ""
    run(*dpkg, "--remove", "pgdyno-postgresql-18-00000000000a")
    assert {path for path in host.rglob("*") if "dpkg" not in path.parts} == before
    assert run(*dpkg, "--get-selections") == ""


def test_a_build_that_knows_its_place_is_not_packaged(
    install_build: Callable[[Manifest], Path], tmp_path: Path
) -> None:
    prefix = install_build(MANIFEST)
    compile_into(prefix, tmp_path, f"{prefix}/lib")
    done = CliRunner().invoke(command, ["deb", MANIFEST.name, "--output", str(tmp_path)])
    assert isinstance(done.exception, InstallationError)
    assert done.exception.message == "the build cannot be packaged, because it cannot be moved"
    assert done.exception.detail == f"postgres looks for its libraries in {prefix}/lib"
    assert list(tmp_path.glob("*.deb")) == []


def test_where_the_prefix_names_postgresql_its_directories_lie_otherwise(
    prefix: Path, tmp_path: Path
) -> None:
    (prefix / "lib/postgresql/pgxs").rename(prefix / "lib/pgxs")  # as PostgreSQL's makefiles have it then
    _, fields = packaged(tmp_path / "out")
    assert "libpq" not in fields["Depends"]


def test_a_library_that_no_package_has_is_named(prefix: Path, tmp_path: Path) -> None:
    run(
        "gcc",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libown.so.1",
        "-o",
        tmp_path / "libown.so",
        tmp_path / "library.c",
    )
    linked = (
        f"-L{tmp_path}",
        "-Wl,--no-as-needed",
        "-lown",
        f"-L{prefix}/lib",
        "-lpq",
        "-Wl,-rpath,$ORIGIN/../lib",
    )
    (prefix / "bin/psql").rename(prefix / "bin/own")
    run("gcc", "-o", prefix / "bin/psql", tmp_path / "program.c", *linked)
    with (prefix / "bin/psql").open("ab") as psql:
        psql.write(b"\0" + LICENCE.encode() + b"\0")
    done = CliRunner().invoke(command, ["deb", MANIFEST.name, "--output", str(tmp_path)])
    assert isinstance(done.exception, InstallationError)
    assert done.exception.message == "could not determine the packages that the build needs"
    assert "cannot find library libown.so.1 needed by" in (done.exception.detail or "")
    architecture = run("dpkg", "--print-architecture").strip()
    assert done.exception.hint == (
        f"install the libraries it was built with from packages for {architecture}"
    )
    assert list(tmp_path.glob("*.deb")) == []
