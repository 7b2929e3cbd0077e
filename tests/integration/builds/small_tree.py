"""A small program that behaves like PostgreSQL's tree: configured, counted, compiled, kept.

Its sources are real, and so are compiler and make; what is put under load is the program itself, which runs
what a server would in children of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fix_progress import Remembered

from pgdyno.builds import stages as build_stages
from pgdyno.builds.build import PARTS as USUAL_PARTS
from pgdyno.builds.build import build as build_from
from pgdyno.builds.build_request import BuildRequest
from pgdyno.builds.make import Stage
from pgdyno.builds.product.manifest import Manifest, Passed, Verified
from pgdyno.postgres.process.installation import Installation

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
\t$(CC) $(CFLAGS) main.o $(LDFLAGS) $(LDFLAGS_EX) $(LDFLAGS_EX_BE) -o postgres
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
POSTMASTER = """#include <stdio.h>
__asm__(".text\\nfar: .space 5 << 20, 0x90\\n");
int PostmasterMain(int argc, char **argv) { return argc + (argv != NULL); }
static void __attribute__((destructor)) show(void) {
    char line[512];
    FILE *areas = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof(line), areas)) fputs(line, stdout);
}
"""
"""Makes a server of the program, with five megabytes of code, which says in the end where they lie."""
STAGES = ["unpack", "configure", "compile for counting", "train", "compile", "verify", "install"]
VERIFIED = Verified((Passed("regress", 229),), "built-of-the-test", 60_000, 40, 300.0)


def put_tree(root: Path) -> Path:
    """Write the sources into a new directory."""
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


def request(tree: Path, recipe: str = "pgo+lto") -> BuildRequest:
    """Return what is asked of a build of a tree."""
    return BuildRequest(str(tree), recipe, "gcc")


def stages_of(said: Remembered) -> list[str]:
    """Return the stages that builds have announced."""
    return [line.partition(": ")[2] for line in said.steps if line.startswith("built-")]


def run_it(installation: Installation, _: Installation, environment: Mapping[str, str], *__: object) -> None:
    """Put a counting program under load: run it."""
    program = installation.program("postgres")
    subprocess.run([program], env={**os.environ, **environment}, check=True)


PARTS = replace(USUAL_PARTS, check_settings=lambda *_: None, train=run_it, verify=lambda *_: VERIFIED)
"""Neither settings, nor training, nor verification take a server."""


def build(asked: BuildRequest, progress: Remembered, **parts: Any) -> Manifest:
    """Build the small program, with these parts instead of the usual ones."""
    return build_from(asked, progress, replace(PARTS, **parts))


def unfetched(*_: object) -> Any:
    """Stand for a fetch: a request is refused before anything is fetched."""
    raise AssertionError("the source was fetched")


@contextmanager
def interrupted(at: str) -> Iterator[None]:
    """Interrupt every build at a stage, when its work is done, but not yet noted."""
    original = build_stages.Building._in_order

    def in_order(self: build_stages.Building) -> Iterator[Stage]:
        for stage in original(self):
            yield Stage(stage.name, stage.expected_s, _broken(stage.run) if stage.name == at else stage.run)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build_stages.Building, "_in_order", in_order)
        yield


def _broken(run: Callable[[Any], None]) -> Callable[[Any], None]:
    def broken(watch: Any) -> None:
        run(watch)
        raise KeyboardInterrupt

    return broken
