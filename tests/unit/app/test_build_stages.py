"""A whole build of a small program that behaves like PostgreSQL's tree: configured, counted, compiled, kept.

Its sources are real, and so are compiler and make; what is put under load is the program itself, which runs
what a server would in children of its own.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fix_progress import Remembered

from pgdyno.app import build_stages, wiring
from pgdyno.app.build import BuildRequest, build
from pgdyno.app.servers import list_servers
from pgdyno.app.verification import Subject
from pgdyno.model.errors import InstallationError, UsageError
from pgdyno.server.account import caller
from pgdyno.server.installation import Installation
from pgdyno.server.registry import find_installation
from pgdyno.toolchain import bolt
from pgdyno.toolchain.compilers._contract import Coverage
from pgdyno.toolchain.compilers.gcc import Gcc
from pgdyno.toolchain.manifest import Manifest, Passed, Verified, read_manifest
from pgdyno.toolchain.stages import Stage

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("make", "gcc", "setpriv", "bison", "flex")),
    reason="needs what PostgreSQL is built with",
)

CONFIGURE = """\
#!/bin/sh
# PACKAGE_NAME='PostgreSQL'
PACKAGE_NAME='PostgreSQL'
PACKAGE_VERSION='18.6'
for argument; do
  case "$argument" in
  --prefix=*) echo "prefix = ${argument#--prefix=}" ;;
  --*) ;;
  *=*) echo "${argument%%=*} = ${argument#*=}" ;;
  esac
done > flags.mk
echo "checking whether it can be built... yes"
"""
MAKEFILE = """\
include flags.mk
override CFLAGS += $(PROFILE)
all: postgres
postgres: main.o
\t$(CC) $(CFLAGS) main.o $(LDFLAGS) $(LDFLAGS_EX) -o postgres
main.o: main.c
\t$(CC) $(CFLAGS) $(CPPFLAGS) -c -o main.o main.c
install: all
\tmkdir -p $(DESTDIR)$(prefix)/bin
\tcp postgres $(DESTDIR)$(prefix)/bin/postgres
\tcp pg_config $(DESTDIR)$(prefix)/bin/pg_config
clean:
\trm -f main.o postgres
.PHONY: all install clean
"""
PG_CONFIG = "#!/bin/sh\ncase $1 in --version) echo PostgreSQL 18.6 ;; *) echo -O3 ;; esac\n"
MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--version")) { puts("postgres (PostgreSQL) 18.6"); return 0; }
    for (int child = 0; child < 3; child++)
        if (fork() == 0) { int sum = 0; for (int i = 0; i < 1000; i++) sum += i; exit(sum != 499500); }
    for (int child = 0; child < 3; child++) wait(0);
    return 0;
}
"""
STAGES = ["unpack", "configure", "compile for counting", "train", "compile", "verify", "install"]
VERIFIED = Verified((Passed("regress", 229),), "built-of-the-test", 60_000, 40, 300.0)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "postgresql"
    root.mkdir()
    (root / "configure").write_text(CONFIGURE)
    (root / "pg_config").write_text(PG_CONFIG)
    for name in ("configure", "pg_config"):
        (root / name).chmod(0o755)
    (root / "Makefile").write_text(MAKEFILE)
    (root / "main.c").write_text(MAIN)
    for name in ("pg_stat_statements", "pg_prewarm", "btree_gin", "pgstattuple", "amcheck", "pgcrypto"):
        (root / "contrib" / name).mkdir(parents=True)
        (root / "contrib" / name / "Makefile").write_text("all install:\n\t@true\n")
    return root


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of the test's own; neither training nor verification takes a server."""
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(wiring, "current_account", caller)  # the test's directory is closed to others
    monkeypatch.setattr(build_stages, "train", run_it)
    monkeypatch.setattr(build_stages, "verify", lambda *_: VERIFIED)
    expected = Gcc().coverage(Path())
    monkeypatch.setattr(Gcc, "coverage", lambda _, counts: Coverage((*_argv(counts),), expected.unit, 1))
    return tmp_path / "home"


