"""A bundle's files, and bundles that others have changed, as they are checked."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.golden.synthetic import experiment

from pgdyno.store.bundle import Verification, check_bundle
from pgdyno.store.documents import dump_experiment

DOCUMENT = json.dumps(dump_experiment(experiment())).encode()
FILES = {"experiment.json": DOCUMENT, "report.html": b"<p>report</p>", "README.txt": b"read me\n"}


def checked(path: Path, contents: bytes) -> Verification:
    """Check a file of this content."""
    path.write_bytes(contents)
    return check_bundle(path)


def repacked(path: Path, changes: Mapping[str, bytes | None], top: str = "pgdyno-x") -> Verification:
    """Check a bundle whose members were replaced, added or (None) removed, its list of checksums kept."""
    with zipfile.ZipFile(path) as archive:
        members: dict[str, bytes | None] = {name: archive.read(name) for name in archive.namelist()}
    members.update({f"{top}/{name}": content for name, content in changes.items()})
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return check_bundle(path)
