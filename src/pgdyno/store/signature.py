"""Signatures of bundles, made and checked by OpenSSH's ``ssh-keygen -Y``.

The keys are those that users already have.

What is signed is the list of checksums, in a namespace of its own, so that a signature for something else is
none for a bundle. Whose key it is, a file of allowed signers says: ssh-keygen(1), "ALLOWED SIGNERS".
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import StorageError
from pgdyno.base.facts import Unknown

NAMESPACE = "pgdyno-bundle"
_PROGRAM = "ssh-keygen"
_KEY = re.compile(r'Good "[^"]*" signature with (\S+) key (\S+)')
_CHECK_LIMIT_S = 30.0  # arbitrary: it takes milliseconds
_SIGN_LIMIT_S = 300.0  # arbitrary: somebody may have to type a passphrase, or touch a key


@dataclass(frozen=True)
class Signature:
    """A signature that matches. ``signer`` is who it is of; None: nobody said whose keys there are."""

    key: str
    signer: str | None = None


def sign(content: bytes, key: Path) -> bytes:
    """Return a signature by a private key, or by a public one whose private one an agent has.

    Raises: StorageError if it cannot be signed.
    """
    done = _run(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], content, _SIGN_LIMIT_S)
    if done.returncode != 0 or not done.stdout:
        raise StorageError(
            f'could not sign with the key "{key}"',
            detail=_words(done),
            hint=f"a key is made by: {_PROGRAM} -t ed25519 -f FILE",
        )
    return done.stdout


def check(content: bytes, signature: bytes, signers: Path | None) -> Signature | Unknown:
    """Return whose signature it is, or why it is none.

    Raises: StorageError if ``ssh-keygen`` is not there.
    """
    with tempfile.TemporaryDirectory(prefix="pgdyno-signature-") as directory:
        file = Path(directory) / "signature"
        file.write_bytes(signature)
        matched = _run(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)], content)
        key = _KEY.search(matched.stdout.decode(errors="replace"))
        if matched.returncode != 0 or key is None:
            return Unknown(f"the signature does not match: {_words(matched)}")
        name = f"{key[1]} {key[2]}"
        return Signature(name) if signers is None else _of_signer(content, file, signers, name)


def _of_signer(content: bytes, signature: Path, signers: Path, key: str) -> Signature | Unknown:
    found = _run(["-Y", "find-principals", "-s", str(signature), "-f", str(signers)], content)
    first_line = found.stdout.decode(errors="replace").partition("\n")[0]
    name = first_line.partition(",")[0]  # one key may have several names
    if found.returncode != 0 or not name:
        return Unknown(f'it was signed with {key}, which is of none of the signers in "{signers}"')
    allowed = ["-f", str(signers), "-I", name, "-n", NAMESPACE, "-s", str(signature)]
    verified = _run(["-Y", "verify", *allowed], content)
    if verified.returncode != 0:
        return Unknown(f"it was signed with {key} of {name}, which does not count: {_words(verified)}")
    return Signature(key, name)


def _run(
    arguments: Sequence[str], content: bytes, limit_s: float = _CHECK_LIMIT_S
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [_PROGRAM, *arguments],
            input=content,
            capture_output=True,
            check=False,
            timeout=limit_s,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise StorageError(
            f"signatures are made and checked by {_PROGRAM}, which is not installed",
            hint="install OpenSSH's client (apt install openssh-client)",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise StorageError(f"{_PROGRAM} did not end within {limit_s:.0f} s") from error


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the program's output in one line."""
    text = b"\n".join((done.stdout, done.stderr)).decode(errors="replace")
    return "; ".join(line.strip() for line in text.splitlines() if line.strip()) or "it said nothing"