def _argv(counts: Path) -> tuple[str, ...]:
    return ("find", str(counts), "-name", "*.gcda")


def run_it(installation: Installation, _: Installation, environment: Mapping[str, str], *__: object) -> None:
    program = installation.program("postgres")
    subprocess.run([program], env={**os.environ, **environment}, check=True)


@pytest.fixture
def plain(tree: Path) -> str:
    """Return the name of the plain build that others are held against."""
    return build(request(tree, "o2"), Remembered()).name


def request(tree: Path, profile: str = "pgo+lto") -> BuildRequest:
    return BuildRequest(str(tree), profile, "gcc")


@pytest.mark.usefixtures("plain")
def test_a_build_goes_through_its_stages_and_can_be_named(tree: Path, home: Path) -> None:
    said = Remembered()
    manifest = build(request(tree), said)
    assert [line.partition(": ")[2] for line in said.steps if line.startswith("built-")] == STAGES
    assert manifest.server_version == "18.6"
    for name in ("built", manifest.name):
        assert find_installation(name, wiring.workspace()).version == "18.6"
    assert {server.name for server in list_servers()} >= {"built", manifest.name}
    assert list((home / "builds").glob("built-*")) == []


def test_the_manifest_says_what_was_found_in_the_build(tree: Path) -> None:
    manifest = build(request(tree), Remembered())
    done = manifest.optimised
    assert done is not None
    assert (done.source, done.profile, done.target, done.objects) == (str(tree), "lto+pgo", "native", 1)
    for flag in ("-O3", "-march=native", "-fprofile-use", "-flto=auto", "-D_FORTIFY_SOURCE=2"):
        assert flag in done.common_flags
    assert "-fprofile-generate" not in done.common_flags
    assert "-Wl,-z,now" in done.linking_flags
    assert done.reached == "1 object files"
    assert done.text_bytes > 0
    assert [one.workload for one in done.training] == [
        "sysbench-read-only", "sysbench-read-write", "sysbench-write-only", "pgbench-tpcb",
    ]  # fmt: skip


def test_nothing_that_counts_is_left_in_what_is_installed(tree: Path) -> None:
    manifest = build(request(tree), Remembered())
    program = find_installation(manifest.name, wiring.workspace()).program("postgres")
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert "__gcov" not in symbols


