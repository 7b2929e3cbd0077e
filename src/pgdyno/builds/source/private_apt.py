"""A private apt: one suite, source packages only, in its own directory. The host's apt is only read.

It has its own sources, package lists, cache and state. It uses the host's archive addresses and keys, proxies
and credentials. The host's hooks (``APT::Update::Post-Invoke`` and the like) are not run, because some of
them empty the host's cache. Therefore the configuration is passed in ``APT_CONFIG`` and not with ``-o``:
options are read after the host's files (apt.conf(5), "The APT configuration").
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.base.errors import InstallationError
from pgdyno.builds.source.apt_sources import Repository, without_credentials
from pgdyno.host.processes.running import capture, clean_environment, is_installed

_UPDATE_LIMIT_S = 300.0  # arbitrary; an index has about 12 MB
_DOWNLOAD_LIMIT_S = 900.0  # arbitrary; a source package has about 25 MB
_QUERY_LIMIT_S = 60.0
_MAJORS = range(10, 40)  # to query; before 10, a major version had two numbers
_SANDBOX_USER = "_apt"
_MESSAGE_LINES = 4
_TRY_AGAIN_HINT = "check the network and the archive; finished downloads are kept for the next attempt"
_NEWER_KEYS_HINT = "apt-get install debian-archive-keyring installs the keys of newer releases"
_NO_SUCH_SUITE = "does not have a Release file"  # part of apt's error message
_TAKEN_OVER = re.compile(
    r"^Acquire::(?:https?|ftp|Check-Valid-Until|Check-Date|ForceIPv[46]|Proxy[A-Za-z-]*)\b.*$", re.MULTILINE
)
"""The host's settings for access to archives."""
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
"""Variables that apt reads; they may contain a password, and builds do not need them."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.+-]+")
_PACKAGE = re.compile(r"^Package: postgresql-(\d+)$", re.MULTILINE)
_URI_LINE = re.compile(r"^'\S+' (?P<name>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True)
class SourceFile:
    """A file of a source package, from the archive's signed index."""

    name: str
    size_bytes: int
    sha256: str


