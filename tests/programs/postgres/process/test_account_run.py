"""Programs of the servers' account run apart from the caller's terminal, and within limits."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest
from tests.fix_servers import wait_until

from pgdyno.base.errors import ServerError
from pgdyno.postgres.process import account as module
from pgdyno.postgres.process.account import account_of, caller

AT_A_TERMINAL = """
from pgdyno.postgres.process.account import current_account
done = current_account().run(["sh", "-c", "exec 3<>/dev/tty && echo reached"])
print("status", done.returncode, done.stdout.decode())
"""
ALONE = "exec 3<>/dev/tty && echo status 0 reached"


def at_a_terminal(*command: str) -> str:
    """Return what a command says whose controlling terminal is a new one."""
    process, terminal = pty.fork()
    if process == 0:
        os.execv(command[0], command)  # noqa: S606
    said = b""
    try:
        while chunk := os.read(terminal, 1024):
            said += chunk
    except OSError:  # how a terminal ends
        pass
    os.waitpid(process, 0)
    os.close(terminal)
    return said.decode()


def test_a_program_of_the_account_does_not_reach_the_terminal_of_the_caller() -> None:
    assert "status 0 reached" in at_a_terminal("/bin/sh", "-c", ALONE)
    said = at_a_terminal(sys.executable, "-P", "-c", AT_A_TERMINAL)
    assert "status 2" in said or "status 1" in said, said
    assert "reached" not in said


def test_outputs_status_input_and_variables_are_those_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"given")
    with (tmp_path / "input").open("rb") as stdin:
        words = 'cat; echo "$OURS" >&2; exit 3'
        done = caller().run(["sh", "-c", words], stdin=stdin, environment={"OURS": "added"})
    assert (done.returncode, done.stdout, done.stderr) == (3, b"given", b"added\n")


def group_has_ended(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_program_that_says_too_much_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 1 << 20)
    with pytest.raises(ServerError) as caught:
        caller().run(["sh", "-c", f"echo $$ > {tmp_path}/group; yes"])
    assert caught.value.message == '"sh" printed more than 1\u00a0MB and was killed'
    wait_until(lambda: group_has_ended(int((tmp_path / "group").read_text())))


@pytest.mark.parametrize("words", ["sleep 1000 & sleep 1000", "exec >&- 2>&-; sleep 1000", "yes > /dev/null"])
def test_a_program_that_does_not_end_is_ended_with_its_own(tmp_path: Path, words: str) -> None:
    with pytest.raises(ServerError) as caught:
        caller().run(["sh", "-c", f"echo $$ > {tmp_path}/group; {words}"], limit_s=1)
    assert caught.value.message == '"sh" did not end within 1 s'
    wait_until(lambda: group_has_ended(int((tmp_path / "group").read_text())))


def test_what_a_program_leaves_behind_holds_nothing_up_and_is_ended(tmp_path: Path) -> None:
    done = caller().run(["sh", "-c", f"echo $$ > {tmp_path}/group; echo said; sleep 1000 & exit 3"])
    assert (done.returncode, done.stdout) == (3, b"said\n")
    wait_until(lambda: group_has_ended(int((tmp_path / "group").read_text())))


def test_what_goes_on_saying_something_for_another_is_ended_in_time(tmp_path: Path) -> None:
    words = f"echo $$ > {tmp_path}/group; while sleep 0.1; do echo more; done & exit 0"
    with pytest.raises(ServerError, match="did not end within 2 s"):
        caller().run(["sh", "-c", words], limit_s=2)
    wait_until(lambda: group_has_ended(int((tmp_path / "group").read_text())))


@pytest.mark.root
def test_as_root_it_runs_with_the_rights_of_the_account() -> None:
    done = account_of(65534).run(["sh", "-c", "id -u; grep NoNewPrivs /proc/self/status"])
    assert done.stdout == b"65534\nNoNewPrivs:\t1\n"
