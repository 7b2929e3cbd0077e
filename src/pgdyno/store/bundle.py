"""Bundles: an experiment as one portable zip file with checksums.

    NAME/experiment.json   the experiment         NAME/experiment.schema.json   its JSON Schema
    NAME/report.html       human-readable         NAME/blocks.csv, slices.csv   raw series
    NAME/steps.csv         of steps: recorded     NAME/intervals.csv            of steps: rates over time
                           figures
    NAME/histograms.csv    latencies by slice     NAME/SHA256SUMS               for sha256sum --check
    NAME/README.txt        explanation            NAME/SHA256SUMS.sig           if signed, see ``signature``

Equal contents give equal bytes: members are sorted and have no times or owners. Checksums detect damage and
careless edits; only a signature shows that the checksums themselves were not replaced.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pgdyno.base.errors import StorageError
from pgdyno.base.facts import Unknown
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.store.documents import (
    DOCUMENT_BYTES,
    LINE_BYTES,
    ROWS,
    SEAL_BYTES,
    first_problems,
    load_experiment,
    oversized,
    parse,
)
from pgdyno.store.files import open_plain
from pgdyno.store.signature import Signature, check

CHECKSUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
EXPERIMENT = "experiment.json"

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip file can hold
_FILE_MODE = 0o100644 << 16
_CHECKSUM_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_CHUNK_BYTES = 1 << 20
_BEGINNING = b"PK\x03\x04"  # of a zip file's first member: APPNOTE.TXT §4.3.7
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1  # bit of a member's flags: APPNOTE.TXT §4.4.4
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""Errors of a member that is damaged, encrypted, or compressed by an unknown method."""


