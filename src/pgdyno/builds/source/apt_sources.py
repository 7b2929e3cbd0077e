"""The host's apt sources, in both formats, and the suites among them that may have PostgreSQL's source.

They are only read; ``private_apt.py`` writes a private configuration. Source: sources.list(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pgdyno.base.errors import InstallationError

_ONE_LINE = re.compile(r"^deb(?:-src)?\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<rest>\S.*)$")
_FIELD = re.compile(r"^([A-Za-z][A-Za-z0-9-]*)\s*:[ \t]*(.*)$")
_OFF = frozenset({"no", "false", "without", "off", "disable", "0"})  # as apt reads a boolean

_LATER_SUITES = {"debian": ("stable", "testing", "unstable", "oldstable"), "ubuntu": ("devel",)}
"""An archive's suite names for releases other than the host's, in the order of querying."""
_PGDG = "-pgdg"  # suffix of apt.postgresql.org's suites


@dataclass(frozen=True)
class Repository:
    """One suite of one archive. ``signed_by``: the text of that field; empty: the host's trusted keys."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str = ""

    @property
    def place(self) -> str:
        """The archive's address without a password."""
        return without_credentials(self.uri)


def host_repositories(etc: Path = Path("/etc/apt")) -> tuple[Repository, ...]:
    """Return the host's binary and source repositories in apt's order, without duplicates."""
    main = etc / "sources.list"
    files = [*([main] if main.is_file() else []), *sorted((etc / "sources.list.d").glob("*"))]
    parsers = {".list": parse_list, ".sources": parse_deb822}
    found = [
        repository
        for file in files
        if (parse := parsers.get(file.suffix)) is not None
        for repository in parse(_read(file))
    ]
    return tuple(dict.fromkeys(found))


def source_suites(repositories: Iterable[Repository]) -> tuple[Repository, ...]:
    """Return the suites to search for PostgreSQL's source, the host's own first.

    These are the main releases of a Debian or Ubuntu archive and suites of apt.postgresql.org, followed by
    the archive's other releases, even if the host is not configured for them.
    Raises: InstallationError if the host's apt uses no such archive.
    """
    listed = tuple(repositories)
    own = [(repository, family) for repository in listed if (family := _family(repository))]
    if not own:
        places = sorted({repository.place for repository in listed})
        raise InstallationError(
            "the host's apt sources name no archive of Debian, Ubuntu or PostgreSQL",
            detail=f"archives in /etc/apt: {', '.join(places) or 'none'}",
            hint="name an installed PostgreSQL by its prefix instead: /opt/pg18@default",
        )
    first = {family: repository for repository, family in reversed(own)}
    later = [
        Repository(repository.uri, suite, ("main",), repository.signed_by)
        for family, repository in first.items()
        for suite in _LATER_SUITES.get(family, ())
    ]
    suites: dict[tuple[str, str], Repository] = {}
    for one in (*(repository for repository, _ in own), *later):
        suites.setdefault((one.uri, one.suite), Repository(one.uri, one.suite, ("main",), one.signed_by))
    return tuple(suites.values())


def parse_list(text: str) -> Iterator[Repository]:
    """Parse the one-line format, skipping malformed lines: apt reports those itself."""
    for line in text.splitlines():
        found = _ONE_LINE.match(line.partition("#")[0].strip())
        if found is None:
            continue
        options = {
            name.lower(): value
            for name, _, value in (option.partition("=") for option in (found["options"] or "").split())
        }
        suite, *components = found["rest"].split()
        signed_by = options.get("signed-by", "").replace(",", " ")
        yield Repository(found["uri"], suite, tuple(components), signed_by)


def parse_deb822(text: str) -> Iterator[Repository]:
    """Parse the enabled stanzas of a ``.sources`` file."""
    for stanza in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        fields = _fields(stanza)
        if fields.get("enabled", "yes").strip().lower() in _OFF:
            continue
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                components = tuple(fields.get("components", "").split())
                yield Repository(uri, suite, components, fields.get("signed-by", "").rstrip())


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError as error:
        raise InstallationError(f"could not read {file}", detail=str(error.strerror).lower()) from error


def _fields(stanza: str) -> dict[str, str]:
    """Return a stanza's fields by lower-case name; continuation lines keep their indentation."""
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.split("\n"):
        if line.startswith("#"):
            continue
        if line[:1] in {" ", "\t"} and name:
            fields[name] += f"\n{line}"
        elif found := _FIELD.match(line):
            name = found[1].lower()
            fields[name] = found[2]
    return fields


def _family(repository: Repository) -> str | None:
    """Return the archive's family, from its address and suite; None for all others."""
    if "main" not in repository.components:
        return None
    if repository.suite.endswith(_PGDG):
        return "pgdg"
    if "-" in repository.suite or "/" in repository.suite:
        return None  # updates, security, backports: small, and merged into the release later
    # The stem, because of mirror+file:/etc/apt/mirrors/debian.list in Debian's cloud images.
    try:
        path = urlsplit(repository.uri).path
    except ValueError:
        return None  # not a URL: apt cannot read it either
    segments = {PurePosixPath(part).stem for part in path.split("/")}
    return next((family for family in _LATER_SUITES if family in segments), None)


def without_credentials(uri: str) -> str:
    """Return an address without user and password."""
    return re.sub(r"(?<=//)[^/\s]*@", "", uri)
