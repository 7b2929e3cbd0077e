"""Standalone program that answers questions about its host.

It is sent through ssh with two other modules (RUNNER_MODULES in runner.py). Nothing is installed, and it
needs only Python 3.7 with its standard library. Each line of input is a question as JSON, each line of output
the answer. It exits at the end of its input, or when its time is over, because the controller may have
disappeared. Its files are in a private directory, which it always removes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import pwd
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from pgdyno.remote._network_program import accept, listen, own_address, probe
from pgdyno.remote._own_programs import as_user, owner_of

PROGRAM_LIMIT_S, PROGRAM_BYTES = 5.0, 100_000  # for a program that prints its version
WAKE_UP_LIMIT_S = 15.0
LEFT_LIMIT_S, LEFT_POLL_S = 10.0, 0.05  # for disconnected loads to end
MOST_PROGRAMS = 16  # directories with a PostgreSQL
USUAL_PLACES = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "usr/local/pgsql/bin")
VERSION_PREFIX = "pgdyno, version "
TEMPORARY = "/tmp"  # noqa: S108 — only a private directory is created in it
STA_UNSYNC = 0x40  # linux/timex.h
TIMEX = struct.Struct("@I l l l l i")  # the first members of struct timex, up to status


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one question; a system error is returned as an answer too."""
    try:
        return ANSWERS[question["do"]](question)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return {"error": str(error)}


def clock(_: dict[str, Any]) -> dict[str, Any]:
    """Return the clock's time, in ns since 1970."""
    return {"ns": time.time_ns()}


def facts(question: dict[str, Any]) -> dict[str, Any]:
    """Return facts about the host, its kernel, and this user's privileges."""
    return {
        "host_name": platform.node(),
        "user": user_name(),
        "sudo": why_no_sudo(),
        "address": own_address(),
        "boot_id": first_line("/proc/sys/kernel/random/boot_id"),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu_model": cpu_model(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "is_synchronised": is_synchronised(),
        "postgresql": postgresql(question["postgresql"]) if question["is_server"] else [],
        "pgdyno": pgdyno(question["pgdyno"]) if question["is_server"] else None,
    }


def user_name() -> str:
    """Return the name of this user, or the user ID if it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def why_no_sudo() -> str:
    """Return the reason why sudo does not work without a password; empty if it works, or for root."""
    if os.geteuid() == 0:
        return ""
    try:
        status, output = output_of(["sudo", "-n", "true"])
    except FileNotFoundError:
        return "sudo is not installed"
    except (OSError, subprocess.SubprocessError) as error:
        return "sudo " + trouble_with(error)
    lines = output.splitlines()
    return "" if status == 0 else (lines or ["sudo fails"])[-1][:200]


def output_of(command: list[str], user: int | None = None) -> tuple[int, str]:
    """Return a program's exit status and its short output; it may run as another user.

    subprocess.run would wait forever for a program that this user may not kill, such as sudo, which runs as
    root. Raises: subprocess.TimeoutExpired; OSError for more than ``PROGRAM_BYTES`` of output.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        **({} if user is None else as_user(user)),
    )  # fmt: skip
    assert process.stdout is not None  # noqa: S101 — it was opened as a pipe
    output, ends = b"", time.monotonic() + PROGRAM_LIMIT_S
    try:
        while len(output) <= PROGRAM_BYTES:
            if not select.select([process.stdout], [], [], max(0.0, ends - time.monotonic()))[0]:
                raise subprocess.TimeoutExpired(command, PROGRAM_LIMIT_S)
            part = os.read(process.stdout.fileno(), PROGRAM_BYTES)
            if not part:
                break
            output += part
        else:
            raise OSError(0, f"it prints more than {PROGRAM_BYTES} bytes")
        process.wait(max(0.0, ends - time.monotonic()))
    finally:
        if process.poll() is None:
            give_up(process)
        process.stdout.close()
    return process.returncode, output.decode(errors="replace").strip()


def give_up(process: subprocess.Popen[bytes]) -> None:
    """Kill a program, if permitted, and wait briefly for its exit."""
    with contextlib.suppress(PermissionError, subprocess.TimeoutExpired):
        process.kill()
        process.wait(1)
    if process.stdout:
        process.stdout.close()


def trouble_with(error: Exception) -> str:
    """Return the reason for a program's failure, as a predicate to follow its name."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"does not respond within {PROGRAM_LIMIT_S:g}\u00a0s"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"cannot be run: {reason or error}"[:200]


def first_line(path: str) -> str:
    """Return a file's first line; empty if the file cannot be read."""
    try:
        with Path(path).open(encoding="ascii", errors="replace") as file:
            return file.readline(200).strip()
    except OSError:
        return ""


def cpu_model() -> str:
    """Return the first CPU's model name; empty if the kernel shows none, as on Arm."""
    with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "cpu model"):
                return value.strip()[:200]
    return ""


