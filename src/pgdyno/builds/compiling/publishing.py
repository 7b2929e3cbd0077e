"""Copy a finished installation to its place: owned by the caller, readable by everybody.

What an unprivileged account has made is read as that account and written as the caller: neither its links
nor its permissions mean anything to root. Until it is published it lies beside its place, under a name by
which no server is found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from pgdyno.base.errors import InstallationError
from pgdyno.builds.making import RunAs
from pgdyno.host.child_command import family_command
from pgdyno.host.processes.running import clean_environment

_LIMIT_S = 300.0  # arbitrary; it takes a second
# What the reader writes is not trusted: another process of the account could send devices as well.
_NO_DEVICES = ("setpriv", "--bounding-set=-mknod", "--inh-caps=-mknod")
_AS_OURS = ("--no-same-owner", "--no-same-permissions")  # nothing runs with another's privileges


def hidden(prefix: Path) -> Path:
    """Return where an installation lies until it is published."""
    return prefix.with_name(f".{prefix.name}.partial")


def put_beside(prefix: Path, staged: Path, run_as: RunAs) -> Path:
    """Copy ``staged`` to a hidden place, replacing an earlier attempt, and return that place.

    Raises: InstallationError with tar's words, and for links that lead out of it: root would follow them.
    """
    partial = hidden(prefix)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o755)
    _copy(staged, partial, run_as)
    _require_links_within(partial)
    return partial


def publish(prefix: Path, manifest: tuple[str, str]) -> None:
    """Rename the hidden copy to ``prefix``, with its manifest (file name, text).

    Raises: InstallationError if what was built has a directory of that name.
    """
    name, text = manifest
    place = hidden(prefix) / name
    if place.is_dir() and not place.is_symlink():
        raise InstallationError(
            f'what was built has a directory "{name}", where pgdyno writes what it is',
            detail=str(place),
            hint="build from other sources",
        )
    place.unlink(missing_ok=True)  # what was built may have a link there
    place.write_text(text)
    hidden(prefix).rename(prefix)


def _require_links_within(directory: Path) -> None:
    for link in directory.rglob("*"):
        if link.is_symlink() and not Path(os.path.realpath(link)).is_relative_to(directory.resolve()):
            raise InstallationError(
                "what was built has a link that leads out of it",
                detail=f"{link.relative_to(directory)} leads to {link.readlink()}",
                hint="make it a relative link to what is installed",
            )


def _copy(staged: Path, target: Path, run_as: RunAs) -> None:
    reading = run_as(["tar", "--create", f"--directory={staged}", "--file=-", "."])
    writing = [
        *(_NO_DEVICES if os.geteuid() == 0 else ()),
        "tar",
        "--extract",
        *_AS_OURS,
        f"--directory={target}",
        "--file=-",
    ]
    reader = subprocess.Popen(
        family_command(os.getpid(), reading),  # without it the writer has nothing to write
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        start_new_session=True,
    )
    assert reader.stdout is not None  # noqa: S101 — asked for
    with reader:
        done = subprocess.run(
            ["timeout", f"{_LIMIT_S:g}", *writing],
            stdin=reader.stdout,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=clean_environment(),
            umask=0o022,
            start_new_session=True,
        )
        reader.stdout.close()  # else the reader would wait for a writer that has ended early
        said = (reader.stderr.read() if reader.stderr else b"").decode(errors="replace")
    if reader.returncode != 0 or done.returncode != 0:
        raise InstallationError(
            f"could not copy the finished installation to {target}",
            detail=(said + done.stderr).strip() or None,
        )