@dataclass(frozen=True)
class BundleFile:
    """One file of a bundle, with its actual size and checksum."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Verification:
    """Result of verifying a bundle. ``experiment`` is None when it cannot be read.

    ``signature`` None: it has none, or an invalid one. ``advice`` is a remedy for the problems, if one is
    known.
    """

    path: str
    files: tuple[BundleFile, ...]
    experiment: Experiment | None
    problems: tuple[str, ...]
    signature: Signature | None = None
    advice: str | None = None


def pack_bundle(name: str, files: Mapping[str, bytes], sign: Callable[[bytes], bytes] | None = None) -> bytes:
    """Return the zip file of a bundle; ``name`` is its top directory.

    ``sign`` returns the signature of its checksums.
    """
    lines = (f"{hashlib.sha256(files[key]).hexdigest()}  {key}\n" for key in sorted(files))
    sums = "".join(lines).encode()
    seal = [(CHECKSUMS, sums)] if sign is None else [(CHECKSUMS, sums), (SIGNATURE, sign(sums))]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for key, content in [*sorted(files.items()), *seal]:
            member = zipfile.ZipInfo(f"{name}/{key}", date_time=_EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # Unix, on any platform
            member.external_attr = _FILE_MODE
            archive.writestr(member, content)
    return buffer.getvalue()


def check_bundle(path: Path, signers: Path | None = None) -> Verification:
    """Check every checksum, the signature if there is one, and the experiment's schema.

    Nothing is unpacked to disk. With a file of allowed ``signers``, a signature by one of them is required.
    Raises: StorageError if the file cannot be opened, or is not a zip file; if it is signed, and ssh-keygen
    is not installed.
    """
    try:
        with open_plain(path) as packed, zipfile.ZipFile(packed) as archive:
            return _check(path, archive, signers)
    except OSError as error:
        raise StorageError(f'could not open "{path}"', detail=error.strerror or str(error)) from error
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        if _begins_as_bundle(path):
            raise StorageError(
                f'"{path}" is an incomplete bundle',
                detail=f"it begins like a bundle, but its end is missing or damaged: {error}",
                hint="get it again: it was truncated, or its end was changed",
            ) from error
        raise StorageError(
            f'"{path}" is not a bundle',
            detail=f"it is not a readable zip file: {error}",
            hint="bundles are written by: pgdyno bundle export EXPERIMENT",
        ) from error


def _begins_as_bundle(path: Path) -> bool:
    with open_plain(path) as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def verified_lines(path: Path, found: Verification, key: str) -> Iterator[str] | None:
    """Return the lines of a file in a checked bundle; None if the bundle has no file of this name.

    Raises: StorageError, while the lines are read, if a line or the file is too long, or if the file differs
    from the checked one.
    """
    checked = next((file for file in found.files if file.name == key), None)
    return None if checked is None else _lines(path, checked)


def _lines(path: Path, checked: BundleFile) -> Iterator[str]:
    digest, rows = hashlib.sha256(), 0
    try:
        with open_plain(path) as packed, zipfile.ZipFile(packed) as archive:
            names = {_key(one): one for one in archive.infolist()}
            with archive.open(names[checked.name]) as file:
                while line := file.readline(LINE_BYTES + 1):
                    rows += 1
                    if len(line) > LINE_BYTES or rows > ROWS:
                        raise StorageError(
                            f"line {rows} of {checked.name} exceeds a limit",
                            detail=f"a file may have {ROWS} lines, each of up to {LINE_BYTES} bytes",
                        )
                    digest.update(line)
                    yield line.decode("utf-8", errors="replace")
    except (OSError, KeyError, *_UNREADABLE) as error:
        raise StorageError(f'"{path}" was changed while it was read', detail=str(error)) from error
    if digest.hexdigest() != checked.sha256:
        raise StorageError(f'"{path}" was changed while it was read', detail=f"{checked.name} differs")


def _check(path: Path, archive: zipfile.ZipFile, signers: Path | None) -> Verification:
    everything = archive.infolist()
    if too_large := tuple(oversized(everything)):
        return Verification(str(path), (), None, too_large)
    problems = list(first_problems(_misplaced(everything)))
    members = [member for member in everything if not member.filename.endswith("/")]
    files: dict[str, BundleFile] = {}
    for member in members:
        try:
            files[_key(member)] = BundleFile(_key(member), member.file_size, _digest(archive, member))
        except _UNREADABLE as error:
            problems.append(f"{_key(member)} cannot be unpacked: {error}")
    problems += first_problems(_checksum_problems(archive, members, files))
    experiment, wrong, advice = _read_experiment(archive, members, files)
    signature = _signature(archive, members, files, signers)
    if isinstance(signature, Unknown):
        wrong, signature = [*wrong, signature.reason], None
    return Verification(str(path), tuple(files.values()), experiment, (*problems, *wrong), signature, advice)


def _signature(
    archive: zipfile.ZipFile,
    members: list[zipfile.ZipInfo],
    files: Mapping[str, BundleFile],
    signers: Path | None,
) -> Signature | Unknown | None:
    """Return the signature; None if it is neither present nor required, Unknown if something is wrong."""
    sums, seal = (_small_text(archive, members, files, key, SEAL_BYTES) for key in (CHECKSUMS, SIGNATURE))
    if seal is None or sums is None:
        if SIGNATURE in files:
            return Unknown(f"{SIGNATURE} cannot be checked")
        return None if signers is None else Unknown("it is not signed")
    return check(sums.encode(), seal.encode(), signers)


def _key(member: zipfile.ZipInfo) -> str:
    """Return a member's name below the bundle's directory."""
    return member.filename.partition("/")[2] or member.filename


def _misplaced(members: list[zipfile.ZipInfo]) -> Iterator[str]:
    """Yield members that would be unpacked outside of the bundle, or over one another."""
    seen: set[str] = set()
    directories = {member.filename.partition("/")[0] for member in members}
    if len(directories) > 1:
        yield f"its files are in {len(directories)} directories: {', '.join(sorted(directories))}"
    for member in members:
        name = member.filename
        if name.startswith("/") or "\\" in name or ".." in name.split("/"):
            yield f'"{name}" points outside of the bundle'
        if name in seen:
            yield f'"{name}" occurs twice'
        if name.endswith("/") and member.file_size:
            yield f'"{name}" is a directory, but has {member.file_size} bytes'
        seen.add(name)


def _digest(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> str:
    if member.flag_bits & _ENCRYPTED:
        raise zipfile.BadZipFile("it is encrypted")
    if member.compress_type not in _METHODS:
        raise zipfile.BadZipFile(f"it is compressed by method {member.compress_type}, not by deflate")
    digest = hashlib.sha256()
    with archive.open(member) as file:
        for chunk in _chunks(file):
            digest.update(chunk)
    return digest.hexdigest()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def _checksum_problems(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], files: Mapping[str, BundleFile]
) -> Iterator[str]:
    """Yield every difference between the list of checksums and the actual files."""
    text = _small_text(archive, members, files, CHECKSUMS, SEAL_BYTES)
    if text is None:
        yield (
            f"{CHECKSUMS} cannot be read, or has more than {SEAL_BYTES} bytes"
            if CHECKSUMS in files
            else f"{CHECKSUMS} is missing"
        )
        return
    expected: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _CHECKSUM_LINE.fullmatch(line):
            expected[match[2]] = match[1]
        else:
            yield f"line {number} of {CHECKSUMS} is not a checksum and a name"
    for name, digest in expected.items():
        if name not in files:
            yield f"{name} is missing"
        elif files[name].sha256 != digest:
            yield f"{name} was changed: its SHA-256 is {files[name].sha256}, {CHECKSUMS} has {digest}"
    for name in files:
        if name not in expected and name not in {CHECKSUMS, SIGNATURE}:
            yield f"{name} is not listed in {CHECKSUMS}"


def _read_experiment(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], files: Mapping[str, BundleFile]
) -> tuple[Experiment | None, list[str], str | None]:
    """Return the experiment, or the problems that prevent reading it, and advice."""
    text = _small_text(archive, members, files, EXPERIMENT, DOCUMENT_BYTES)
    if text is None:
        return None, [f"{EXPERIMENT} is missing or too large"], None
    try:
        document = parse(text)
        del text  # frees memory: it is as large as the document, now parsed
    except json.JSONDecodeError as error:
        return (
            None,
            [f"{EXPERIMENT} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"],
            None,
        )
    except (ValueError, RecursionError) as error:
        return None, [f"{EXPERIMENT} cannot be read: {error}"], None
    if not isinstance(document, dict):
        return None, [f"{EXPERIMENT} is not a JSON object"], None
    try:
        return load_experiment(document), [], None
    except StorageError as error:
        lines = [error.message, *(error.detail or "").splitlines()]
        return None, [f"{EXPERIMENT}: {line}" for line in lines], error.hint


def _small_text(
    archive: zipfile.ZipFile,
    members: list[zipfile.ZipInfo],
    files: Mapping[str, BundleFile],
    key: str,
    limit_bytes: int,
) -> str | None:
    """Return a text file of the bundle; None if it is missing, damaged, or too large."""
    member = next((member for member in members if _key(member) == key), None)
    if member is None or key not in files or member.file_size > limit_bytes:
        return None
    try:
        return archive.read(member).decode("utf-8", errors="replace")
    except _UNREADABLE:  # ``files`` then has another member of the same name
        return None
