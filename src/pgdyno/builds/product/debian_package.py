"""Texts of a build's Debian package: name, control file, changelog, licences.

Nothing here depends on when or where a package is made: the same build, made into a package by the same
maintainer, says the same. Its time is that at which the build was finished.
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
"""Of those parts of PostgreSQL that have licences of their own: from their source files, 18.6."""
_COPYRIGHT = re.compile(
    rb"PostgreSQL Data[^\0]{1,200}?\n\n"
    rb"(?P<holders>(?:Portions Copyright[^\n\0]*\n+)+)(?P<licence>Permission[^\0]+)"
)
"""What psql's \\copyright prints, as it stands in the program."""


def package_name(manifest: Manifest) -> str:
    """Return ``pgdyno-postgresql-18-0123456789ab``.

    It begins with pgdyno, because packages called ``postgresql-18-…`` are extensions of the distribution's.
    """
    major = re.match(r"\d+", manifest.server_version)
    return f"pgdyno-postgresql-{major[0] if major else 0}-{manifest.name.removeprefix('built-')}"


def package_version(manifest: Manifest) -> str:
    """Return ``18.6+pgdyno20261122062410``: a later build of the same name is newer."""
    return f"{manifest.server_version}+pgdyno{made_at(manifest):%Y%m%d%H%M%S}"


def made_at(manifest: Manifest) -> datetime:
    """Return when a build was finished, in UTC."""
    return datetime.fromisoformat(manifest.installed_at).astimezone(UTC)


def place_of(manifest: Manifest) -> str:
    """Return where the package has the build, below the root directory."""
    return f"{PACKAGED}/{manifest.name}"


def maintainer(environment: Mapping[str, str], full_name: str, user: str, host: str) -> str:
    """Return who packages, as Debian's own tools are told it: by DEBFULLNAME and DEBEMAIL, else user@host."""
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
    """Return a description: a line that says it in short, and paragraphs with blank lines between them."""
    optimised = manifest.optimised
    assert optimised is not None  # noqa: S101 — only what pgdyno build has made is packaged
    synopsis = f"PostgreSQL {manifest.server_version} as pgdyno has built it ({optimised.recipe})"
    filled = [textwrap.fill(one, _WIDTH, break_on_hyphens=False) for one in _paragraphs(manifest, optimised)]
    return synopsis + "\n" + "\n\n".join(filled)


def changelog(manifest: Manifest, by: str) -> str:
    """Return a changelog with one entry, for how the build came about."""
    return (
        f"{package_name(manifest)} ({package_version(manifest)}) UNRELEASED; urgency=medium\n\n"
        f"  * PostgreSQL {manifest.server_version}, made by pgdyno build; manifest.json in\n"
        f"    /{place_of(manifest)} says how.\n\n"
        f" -- {by}  {format_datetime(made_at(manifest))}\n"
    )


def copyright_text(psql: bytes) -> str:
    """Return the licences of a build; PostgreSQL's own comes from its program ``psql``.

    Raises: InstallationError if it says none.
    """
    found = _COPYRIGHT.search(psql)
    if found is None:
        raise InstallationError(
            "the build does not say under which licence it is",
            detail='PostgreSQL\'s "psql" prints it for \\copyright; this one has no such text in it',
            hint="PostgreSQL's licence has to be in all copies: it is not packaged without",
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
        f"The server with its client programs{extensions}, made by pgdyno build from {manifest.origin}. "
        f"All of it is in /{place_of(manifest)}, beside any other PostgreSQL: no server is made or "
        "started, and nothing of the distribution's own PostgreSQL is replaced."
    )
    yield _cpu(optimised)
    trained = f", trained on {manifest.training}" if manifest.training else ""
    yield f"Recipe: {optimised.recipe}{trained}. Compiler: {manifest.compiler}."
    if UNHARDENED in optimised.recipe.split("+"):
        yield (
            "It is NOT hardened: its program lies at fixed addresses, its stack is not protected, calls of "
            "libc are not checked. Use it only for servers that untrusted people cannot reach."
        )
    if optimised.patched is not None:
        yield (
            f"It is a PATCHED PostgreSQL: pgdyno has changed its sources by {optimised.patched.names}. "
            "Extensions that were compiled for the release may not fit it."
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
            f"It runs ONLY ON CPUs LIKE the one that it was built on: where any of its instructions{named} "
            'is missing, its programs end with "Illegal instruction" sooner or later.'
        )
    return (
        f"It runs only on CPUs with all instructions of {target}{named}: where one is missing, its programs "
        'end with "Illegal instruction" sooner or later.'
    )


def _passed(verified: Verified) -> str:
    suites = ", ".join(f"{suite.suite} {suite.tests}" for suite in verified.suites)
    same = f"; {verified.answers} answers and all data the same as a plain build's"
    how = "Emulated, on another machine than it is for, it" if verified.is_emulated else "It"
    return (
        f"{how} has passed PostgreSQL's own tests ({suites}) and {verified.crashes} crashes under load that "
        f"lost no commit{same if verified.reference else ''}."
    )


def _folded(value: str) -> str:
    """Return a value as in a control file: further lines begin with a blank, and empty ones have a dot."""
    first, *others = value.splitlines()
    return "\n".join([first, *(f" {line or '.'}" for line in others)])


def _one_line(text: str) -> str:
    """Return a text without line breaks, and without the brackets that end an address."""
    return " ".join(re.sub(r"[<>]", "", text).split())