@dataclass
class PrivateApt:
    """The source packages of one suite. ``directory`` persists: complete files are not downloaded again."""

    repository: Repository
    directory: Path
    _is_updated: bool = field(default=False, init=False)
    _is_absent: bool = field(default=False, init=False)

    @property
    def suite(self) -> str:
        """The suite as requested; ``codename`` resolves names such as "stable"."""
        return self.repository.suite

    def majors(self) -> tuple[int, ...]:
        """Return the major versions of PostgreSQL with a source package in the suite, ascending.

        Empty if the archive has no such suite: not every archive has "oldstable".
        Raises: InstallationError with apt's messages if the suite's index is not available.
        """
        self._update()
        if self._is_absent:
            return ()
        names = [f"postgresql-{major}" for major in _MAJORS]
        done = self._run(["apt-cache", "showsrc", "--only-source", *names], _QUERY_LIMIT_S)
        # It reports an error for every unknown name, so its exit status has no meaning.
        return tuple(sorted({int(major) for major in _PACKAGE.findall(done.stdout)}))

    def codename(self) -> str:
        """Return the release's codename from its signed Release file: "trixie" for "stable"."""
        self._update()
        line = "$(CODENAME)"
        done = self._run(["apt-get", "indextargets", "--format", line, "Created-By: Sources"], _QUERY_LIMIT_S)
        return (done.stdout.splitlines() or [""])[0].strip() or self.suite

    def files(self, major: int) -> tuple[SourceFile, ...]:
        """Return the files of a source package, with the checksums of the signed index."""
        self._update()
        done = self._run([*self._source(major), "--print-uris"], _QUERY_LIMIT_S)
        found = [
            SourceFile(one["name"], int(one["size"]), one["sha256"])
            for one in _URI_LINE.finditer(done.stdout)
        ]
        if done.returncode != 0 or not found:
            raise _failure(f"could not find the files of postgresql-{major} in {self._place}", done)
        return tuple(found)

    def download(self, major: int, target: Path) -> None:
        """Download a source package into ``target``; complete files are kept, partial ones continued.

        apt checks every file against the signed index. Raises: InstallationError with apt's messages.
        """
        self._update()
        target.mkdir(parents=True, exist_ok=True)
        _give_to_sandbox(target)
        done = self._run([*self._source(major), "--download-only"], _DOWNLOAD_LIMIT_S, target)
        if done.returncode != 0:
            raise _failure(f"could not download postgresql-{major} from {self._place}", done)

    @property
    def _place(self) -> str:
        return f'suite "{self.suite}" of {self.repository.place}'

    def _update(self) -> None:
        if self._is_updated:
            return
        if not is_installed("apt-get"):
            raise InstallationError(
                "apt-get is not installed",
                detail="source packages come from the archives of Debian, Ubuntu and PostgreSQL",
                hint="name an installed PostgreSQL by its prefix instead: /opt/pg18@default",
            )
        self._write_configuration()
        # Without this error mode, an unreachable archive is only a warning.
        done = self._run(["apt-get", "-o", "APT::Update::Error-Mode=any", "update"], _UPDATE_LIMIT_S)
        self._is_absent = _NO_SUCH_SUITE in done.stderr
        if done.returncode != 0 and not self._is_absent:
            raise _failure(f"could not read the index of {self._place}", done)
        self._is_updated = True

    def _source(self, major: int) -> list[str]:
        return ["apt-get", "--quiet=2", "--only-source", "source", f"postgresql-{major}"]

    def _write_configuration(self) -> None:
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        _write_private(self.directory / "postgresql.sources", sources_stanza(self.repository))
        taken_over = _TAKEN_OVER.findall(capture(["apt-config", "dump"], limit_s=_QUERY_LIMIT_S).stdout)
        _write_private(self.directory / "apt.conf", configuration(self.directory, taken_over))

    def _run(
        self, argv: Sequence[str], limit_s: float, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        proxies = {name: os.environ[name] for name in _PROXIES if name in os.environ}
        environment = clean_environment(APT_CONFIG=str(self.directory / "apt.conf"), **proxies)
        return capture(argv, limit_s=limit_s, cwd=cwd, environment=environment)


def open_suites(repositories: Sequence[Repository], directory: Path) -> tuple[PrivateApt, ...]:
    """Return an apt for each suite, below ``directory``."""
    return tuple(
        PrivateApt(one, directory / _NOT_IN_NAMES.sub("_", f"{one.place}_{one.suite}"))
        for one in repositories
    )


def sources_stanza(repository: Repository) -> str:
    """Return the only entry of the private sources, in deb822 format, which can contain a whole key."""
    signed_by = f"Signed-By: {repository.signed_by}\n" if repository.signed_by else ""
    return (
        f"Types: deb-src\nURIs: {repository.uri}\nSuites: {repository.suite}\n"
        f"Components: {' '.join(repository.components)}\n{signed_by}"
    )


def configuration(directory: Path, taken_over: Sequence[str]) -> str:
    """Return the private apt.conf. Trusted keys and credentials are read from the host's files."""
    ours = {
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::sourcelist": f"{directory}/postgresql.sources",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": f"{directory}/state",
        "Dir::Cache": f"{directory}/cache",
        "Dir::Cache::pkgcache": "",  # rebuilt in memory: it is small
        "Dir::Cache::srcpkgcache": "",
        "Acquire::Languages": "none",
        "Acquire::GzipIndexes": "true",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "20",
        "Acquire::https::Timeout": "20",
        "Acquire::AllowReleaseInfoChange": "true",  # "stable" becomes another release, every two years
    }
    lines = [f'{name} "{value}";' for name, value in ours.items()]
    return "\n".join([*lines, *taken_over]) + "\n"


def _write_private(path: Path, text: str) -> None:
    """Write a file that may contain the password of a proxy or an archive."""
    path.touch(mode=0o600)
    path.write_text(text)


def _give_to_sandbox(directory: Path) -> None:
    """Give a directory to apt's unprivileged user, which downloads if it can write there."""
    if os.geteuid() == 0 and _SANDBOX_USER in {entry.pw_name for entry in pwd.getpwall()}:
        shutil.chown(directory, _SANDBOX_USER)


def _failure(message: str, done: subprocess.CompletedProcess[str]) -> InstallationError:
    """Return an error with apt's messages, errors before warnings."""
    lines = [line for line in done.stderr.splitlines() if line[:3] in {"E: ", "W: "}]
    is_key_missing = "NO_PUBKEY" in done.stderr
    messages = [line[3:] for line in sorted(dict.fromkeys(lines), key=lambda line: line[0])]
    return InstallationError(
        message,
        detail=without_credentials("\n         ".join(messages[:_MESSAGE_LINES])) or "apt gave no reason",
        hint=_NEWER_KEYS_HINT if is_key_missing else _TRY_AGAIN_HINT,
    )
