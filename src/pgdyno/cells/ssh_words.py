"""From ssh's words to the trouble with a host, and the next step. Pure.

Source: OpenSSH 9.2, sshconnect.c and ssh.c, in the C locale.
"""

from __future__ import annotations

import re

from pgdyno.model.cells.check import Trouble

_FINGERPRINT = re.compile(r"\b(SHA256:[A-Za-z0-9+/=]{20,60})")
_OFFENDING = re.compile(r"^Offending \w+ key in (.+):(\d+)$", re.MULTILINE)
_REFUSED = re.compile(r"Permission denied \(([a-z,-]+)\)")
_KEYS_OF_THE_HOST = "on the host's own console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
_UNKNOWN = "host key is known for"
_LAST_LINES = 3
"""Of ssh's words: a host's banner stands before them, and may say anything."""

_PYTHON = "install Python 3.7 or newer as python3 there"
_NETWORK = "check the network, its address, and firewalls: {}"
_PLAIN = (
    ("Could not resolve hostname", "its name is unknown", "correct ssh = in hosts.toml, or ~/.ssh/config"),
    (
        "Connection refused",
        "nothing listens at ssh's port",
        "start sshd there, or correct the port; then: {}",
    ),
    ("No route to host", "there is no way to it", _NETWORK),
    ("Network is unreachable", "there is no way to it", _NETWORK),
    ("timed out", "it does not answer", _NETWORK),
    ("not responding", "the connection was lost", _NETWORK),
    ("python3 is too old", "its python3 is older than 3.7", _PYTHON),
    ("ended with status 127", "it has no python3", _PYTHON),  # as shells say that there is no such program
)
"""Words of ssh or of ours, what they mean, and a step. {} stands for the command that reaches the host."""


def explained(message: str, words: str | None, by_hand: str) -> Trouble:
    """Return the trouble that a failed connection means. ``by_hand``: the command that reaches the host."""
    said = words or ""
    end = "\n".join([*_lines(said)[-_LAST_LINES:], message])
    return (
        _about_keys(said, by_hand)
        or next(
            (
                Trouble(f"{meaning} ({_last_line(said) or message})", step.format(by_hand))
                for phrase, meaning, step in _PLAIN
                if phrase in end
            ),
            None,
        )
        or Trouble(f"{message}: {_last_line(said)}" if said else message, f"see it by hand: {by_hand}")
    )


def _about_keys(said: str, by_hand: str) -> Trouble | None:
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in said:
        return _changed(said, by_hand)
    if _UNKNOWN in said:
        return Trouble(
            f"its host key is not known ({_line_with(_UNKNOWN, said)})",
            f"connect once by hand, and compare the fingerprint before saying yes: {by_hand} "
            f"({_KEYS_OF_THE_HOST})",
        )
    if "Host key verification failed" in said:
        return Trouble(f"its host key is not accepted ({_last_line(said)})", f"see it by hand: {by_hand}")
    if refused := _REFUSED.search(said):
        return Trouble(
            f"it accepts none of your keys (ssh: {refused[0]})",
            "load the key into the agent (ssh-add), name it (key = in hosts.toml), or have it accepted there "
            f"(ssh-copy-id); pgdyno asks for no password. Then: {by_hand}",
        )
    return None


def _changed(said: str, by_hand: str) -> Trouble:
    """Return the trouble that only the owner can decide: a stranger in between, or a new installation."""
    seen, offending = _FINGERPRINT.search(said), _OFFENDING.search(said)
    place = f"; {offending[1]} line {offending[2]} has another" if offending else ""
    remove = (
        f"remove line {offending[2]} of {offending[1]}" if offending else "remove the old one (ssh-keygen -R)"
    )
    return Trouble(
        f"its host key has changed: it shows {seen[1] if seen else 'another'}{place}. "
        "Somebody may be between you and the host",
        f"ask its owner whether the key was changed, and compare it {_KEYS_OF_THE_HOST} . "
        f"Only if it is the same, {remove}, and connect once by hand: {by_hand}",
    )


def _last_line(said: str) -> str:
    """Return the last line that says something, without ssh's name for itself."""
    return next(iter(_lines(said)[-1:]), "").removeprefix("ssh: ")[:300]


def _line_with(phrase: str, said: str) -> str:
    return next(line for line in _lines(said) if phrase in line)


def _lines(said: str) -> list[str]:
    return [line.strip() for line in said.splitlines() if line.strip()]
