"""Copy a finished installation to its final place: owned by the caller, readable by everyone.

Files made by an unprivileged account are read as that account and written as the caller: root neither follows
their links nor keeps their permissions. Until it is published, the copy is next to its final place, under a
name that the registry ignores.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from pgdyno.base.errors import InstallationError
from pgdyno.builds.make import RunAs
from pgdyno.host.child_command import family_command
from pgdyno.host.processes.running import clean_environment

_LIMIT_S = 300.0  # arbitrary; it takes a second
# The reader's output is not trusted: another process of the account could add device files to it.
_NO_DEVICES = ("setpriv", "--bounding-set=-mknod", "--inh-caps=-mknod")
_AS_OURS = ("--no-same-owner", "--no-same-permissions")  # no file gets another user's privileges


def hidden(prefix: Path) -> Path:
    """Return the directory of an installation that is not published yet."""
    return prefix.with_name(f".{prefix.name}.partial")


def stage_copy(prefix: Path, staged: Path, run_as: RunAs) -> Path:
    """Copy ``staged`` to the hidden directory, replacing an earlier attempt, and return that directory.

    Raises: InstallationError with tar's message, and for links that lead outside: root would follow them.
    """
    partial = hidden(prefix)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o755)
    _copy(staged, partial, run_as)
    _require_links_within(partial)
    return partial


def publish(prefix: Path, manifest: tuple[str, str]) -> None:
    """Rename the hidden copy to ``prefix``, with its manifest (file name, text).

    Raises: InstallationError if the build contains a directory with the manifest's name.
    """
    name, text = manifest
    place = hidden(prefix) / name
    if place.is_dir() and not place.is_symlink():
        raise InstallationError(
            f'the build contains a directory "{name}", but pgdyno writes its manifest there',
            detail=str(place),
            hint="build from other sources",
        )
    place.unlink(missing_ok=True)  # the build may contain a link with this name
    place.write_text(text)
    hidden(prefix).rename(prefix)


def _require_links_within(directory: Path) -> None:
    for link in directory.rglob("*"):
        if link.is_symlink() and not Path(os.path.realpath(link)).is_relative_to(directory.resolve()):
            raise InstallationError(
                "the build contains a link that leads outside",
                detail=f"{link.relative_to(directory)} leads to {link.readlink()}",
                hint="make it a relative link within the installation",
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
        family_command(os.getpid(), reading),  # the writer needs no wrapper: without a reader its input ends
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        start_new_session=True,
    )
    assert reader.stdout is not None  # noqa: S101 — a pipe was requested
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
        reader.stdout.close()  # else the reader blocks if the writer exited early
        errors = (reader.stderr.read() if reader.stderr else b"").decode(errors="replace")
    if reader.returncode != 0 or done.returncode != 0:
        raise InstallationError(
            f"could not copy the finished installation to {target}",
            detail=(errors + done.stderr).strip() or None,
        )
