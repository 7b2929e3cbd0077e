"""ssh's words, as OpenSSH 9.2 says them, and what follows from them."""

from __future__ import annotations

import pytest

from pgdyno.model.cells.check import Trouble
from pgdyno.remote.cells.ssh_errors import explained

BY_HAND = "ssh db1"
ENDED = "ssh exited with status 255"

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
It is also possible that a host key has just been changed.
The fingerprint for the ED25519 key sent by the remote host is
SHA256:ryMkRrDZrRoiTnPvAVfy9lPIGjSTnJ4Gb5I0a0aPaWk.
Please contact your system administrator.
Add correct host key in /home/ada/.ssh/known_hosts to get rid of this message.
Offending ED25519 key in /home/ada/.ssh/known_hosts:3
  remove with:
  ssh-keygen -f "/home/ada/.ssh/known_hosts" -R "db1"
Host key for db1 has changed and you have requested strict checking.
Host key verification failed."""


def test_a_changed_host_key_is_told_with_its_fingerprint() -> None:
    found = explained(ENDED, CHANGED, BY_HAND, has_begun=False)
    assert found == Trouble(
        "its host key has changed: it shows SHA256:ryMkRrDZrRoiTnPvAVfy9lPIGjSTnJ4Gb5I0a0aPaWk. "
        "This may be a man-in-the-middle attack",
        "ask its owner whether the key was changed, and compare it on the host's own console: "
        "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub . Only if it is the same, connect by hand; "
        "ssh shows how to remove the old one: ssh db1",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("ssh: Could not resolve hostname db1: Name or service not known", "its name is unknown (Could not"),
        ("ssh: connect to host 10.0.0.1 port 22: Connection refused", "nothing listens on its ssh port (con"),
        ("ssh: connect to host 10.0.0.1 port 22: No route to host", "there is no route to it (connect to"),
        ("ssh: connect to host 10.0.0.1 port 22: Network is unreachable", "there is no route to it (connect"),
        ("ssh: connect to host 10.0.0.1 port 22: Connection timed out", "it does not respond (connect to"),
        ("Timeout, server 10.0.0.1 not responding.", "the connection was lost (Timeout, server 10.0.0.1"),
        ("ada@db1: Permission denied (publickey,password).", "it accepts none of your keys (ssh: Permis"),
        ("Host key verification failed.", "its host key is not accepted (Host key verification failed.)"),
        ("kex_exchange_identification: read: Connection reset by peer", f"{ENDED}: kex_exchange"),
        (None, ENDED),
    ],
)  # fmt: skip
def test_each_failure_is_told_with_the_words_of_ssh(words: str | None, said: str) -> None:
    found = explained(ENDED, words, BY_HAND, has_begun=False)
    assert found.said.startswith(said)
    assert found.next_step.endswith(BY_HAND) or "hosts.toml" in found.next_step


def test_a_missing_python_is_told_in_any_shell() -> None:
    for words in ("bash: line 1: python3: command not found", "zsh:1: command not found: python3"):
        found = explained("ssh exited with status 127", words, BY_HAND, has_begun=False)
        assert found == Trouble(
            f"it has no python3 ({words})", "install Python 3.7 or newer as python3 there"
        )


def test_a_banner_does_not_speak_for_ssh() -> None:
    banner = "Sessions are timed out after an hour.\nBe kind.\nBe brief.\nsubsystem request failed"
    assert explained(ENDED, banner, BY_HAND, has_begun=False).said == f"{ENDED}: subsystem request failed"


JUMP = (
    "kex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535"
)


def test_the_key_of_a_jump_host_is_a_key() -> None:
    found = explained(ENDED, f"{CHANGED}\n{JUMP}", BY_HAND, has_begun=False)
    assert found.said.startswith("its host key has changed: it shows SHA256:ryMk")


@pytest.mark.parametrize(
    ("message", "last", "has_begun"),
    [
        (ENDED, "Host key verification failed.", True),
        ("ssh exited with status 1", "Host key verification failed.", False),
        (ENDED, "Connection reset by peer", False),
        (ENDED, f"Connection reset by peer\n{JUMP}", False),
    ],
)  # fmt: skip
def test_a_host_does_not_speak_for_ssh_of_its_key(message: str, last: str, *, has_begun: bool) -> None:
    words = CHANGED if last == "Host key verification failed." else f"{CHANGED}\n{last}"
    found = explained(message, words, BY_HAND, has_begun=has_begun)
    assert found.said == f"{message}: {last.splitlines()[-1]}"
    assert found.next_step == f"try it by hand: {BY_HAND}"


def test_words_without_an_end_are_cut() -> None:
    words = f"No ED25519 host key is known for {'x' * 900}\nHost key verification failed."
    found = explained(ENDED, words, BY_HAND, has_begun=False)
    assert found.said == f"its host key is unknown (No ED25519 host key is known for {'x' * 267})"