def test_a_plain_build_of_the_same_source_is_made_first(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subjects: list[Subject] = []

    def remember(subject: Subject, *_: object) -> Verified:
        subjects.append(subject)
        return VERIFIED

    monkeypatch.setattr(build_stages, "verify", remember)
    said = Remembered()
    manifest = build(request(tree, "lto"), said)
    first, second = subjects
    assert first.reference is None
    assert second.reference is not None
    assert second.reference.name == first.tested.name
    assert f"to be held against {first.tested.name}, a plain build of the same source" in said.steps
    assert read_plain(first.tested.name) == ("o2", None)
    assert (second.tested.name, manifest.verified) == (manifest.name, VERIFIED)
    assert second.tested.bin_directory.parent.name == f".{manifest.name}.partial"


def read_plain(name: str) -> tuple[str, str | None] | None:
    manifest = read_manifest(wiring.workspace().servers() / name).value
    assert isinstance(manifest, Manifest)
    return None if manifest.optimised is None else (manifest.optimised.profile, manifest.optimised.target)


REARRANGED = [*STAGES[:5], "make it count branches", "train on branches", "rearrange", *STAGES[5:]]


@pytest.fixture
def bolted(monkeypatch: pytest.MonkeyPatch) -> None:
    """BOLT is there, and content with a program of two functions."""
    if bolt.find_bolt() is None:
        pytest.skip(f"needs BOLT: apt-get install {bolt.PACKAGE}")
    monkeypatch.setattr(bolt, "LEAST_FUNCTIONS", 1)


@pytest.mark.usefixtures("plain", "bolted")
@pytest.mark.parametrize("at", [None, *REARRANGED[5:9]])
def test_bolt_rearranges_what_is_compiled_and_what_is_tested_is_that(
    at: str | None, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if at is not None:
        with monkeypatch.context() as patched:
            patched.setattr(build_stages.Building, "_in_order", interrupted(at))
            with pytest.raises(KeyboardInterrupt):
                build(request(tree, "pgo+bolt"), Remembered())
    said = Remembered()
    manifest = build(request(tree, "pgo+bolt"), said)
    stages = [line.partition(": ")[2] for line in said.steps if line.startswith("built-")]
    assert stages == REARRANGED[0 if at is None else REARRANGED.index(at) :]
    assert manifest.optimised is not None
    assert manifest.optimised.rearranged is not None
    assert manifest.optimised.rearranged.functions >= 1
    program = find_installation(manifest.name, wiring.workspace()).program("postgres")
    sections = subprocess.run(["readelf", "-S", program], capture_output=True, text=True, check=True).stdout
    assert ".note.bolt_info" in sections
    assert b"__bolt_instr" not in Path(program).read_bytes()


@pytest.mark.usefixtures("unfetched")
def test_without_bolt_its_package_is_named_before_anything_is_fetched(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgdyno.app.build.find_bolt", lambda: None)
    with pytest.raises(InstallationError) as caught:
        build(request(tree, "pgo+bolt"), Remembered())
    assert caught.value.detail == "missing: llvm-bolt"
    assert caught.value.hint == "apt-get install bolt-19"


@pytest.mark.usefixtures("plain")
def test_the_strongest_without_bolt_says_that_it_is_without(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgdyno.app.build.find_bolt", lambda: None)
    said = Remembered()
    manifest = build(request(tree, "auto"), said)
    assert said.steps[0] == "without BOLT: bolt-19 is not installed"
    assert manifest.optimised is not None
    assert manifest.optimised.profile == "lto+pgo"


def test_another_source_is_held_against_a_plain_build_of_its_own(tree: Path, plain: str) -> None:
    (tree / "main.c").write_text(MAIN + "/* changed */\n")
    said = Remembered()
    build(request(tree, "lto"), said)
    assert "first a plain build of the same source, to hold the faster one against" in said.steps
    assert not any(plain in line for line in said.steps)


@pytest.mark.usefixtures("plain")
def test_what_fails_verification_is_not_installed_and_can_be_tried_again(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Verified:
        raise InstallationError("PostgreSQL 18.6 does not pass its own tests: regress")

    with monkeypatch.context() as patched:
        patched.setattr(build_stages, "verify", fail)
        with pytest.raises(InstallationError, match="does not pass its own tests"):
            build(request(tree), Remembered())
    assert (
        len([server for server in list_servers() if server.name.startswith("built-")]) == 1
    )  # the plain one
    said = Remembered()
    manifest = build(request(tree), said)
    assert [line.partition(": ")[2] for line in said.steps if line.startswith("built-")] == STAGES[-2:]
    assert find_installation(manifest.name, wiring.workspace()).version == "18.6"


def test_what_is_there_is_not_built_again(tree: Path) -> None:
    first = build(request(tree), Remembered())
    said = Remembered()
    assert build(request(tree), said) == first
    assert said.steps == [f"{first.name} is there already"]


def test_another_source_is_another_build(tree: Path) -> None:
    first = build(request(tree, "o2"), Remembered())
    (tree / "main.c").write_text(MAIN + "/* changed */\n")
    assert build(request(tree, "o2"), Remembered()).name != first.name


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("at", STAGES[:-1])
def test_a_build_that_was_interrupted_goes_on_where_it_stopped(
    at: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(build_stages.Building, "_in_order", interrupted(at))
        with pytest.raises(KeyboardInterrupt):
            build(request(tree), Remembered())
    said = Remembered()
    manifest = build(request(tree), said)
    stages = [line.partition(": ")[2] for line in said.steps if line.startswith("built-")]
    assert stages == STAGES[STAGES.index(at) :]
    assert manifest.optimised is not None
    assert manifest.optimised.objects == 1


@pytest.mark.usefixtures("plain")
def test_one_that_was_killed_at_its_very_end_is_there(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(build_stages.Building, "_in_order", interrupted("install"))
        with pytest.raises(KeyboardInterrupt):
            build(request(tree), Remembered())
    said = Remembered()
    manifest = build(request(tree), said)
    assert said.steps == [f"{manifest.name} is there already"]
    assert list((home / "builds").glob("built-*")) == []


def interrupted(at: str) -> Callable[[Any], Iterator[Any]]:
    """Return stages of which one is interrupted when its work is done, but not yet noted."""
    original = build_stages.Building._in_order

    def in_order(self: build_stages.Building) -> Iterator[Any]:
        for stage in original(self):
            yield Stage(stage.name, stage.expected_s, _broken(stage.run) if stage.name == at else stage.run)

    return in_order


def _broken(run: Callable[[Any], None]) -> Callable[[Any], None]:
    def broken(watch: Any) -> None:
        run(watch)
        raise KeyboardInterrupt

    return broken


def test_a_failed_stage_shows_the_compilers_words_and_keeps_the_log(tree: Path) -> None:
    (tree / "main.c").write_text("int main(void) { return nothing; }\n")
    with pytest.raises(InstallationError) as caught:
        build(request(tree, "o2"), Remembered())
    assert caught.value.message == 'building PostgreSQL 18.6: "make" failed with status 2'
    assert "error: ‘nothing’ undeclared" in str(caught.value).replace("'nothing'", "‘nothing’")
    assert (caught.value.hint or "").startswith("the whole log is in ")


def test_the_users_tree_is_left_as_it_was(tree: Path) -> None:
    before = sorted(path.relative_to(tree) for path in tree.rglob("*"))
    build(request(tree, "o2"), Remembered())
    assert sorted(path.relative_to(tree) for path in tree.rglob("*")) == before


def test_flags_that_make_would_interpret_are_refused(tree: Path) -> None:
    with pytest.raises(UsageError, match="--portable"):
        build(BuildRequest(str(tree), "o2", "gcc", "$(id)"), Remembered())


@pytest.fixture
def unfetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused is refused before anything is fetched, which fails here."""
    monkeypatch.setattr("pgdyno.app.build.fetch", None)


@pytest.mark.usefixtures("unfetched")
def test_a_cpu_that_the_compiler_does_not_know_is_refused_in_its_own_words(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build(replace(request(tree), target="commodore-64"), Remembered())
    assert caught.value.message == 'gcc does not take --portable "commodore-64"'
    assert "'commodore-64'" in (caught.value.detail or "")
    assert caught.value.hint == "leave it out, or name a CPU of this architecture that the compiler knows"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a CPU of x86-64")
@pytest.mark.usefixtures("unfetched")
def test_a_cpu_that_can_do_more_than_this_one_is_refused(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build(replace(request(tree), target="knl"), Remembered())  # a Xeon Phi: no other has AVX512ER
    assert caught.value.message == '--portable "knl" is more than this CPU can run'
    assert "it lacks AVX512ER, " in (caught.value.detail or "")
    assert caught.value.hint == "build on such a host, or name an older CPU"


@pytest.mark.usefixtures("unfetched")
def test_an_unknown_workload_is_named_before_anything_is_fetched(tree: Path) -> None:
    asked = replace(request(tree), training=("sysbench-read-only", "sysbench-read"))
    with pytest.raises(UsageError) as caught:
        build(asked, Remembered())
    assert caught.value.message == 'no workload "sysbench-read"'
    assert "sysbench-read-only" in (caught.value.hint or "")


@pytest.mark.usefixtures("unfetched")
def test_what_is_not_trained_cannot_be_told_on_what(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build(replace(request(tree, "o2+lto"), training=("pgbench-tpcb",)), Remembered())
    assert str(caught.value) == (
        "--train needs a profile with pgo or bolt\n"
        "DETAIL:  asked for: o2+lto\n"
        "HINT:  --profile o2+lto+pgo, or leave --train out"
    )


def test_a_build_is_trained_on_what_was_asked_for_and_each_once(tree: Path) -> None:
    asked = replace(request(tree), training=("pgbench-tpcb", "sysbench-read-only", "pgbench-tpcb"))
    done = build(asked, Remembered()).optimised
    assert done is not None
    assert [one.workload for one in done.training] == ["pgbench-tpcb", "sysbench-read-only"]


@pytest.fixture
def replaced(tmp_path: Path) -> Path:
    """An installation of PostgreSQL 18 that a build is to replace."""
    path = tmp_path / "replaced"
    (path / "bin").mkdir(parents=True)
    configured = "'--prefix=/p' '--without-readline' '--without-icu' '--with-llvm'"
    for name, said in (
        ("postgres", "postgres (PostgreSQL) 18.5"),
        ("pg_config", f"SHAREDIR = {path}\nCONFIGURE = {configured}"),
    ):
        (path / "bin" / name).write_text(f'#!/bin/sh\necho "{said}"\n')
        (path / "bin" / name).chmod(0o755)
    (path / "extension").mkdir()
    (path / "extension/vector.control").write_text("")
    return path


def test_a_build_like_an_installation_has_its_features_and_so_has_the_plain_one(
    tree: Path, replaced: Path
) -> None:
    manifest = build(replace(request(tree, "lto"), like=str(replaced)), Remembered())
    plain = build(replace(request(tree, "o2"), like=str(replaced)), Remembered())
    for one in (manifest, plain):
        options = [option for option in one.configure if option.startswith("--")]
        assert options == ["--enable-option-checking=fatal", "--without-readline", "--without-icu"]
        jit, extensions = one.notes
        assert jit.startswith("without JIT: ")
        assert extensions == "without extensions of what it is to replace: vector; --extensions adds them"
    assert build(request(tree, "o2"), Remembered()).name != plain.name


@pytest.mark.usefixtures("unfetched")
def test_an_installation_of_another_major_version_is_refused_before_anything_is_fetched(
    replaced: Path,
) -> None:
    with pytest.raises(UsageError, match='is PostgreSQL 18, --source "debian:17" is 17'):
        build(BuildRequest("debian:17", "o2", "gcc", like=str(replaced)), Remembered())


def test_a_tree_of_another_major_version_is_refused(tree: Path, replaced: Path) -> None:
    (tree / "configure").write_text(CONFIGURE.replace("18.6", "17.6"))
    with pytest.raises(UsageError, match=f'--source "{tree}" is 17'):
        build(replace(request(tree, "o2"), like=str(replaced)), Remembered())


CONTRIB = "SUBDIRS = cube earthdistance amcheck\n"
PG_CONFIG_OF_TREES = """\
#!/bin/sh
case $1 in --version) echo PostgreSQL 18.6 ;; --pkglibdir) echo "${0%/*}/../lib" ;; *) echo -O3 ;; esac
"""
EXTENSION = """\
all: vector.so
vector.so: vector.c
\tgcc -shared -fPIC $(PROFILE) -o vector.so vector.c
install: all
\tmkdir -p $$($(PG_CONFIG) --pkglibdir)
\tcp vector.so $$($(PG_CONFIG) --pkglibdir)/
clean:
\trm -f vector.so
"""


@pytest.fixture
def vector(tmp_path: Path, tree: Path) -> Path:
    """An extension's tree, and a source that has three modules besides its own."""
    (tree / "pg_config").write_text(PG_CONFIG_OF_TREES)
    (tree / "contrib/Makefile").write_text(CONTRIB)
    for name, needed in (("cube", ""), ("earthdistance", "contrib/cube"), ("hstore", "")):
        (tree / "contrib" / name).mkdir()
        (tree / "contrib" / name / "Makefile").write_text(
            f"EXTRA_INSTALL = {needed}\nREGRESS = {name}\nall install:\n\t@echo made {name}\n"
        )
    path = tmp_path / "vector"
    path.mkdir()
    (path / "Makefile").write_text(EXTENSION)
    (path / "vector.c").write_text("int vector(void) { return 1; }\n")
    return path


def with_extensions(tree: Path, *extensions: str) -> BuildRequest:
    return replace(request(tree, "o2"), extensions=extensions)


ALWAYS = ("pg_stat_statements", "pg_prewarm", "btree_gin", "pgstattuple", "amcheck", "pgcrypto")


@pytest.mark.parametrize(
    ("asked", "modules"),
    [
        ("earthdistance", ("cube", "earthdistance")),
        ("hstore", ("hstore",)),
        ("contrib", ("cube", "earthdistance")),
    ],
)
def test_modules_are_built_with_what_they_need_before_those_that_every_build_has(
    asked: str, modules: tuple[str, ...], tree: Path, vector: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested: list[tuple[str, ...]] = []

    def remember(subject: Subject, *_: object) -> Verified:
        tested.append(subject.extensions)
        return VERIFIED

    monkeypatch.setattr(build_stages, "verify", remember)
    manifest = build(with_extensions(tree, asked, str(vector)), Remembered())
    assert manifest.extensions[: len(modules)] == modules
    assert set(manifest.extensions) == {*modules, *ALWAYS, "vector"}
    assert tested == [(*modules, "pg_stat_statements")]  # no other one has tests in this tree


def test_a_tree_is_installed_with_what_it_was_built_against(tree: Path, vector: Path) -> None:
    manifest = build(with_extensions(tree, str(vector)), Remembered())
    assert (wiring.workspace().servers() / manifest.name / "lib/vector.so").is_file()
    assert manifest.notes[-1].startswith(f"vector is from {vector}, sha256 ")
    assert sorted(path.name for path in vector.iterdir()) == ["Makefile", "vector.c"]


def test_other_extensions_are_another_build_and_none_are_the_same(tree: Path, vector: Path) -> None:
    names = [
        build(with_extensions(tree, *one), Remembered()).name for one in ((), ("hstore",), (str(vector),))
    ]
    (vector / "vector.c").write_text("int vector(void) { return 2; }\n")
    names.append(build(with_extensions(tree, str(vector)), Remembered()).name)
    assert len(set(names)) == 4


def test_the_plain_build_does_without_extensions(tree: Path, vector: Path, plain: str) -> None:
    said = Remembered()
    build(replace(request(tree, "lto"), extensions=(str(vector),)), said)
    assert f"to be held against {plain}, a plain build of the same source" in said.steps


def test_an_extension_that_does_not_compile_says_so_in_the_compilers_words(tree: Path, vector: Path) -> None:
    (vector / "vector.c").write_text("int vector(void) { return nothing; }\n")
    with pytest.raises(InstallationError) as caught:
        build(with_extensions(tree, str(vector)), Remembered())
    assert caught.value.message == 'building the extension vector: "make" failed with status 2'
    assert "nothing" in (caught.value.detail or "")


def test_a_module_that_is_none_leaves_nothing_behind(tree: Path, vector: Path, home: Path) -> None:
    with pytest.raises(UsageError, match='has no contrib module "hstre"'):
        build(with_extensions(tree, "hstre", str(vector)), Remembered())
    assert list((home / "builds").glob("built-*")) == []
