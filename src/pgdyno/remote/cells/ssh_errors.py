"""Derive the problem with a host, and the next step, from ssh's messages. Pure.

Source: OpenSSH 9.2, sshconnect.c and ssh.c, in the C locale.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.model.cells.check import Trouble

_FINGERPRINT = re.compile(r"\b(SHA256:[A-Za-z0-9+/=]{20,60})")
_REFUSED = re.compile(r"Permission denied \([a-z,-]{1,200}\)")
_OF_A_JUMP = re.compile(
    r"kex_exchange_identification: Connection closed by remote host$|Connection closed by UNKNOWN port \d+$"
)
"""The last message if the separate ssh to a jump host failed; that ssh's own messages come before."""

_KEYS_OF_THE_HOST = "on the host's own console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
_FAILED = "ssh exited with status 255"
_MOST_CHARACTERS = 300
_LAST_LINES = 3
"""Of ssh's messages; the host's banner comes before them, and may contain anything."""

_PYTHON = "install Python 3.7 or newer as python3 there"
_NETWORK = "check the network, its address, and firewalls: {}"
_PLAIN = (
    ("Could not resolve hostname", "its name is unknown", "correct ssh = in hosts.toml, or ~/.ssh/config"),
    (
        "Connection refused",
        "nothing listens on its ssh port",
        "start sshd there, or correct the port; then: {}",
    ),
    ("No route to host", "there is no route to it", _NETWORK),
    ("Network is unreachable", "there is no route to it", _NETWORK),
    ("timed out", "it does not respond", _NETWORK),
    ("not responding", "the connection was lost", _NETWORK),
    ("python3 is too old", "its python3 is older than 3.7", _PYTHON),
    ("exited with status 127", "it has no python3", _PYTHON),  # the shell's status for command not found
)
"""Messages of ssh or pgdyno, their meaning, and the next step. {} is the command to reach the host."""


def explained(message: str, words: str | None, by_hand: str, *, has_begun: bool) -> Trouble:
    """Return the problem behind a failed connection. ``by_hand``: the command to reach the host.

    ``has_begun``: pgdyno's program has greeted. Then ssh accepted all keys, and ``words`` come from the host.
    """
    text = words or ""
    end = "\n".join([*_lines(text)[-_LAST_LINES:], message])
    about_keys = None if has_begun or message != _FAILED else _about_keys(text, by_hand)
    return (
        about_keys
        or next(
            (
                Trouble(f"{meaning} ({_last_line(text) or message})", step.format(by_hand))
                for phrase, meaning, step in _PLAIN
                if phrase in end
            ),
            None,
        )
        or Trouble(f"{message}: {_last_line(text)}" if text else message, f"try it by hand: {by_hand}")
    )


def _about_keys(words: str, by_hand: str) -> Trouble | None:
    lines = _lines(words)
    while lines and _OF_A_JUMP.match(lines[-1]):
        del lines[-1]
    if lines and lines[-1] == "Host key verification failed.":
        return _about_host_key(lines, by_hand)
    if refused := _REFUSED.search("\n".join(lines[-_LAST_LINES:])):
        return Trouble(
            f"it accepts none of your keys (ssh: {refused[0]})",
            "load the key into the agent (ssh-add), name it (key = in hosts.toml), or have it accepted there "
            f"(ssh-copy-id); pgdyno never prompts for a password. Then: {by_hand}",
        )
    return None


def _about_host_key(lines: Sequence[str], by_hand: str) -> Trouble:
    """Return the problem with a host key; only the owner can tell an attack from a new installation."""
    if any("REMOTE HOST IDENTIFICATION HAS CHANGED" in line for line in lines):
        seen = _FINGERPRINT.findall("\n".join(lines))
        return Trouble(
            f"its host key has changed: it shows {seen[-1] if seen else 'another'}. "
            "This may be a man-in-the-middle attack",
            f"ask its owner whether the key was changed, and compare it {_KEYS_OF_THE_HOST} . "
            f"Only if it is the same, connect by hand; ssh shows how to remove the old one: {by_hand}",
        )
    unknown = [line for line in lines if "host key is known for" in line]
    if unknown:
        return Trouble(
            f"its host key is unknown ({unknown[-1][:_MOST_CHARACTERS]})",
            f"connect once by hand, and compare the fingerprint before accepting it: {by_hand} "
            f"({_KEYS_OF_THE_HOST})",
        )
    return Trouble(f"its host key is not accepted ({lines[-1]})", f"try it by hand: {by_hand}")


def _last_line(words: str) -> str:
    """Return the last non-empty line, without the prefix "ssh: "."""
    return next(iter(_lines(words)[-1:]), "").removeprefix("ssh: ")[:_MOST_CHARACTERS]


def _lines(words: str) -> list[str]:
    return [line.strip() for line in words.splitlines() if line.strip()]