def is_synchronised() -> bool | None:
    """Return whether a service synchronises the kernel's clock; None if adjtimex(2) is not usable."""
    if struct.calcsize("l") != 8:
        return None  # struct timex has a different layout there
    timex = ctypes.create_string_buffer(512)
    if ctypes.CDLL(None).adjtimex(timex) == -1:
        return None
    return not TIMEX.unpack_from(timex)[5] & STA_UNSYNC


def postgresql(named: str | None) -> list[dict[str, str]]:
    """Return the directories with a PostgreSQL, each with its version or its problem."""
    found = []
    for directory in [Path(named)] if named else usual_directories():
        program = directory / "postgres"
        if os.access(program, os.X_OK):
            version, trouble = version_of(program)
            found.append({"directory": str(directory), "version": version, "trouble": trouble})
    return found


def pgdyno(named: str | None) -> dict[str, str] | None:
    """Return pgdyno's program, with its version or its problem; None if it is not on a login's PATH."""
    program = named or shutil.which("pgdyno")
    if program is None:
        return None
    line, trouble = version_of(Path(program))
    if line and not line.startswith(VERSION_PREFIX):
        line, trouble = "", f"prints: {line}"[:300]
    return {"program": program, "version": line[len(VERSION_PREFIX) :], "trouble": trouble}


def version_of(program: Path) -> tuple[str, str]:
    """Return (version line, "") of a program; or ("", the reason) if it prints none."""
    real = Path(os.path.realpath(str(program)))
    try:
        status, output = output_of([str(real), "--version"], owner_of(real))
    except (OSError, subprocess.SubprocessError) as error:
        return "", trouble_with(error)
    last = (output.splitlines() or ["no output"])[-1][:200]
    return (last, "") if status == 0 else ("", f"fails: {last}")


def usual_directories() -> list[Path]:
    """Return the directories that may contain PostgreSQL's programs, without duplicates."""
    first = shutil.which("postgres")
    places = [Path(first).resolve().parent] if first else []
    for pattern in USUAL_PLACES:
        places += sorted(Path("/").glob(pattern))
    return list(dict.fromkeys(places))[:MOST_PROGRAMS]


def trial_write(question: dict[str, Any]) -> dict[str, Any]:
    """Write a file of the given size to a private directory, and remove both."""
    place, trouble, free, may_run = os.environ.get("TMPDIR") or TEMPORARY, "", 0, True
    try:
        found = os.statvfs(place)
        free, may_run = found.f_bavail * found.f_frsize, not found.f_flag & os.ST_NOEXEC
        with tempfile.TemporaryDirectory(prefix="pgdyno-", dir=place) as own:
            (Path(own) / "trial").write_bytes(bytes(question["bytes"]))
    except OSError as error:
        trouble = error.strerror or str(error)
    return {"directory": place, "free_bytes": free, "trouble": trouble, "may_run_programs": may_run}


def wake_up(question: dict[str, Any]) -> dict[str, Any]:
    """Run the program that measures wake-ups between the first and last of the given CPUs."""
    usable = os.sched_getaffinity(0)
    cpus = sorted(usable & set(question["cpus"] or usable))
    if len(cpus) < 2:
        return {"error": "there is only one CPU, so nothing wakes another CPU"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-", str(cpus[0]), str(cpus[-1])], input=question["program"].encode(),
        capture_output=True, timeout=WAKE_UP_LIMIT_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        return {
            "error": (done.stderr.decode(errors="replace").strip().splitlines() or ["it failed"])[-1][:200]
        }
    return {"waker": cpus[0], "woken": cpus[-1], **json.loads(done.stdout.decode())}


def take_away(question: dict[str, Any]) -> dict[str, Any]:
    """End an owner's disconnected loads on this host, and remove their directories."""
    owner, ends = question["owner"], time.monotonic() + LEFT_LIMIT_S
    left = pids_of(owner)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)  # the load program cleans up, as when its time is over
    while pids_of(owner) and time.monotonic() < ends:
        time.sleep(LEFT_POLL_S)
    for directory in Path(os.environ.get("TMPDIR") or TEMPORARY).glob(f"{owner}-*"):
        if directory.lstat().st_uid == os.geteuid():
            shutil.rmtree(str(directory))
    return {"ended": len(left)}


def pids_of(owner: str) -> list[int]:
    """Return this user's processes with an owner on their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has exited
            is_ours = process.stat().st_uid == os.geteuid()
            if is_ours and owner.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


ANSWERS = {
    "clock": clock,
    "facts": facts,
    "trial_write": trial_write,
    "take_away": take_away,
    "wake_up": wake_up,
    "listen": listen,
    "accept": accept,
    "probe": probe,
}


def end(*_: object) -> NoReturn:
    """Exit with cleanup."""
    sys.exit("the runner's time is over")


def main(greeting: str) -> None:
    """Greet, and answer until the input ends. The start command has set the alarm."""
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    write_line(greeting)
    for line in iter(sys.stdin.buffer.readline, b""):
        write_line(json.dumps(answer(json.loads(line))))


def write_line(text: str) -> None:
    """Write one line to the output."""
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()
