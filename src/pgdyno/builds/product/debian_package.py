"""Texts of a build's Debian package: name, control file, changelog, licences.

The texts do not depend on when or where a package is made: the same build and maintainer give the same texts.
Timestamps are the time when the build was finished.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from importlib.resources import files

from pgdyno.base.errors import InstallationError
from pgdyno.builds.product.manifest import Manifest, Optimised, Verified
from pgdyno.model.plans.recipe import NATIVE, UNHARDENED
from pgdyno.postgres.process.registry import PACKAGED

_WIDTH = 78
_PARTS = files("pgdyno.builds") / "parts_copyright.txt"
"""Copyright of parts of PostgreSQL under other licences, from the source files of 18.6."""
_COPYRIGHT = re.compile(
    rb"PostgreSQL Data[^\0]{1,200}?\n\n"
    rb"(?P<holders>(?:Portions Copyright[^\n\0]*\n+)+)(?P<licence>Permission[^\0]+)"
)
"""The text that psql prints for \\copyright, as embedded in the program."""


def package_name(manifest: Manifest) -> str:
    """Return ``pgdyno-postgresql-18-0123456789ab``.

    The prefix is pgdyno, because packages named ``postgresql-18-…`` are extensions of the distribution's
    server.
    """
    major = re.match(r"\d+", manifest.server_version)
    return f"pgdyno-postgresql-{major[0] if major else 0}-{manifest.name.removeprefix('built-')}"


def package_version(manifest: Manifest) -> str:
    """Return ``18.6+pgdyno20261122062410``: a later build with the same name has a higher version."""
    return f"{manifest.server_version}+pgdyno{made_at(manifest):%Y%m%d%H%M%S}"


def made_at(manifest: Manifest) -> datetime:
    """Return when a build was finished, in UTC."""
    return datetime.fromisoformat(manifest.installed_at).astimezone(UTC)


def place_of(manifest: Manifest) -> str:
    """Return the package's directory of the build, relative to the root directory."""
    return f"{PACKAGED}/{manifest.name}"


def maintainer(environment: Mapping[str, str], full_name: str, user: str, host: str) -> str:
    """Return the maintainer as Debian's tools do: from DEBFULLNAME and DEBEMAIL, else user@host."""
    name = environment.get("DEBFULLNAME") or full_name or user
    address = environment.get("DEBEMAIL") or environment.get("EMAIL") or f"{user}@{host}"
    return f"{_one_line(name)} <{_one_line(address)}>"


def control_fields(
    manifest: Manifest, *, by: str, architecture: str, depends: str, installed_kib: int
) -> dict[str, str]:
    """Return the fields of the control file, in order. ``by``: the maintainer."""
    return {
        "Package": package_name(manifest),
        "Version": package_version(manifest),
        "Architecture": architecture,
        "Maintainer": by,
        "Installed-Size": str(installed_kib),
        "Depends": depends,
        "Section": "database",
        "Priority": "optional",
        "Homepage": "https://www.postgresql.org/",
        "Description": describe(manifest),
    }


def control_text(fields: Mapping[str, str]) -> str:
    """Return a control file, without empty fields."""
    return "".join(f"{name}: {_folded(value)}\n" for name, value in fields.items() if value)


def describe(manifest: Manifest) -> str:
    """Return a description: a synopsis line, then paragraphs separated by blank lines."""
    optimised = manifest.optimised
    assert optimised is not None  # noqa: S101 — only builds by pgdyno build are packaged
    synopsis = f"PostgreSQL {manifest.server_version} built by pgdyno ({optimised.recipe})"
    filled = [textwrap.fill(one, _WIDTH, break_on_hyphens=False) for one in _paragraphs(manifest, optimised)]
    return synopsis + "\n" + "\n\n".join(filled)


