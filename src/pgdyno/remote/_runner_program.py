"""Standalone program that answers questions about the host that it runs on.

It is sent through ssh with two neighbours alone (runner.py has their names): nothing is installed, and Python
3.7 with its standard library is enough. Each line of its input is a question as JSON, each line of its output
the answer. It ends with its input; and when its time is over, because nobody may be there any more to end it.
Its files are in a directory of its own, and removed whatever happens.
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

PROGRAM_LIMIT_S, PROGRAM_BYTES = 5.0, 100_000  # for a program that says its version
WAKE_UP_LIMIT_S = 15.0
LEFT_LIMIT_S, LEFT_POLL_S = 10.0, 0.05  # for loads that were cut off to end
MOST_PROGRAMS = 16  # directories with a PostgreSQL
USUAL_PLACES = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "usr/local/pgsql/bin")
PGDYNO_SAYS = "pgdyno, version "
TEMPORARY = "/tmp"  # noqa: S108 — a directory of our own is made in it
STA_UNSYNC = 0x40  # linux/timex.h
TIMEX = struct.Struct("@I l l l l i")  # the first members of struct timex, as far as its status


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one question; an error of the system is one too."""
    try:
        return ANSWERS[question["do"]](question)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return {"error": str(error)}


def clock(_: dict[str, Any]) -> dict[str, Any]:
    """Return the time of the clock."""
    return {"ns": time.time_ns()}


def facts(question: dict[str, Any]) -> dict[str, Any]:
    """Return facts about the host, its kernel, and our rights there."""
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
    """Return the name that we run under, or the number of one without a name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def why_no_sudo() -> str:
    """Return why root's rights are not had without a password; nothing if they are."""
    if os.geteuid() == 0:
        return ""
    try:
        status, output = output_of(["sudo", "-n", "true"])
    except FileNotFoundError:
        return "sudo is not installed"
    except (OSError, subprocess.SubprocessError) as error:
        return "sudo " + trouble_with(error)
    said = output.splitlines()
    return "" if status == 0 else (said or ["sudo fails"])[-1][:200]


def output_of(command: list[str], user: int | None = None) -> tuple[int, str]:
    """Return the status of a program that says little, and its words; it may run as another user.

    subprocess.run would wait without end for a program that we may not kill, as sudo: it is root's.
    Raises: subprocess.TimeoutExpired; OSError for a program that says much.
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
            said = os.read(process.stdout.fileno(), PROGRAM_BYTES)
            if not said:
                break
            output += said
        else:
            raise OSError(0, f"it says more than {PROGRAM_BYTES} bytes")
        process.wait(max(0.0, ends - time.monotonic()))
    finally:
        if process.poll() is None:
            give_up(process)
        process.stdout.close()
    return process.returncode, output.decode(errors="replace").strip()


def give_up(process: subprocess.Popen[bytes]) -> None:
    """End a program, if we may, and wait for that a moment."""
    with contextlib.suppress(PermissionError, subprocess.TimeoutExpired):
        process.kill()
        process.wait(1)
    if process.stdout:
        process.stdout.close()


def trouble_with(error: Exception) -> str:
    """Return why a program did not say anything, to be put behind its name."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"does not answer within {PROGRAM_LIMIT_S:g}\u00a0s"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"cannot be run: {reason or error}"[:200]


def first_line(path: str) -> str:
    """Return a file's first line; nothing if there is none."""
    try:
        with Path(path).open(encoding="ascii", errors="replace") as file:
            return file.readline(200).strip()
    except OSError:
        return ""


def cpu_model() -> str:
    """Return the name of the first CPU; nothing where the kernel shows none, as on Arm."""
    with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "cpu model"):
                return value.strip()[:200]
    return ""


def is_synchronised() -> bool | None:
    """Return whether the kernel's clock is kept by a service; None where it may not be asked."""
    if struct.calcsize("l") != 8:
        return None  # struct timex has other members there
    timex = ctypes.create_string_buffer(512)
    if ctypes.CDLL(None).adjtimex(timex) == -1:
        return None
    return not TIMEX.unpack_from(timex)[5] & STA_UNSYNC


def postgresql(named: str | None) -> list[dict[str, str]]:
    """Return the directories with a PostgreSQL, with their versions or their troubles."""
    found = []
    for directory in [Path(named)] if named else usual_directories():
        program = directory / "postgres"
        if os.access(program, os.X_OK):
            version, trouble = version_of(program)
            found.append({"directory": str(directory), "version": version, "trouble": trouble})
    return found


def pgdyno(named: str | None) -> dict[str, str] | None:
    """Return pgdyno's program, with its version or its trouble; None if a login finds none."""
    program = named or shutil.which("pgdyno")
    if program is None:
        return None
    said, trouble = version_of(Path(program))
    if said and not said.startswith(PGDYNO_SAYS):
        said, trouble = "", f"says: {said}"[:300]
    return {"program": program, "version": said[len(PGDYNO_SAYS) :], "trouble": trouble}


def version_of(program: Path) -> tuple[str, str]:
    """Return the version that a program says, and nothing; or nothing, and why it says none."""
    real = Path(os.path.realpath(str(program)))
    try:
        status, output = output_of([str(real), "--version"], owner_of(real))
    except (OSError, subprocess.SubprocessError) as error:
        return "", trouble_with(error)
    last = (output.splitlines() or ["it says nothing"])[-1][:200]
    return (last, "") if status == 0 else ("", f"fails: {last}")


def usual_directories() -> list[Path]:
    """Return the directories where PostgreSQL's programs may be, each once."""
    first = shutil.which("postgres")
    places = [Path(first).resolve().parent] if first else []
    for pattern in USUAL_PLACES:
        places += sorted(Path("/").glob(pattern))
    return list(dict.fromkeys(places))[:MOST_PROGRAMS]


def trial_write(question: dict[str, Any]) -> dict[str, Any]:
    """Write a file of some size to a directory of our own, and remove both."""
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
    """Run the program that measures wake-ups between the first and the last of some CPUs."""
    usable = os.sched_getaffinity(0)
    cpus = sorted(usable & set(question["cpus"] or usable))
    if len(cpus) < 2:
        return {"error": "there is one CPU, so that nothing wakes another"}
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
    """End the loads of an owner that were cut off here, and remove their directories."""
    owner, ends = question["owner"], time.monotonic() + LEFT_LIMIT_S
    left = pids_of(owner)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)  # the program there takes all away, as when its time is over
    while pids_of(owner) and time.monotonic() < ends:
        time.sleep(LEFT_POLL_S)
    for directory in Path(os.environ.get("TMPDIR") or TEMPORARY).glob(f"{owner}-*"):
        if directory.lstat().st_uid == os.geteuid():
            shutil.rmtree(str(directory))
    return {"ended": len(left)}


def pids_of(owner: str) -> list[int]:
    """Return our user's processes that have an owner on their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
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
    """Leave, by way of everything that gives something back."""
    sys.exit("the runner's time is over")


def main(greeting: str) -> None:
    """Greet, and answer until the input ends. The alarm was set as the program began to arrive."""
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    say(greeting)
    for line in iter(sys.stdin.buffer.readline, b""):
        say(json.dumps(answer(json.loads(line))))


def say(text: str) -> None:
    """Write one line."""
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()
