"""What a server that pgdyno built was made of: a JSON file in its prefix.

It is written before the prefix gets its name, so that a prefix with a manifest is complete.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.model.document import to_document
from pgdyno.model.facts import Fact, Unknown

SCHEMA_VERSION = 1
FILE = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """One built server."""

    name: str  # source-17
    server_version: str  # 17.11
    package: str  # postgresql-17
    package_version: str  # the distribution's: 17.11-0+deb13u1
    suite: str  # the release's own name: trixie
    tarball: str
    tarball_sha256: str
    unpacked: str  # with which program, and what of the package
    compiler: str  # the first line of what it says of itself
    configure: tuple[str, ...]  # as configure was called, without the prefix
    cflags: str  # as the built pg_config prints them
    extensions: tuple[str, ...]
    notes: tuple[str, ...]  # what this build does without, and why
    build_s: float  # configure to installation, wall time
    installed_at: str  # ISO 8601, UTC

    @property
    def flags(self) -> str:
        """The compiler flags that were asked for."""
        asked = [one.removeprefix("CFLAGS=") for one in self.configure if one.startswith("CFLAGS=")]
        return " ".join(asked)

    @property
    def summary(self) -> str:
        """One line for a list of servers."""
        options = [one for one in self.configure if one.startswith("--with-")]
        return f"{self.suite} {self.package_version}, {self.compiler}, {self.flags}, {' '.join(options)}"


def dump_manifest(manifest: Manifest) -> str:
    """Return a manifest as JSON text."""
    body = to_document(manifest)
    assert isinstance(body, dict)  # noqa: S101 — a dataclass becomes an object
    return json.dumps({"schema_version": SCHEMA_VERSION, **body}, indent=2, ensure_ascii=False) + "\n"


def parse_manifest(text: str) -> Manifest | Unknown:
    """Return the manifest of a JSON text; members that are not known are ignored."""
    try:
        document = json.loads(text)
    except ValueError as error:
        return Unknown(f"not a JSON document: {error}")
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA_VERSION:
        return Unknown(f"not a manifest of schema version {SCHEMA_VERSION}")
    return _from_document(document)


def read_manifest(prefix: Path) -> Fact[Manifest]:
    """Return the manifest in a prefix; unknown for a prefix that pgdyno did not build."""
    path = prefix / FILE
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return Fact(Unknown("not built by pgdyno"), str(path))
    except OSError as error:
        return Fact(Unknown(str(error.strerror).lower()), str(path))
    return Fact(parse_manifest(text), str(path))


def _is_of_type(value: object, declared: str) -> bool:
    if declared == "float":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if declared == "str":
        return isinstance(value, str)
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _from_document(document: Mapping[str, Any]) -> Manifest | Unknown:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Manifest):
        value = document.get(field.name)
        if not _is_of_type(value, str(field.type)):
            return Unknown(f'its member "{field.name}" is missing or wrong')
        if isinstance(value, list):
            value = tuple(value)
        values[field.name] = value
    return Manifest(**values)