def changelog(manifest: Manifest, by: str) -> str:
    """Return a changelog with one entry about the build."""
    return (
        f"{package_name(manifest)} ({package_version(manifest)}) UNRELEASED; urgency=medium\n\n"
        f"  * PostgreSQL {manifest.server_version}, built by pgdyno build. See manifest.json in\n"
        f"    /{place_of(manifest)}.\n\n"
        f" -- {by}  {format_datetime(made_at(manifest))}\n"
    )


def copyright_text(psql: bytes) -> str:
    """Return the licences of a build; PostgreSQL's own is read from the program ``psql``.

    Raises: InstallationError if the program contains no licence.
    """
    found = _COPYRIGHT.search(psql)
    if found is None:
        raise InstallationError(
            "the licence of the build was not found",
            detail='PostgreSQL\'s "psql" prints it for \\copyright; this psql does not contain that text',
            hint="PostgreSQL's licence must be in all copies, so the build is not packaged without it",
        )
    holders = "\n           ".join(found["holders"].decode(errors="replace").split("\n\n")).strip()
    licence = "\n ".join(
        line or "." for line in found["licence"].decode(errors="replace").strip().splitlines()
    )
    return (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: PostgreSQL\n"
        "Source: https://www.postgresql.org/ftp/source/\n\n"
        f"Files: *\nCopyright: {holders}\nLicense: PostgreSQL\n\n"
        f"{_PARTS.read_text()}\n"
        f"License: PostgreSQL\n {licence}\n"
    )


def _paragraphs(manifest: Manifest, optimised: Optimised) -> Iterator[str]:
    extensions = f" and the extensions {', '.join(manifest.extensions)}" if manifest.extensions else ""
    yield (
        f"The server with its client programs{extensions}, built by pgdyno build from {manifest.origin}. "
        f"All files are in /{place_of(manifest)}, separate from any other PostgreSQL: no cluster is created "
        "or started, and no files of the distribution's PostgreSQL are replaced."
    )
    yield _cpu(optimised)
    trained = f", trained on {manifest.training}" if manifest.training else ""
    yield f"Recipe: {optimised.recipe}{trained}. Compiler: {manifest.compiler}."
    if UNHARDENED in optimised.recipe.split("+"):
        yield (
            "It is NOT hardened: the program is at fixed addresses, without stack protector and without "
            "fortified libc calls. Use it only for servers that untrusted users cannot reach."
        )
    if optimised.patched is not None:
        yield (
            f"It is a PATCHED PostgreSQL: pgdyno applied these patches to its source: "
            f"{optimised.patched.names}. Extensions compiled for the release may be incompatible with it."
        )
    if manifest.verified is not None:
        yield _passed(manifest.verified)


def _cpu(optimised: Optimised) -> str:
    target, sets = optimised.target, ", ".join(optimised.instructions)
    if target is None:
        return "It runs on every CPU of its architecture."
    named = f" ({sets})" if sets else ""
    if target == NATIVE:
        return (
            f"It runs ONLY ON CPUs LIKE the one it was built on: without any one of its instructions{named}, "
            'its programs sooner or later crash with "Illegal instruction".'
        )
    return (
        f"It runs only on CPUs with all instructions of {target}{named}: without one of them, its programs "
        'sooner or later crash with "Illegal instruction".'
    )


def _passed(verified: Verified) -> str:
    suites = ", ".join(f"{suite.suite} {suite.tests}" for suite in verified.suites)
    same = f"; {verified.answers} results and all data are the same as a plain build's"
    how = "Under an emulator, on a different machine, it" if verified.is_emulated else "It"
    return (
        f"{how} passed PostgreSQL's own tests ({suites}) and {verified.crashes} crashes under load without "
        f"losing a commit{same if verified.reference else ''}."
    )


def _folded(value: str) -> str:
    """Return a value for a control file: continuation lines begin with a space, empty ones have a dot."""
    first, *others = value.splitlines()
    return "\n".join([first, *(f" {line or '.'}" for line in others)])


def _one_line(text: str) -> str:
    """Return a text without line breaks and angle brackets."""
    return " ".join(re.sub(r"[<>]", "", text).split())
