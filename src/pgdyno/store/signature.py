"""Signatures of bundles, made and checked by OpenSSH's ``ssh-keygen -Y`` with existing keys of users.

The list of checksums is signed, in a separate namespace: a signature made for another purpose is not valid
for a bundle. A file of allowed signers maps keys to people: ssh-keygen(1), "ALLOWED SIGNERS".
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
_SIGN_LIMIT_S = 300.0  # arbitrary: the user may have to type a passphrase, or touch a key


@dataclass(frozen=True)
class Signature:
    """A valid signature. ``signer`` is the key's owner; None: no file of allowed signers was given."""

    key: str
    signer: str | None = None


def sign(content: bytes, key: Path) -> bytes:
    """Return a signature by a private key, or by a public key if ssh-agent has the private one.

    Raises: StorageError if it cannot be signed.
    """
    done = _run(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], content, _SIGN_LIMIT_S)
    if done.returncode != 0 or not done.stdout:
        raise StorageError(
            f'could not sign with the key "{key}"',
            detail=_output_line(done),
            hint=f"a key is made by: {_PROGRAM} -t ed25519 -f FILE",
        )
    return done.stdout


def check(content: bytes, signature: bytes, signers: Path | None) -> Signature | Unknown:
    """Return the verified signature, or the reason why it is not valid.

    Raises: StorageError if ``ssh-keygen`` is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="pgdyno-signature-") as directory:
        file = Path(directory) / "signature"
        file.write_bytes(signature)
        matched = _run(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)], content)
        key = _KEY.search(matched.stdout.decode(errors="replace"))
        if matched.returncode != 0 or key is None:
            return Unknown(f"the signature does not match: {_output_line(matched)}")
        name = f"{key[1]} {key[2]}"
        return Signature(name) if signers is None else _of_signer(content, file, signers, name)


def _of_signer(content: bytes, signature: Path, signers: Path, key: str) -> Signature | Unknown:
    found = _run(["-Y", "find-principals", "-s", str(signature), "-f", str(signers)], content)
    first_line = found.stdout.decode(errors="replace").partition("\n")[0]
    name = first_line.partition(",")[0]  # one key may have several names
    if found.returncode != 0 or not name:
        return Unknown(f'it was signed with {key}, which belongs to none of the signers in "{signers}"')
    allowed = ["-f", str(signers), "-I", name, "-n", NAMESPACE, "-s", str(signature)]
    verified = _run(["-Y", "verify", *allowed], content)
    if verified.returncode != 0:
        return Unknown(f"it was signed with {key} of {name}, which is not valid: {_output_line(verified)}")
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


def _output_line(done: subprocess.CompletedProcess[bytes]) -> str:
    text = b"\n".join((done.stdout, done.stderr)).decode(errors="replace")
    return "; ".join(line.strip() for line in text.splitlines() if line.strip()) or "no output"
