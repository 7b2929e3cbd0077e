"""The part of a peer's configuration that a compared server gets, and the reasons for the rest. Pure.

All servers of a comparison have the same durability, access and monitoring: a peer's settings for these are
removed, and so are settings with which this server would not start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby

from pgdyno.base.errors import SettingError
from pgdyno.base.facts import Unknown
from pgdyno.model.variants.durability import DURABILITY_LOCK, why_refused
from pgdyno.plan.peers import load
from pgdyno.plan.peers._contract import Peer, PeerFacts, Purpose
from pgdyno.postgres.server import Server

_DURABLE = frozenset({*DURABILITY_LOCK, "synchronous_standby_names"})
_ACCESS = ("authentication_timeout", "listen_addresses", "password_encryption", "ssl*")
_MONITORING = ("log_*", "logging_collector", "track_*", "compute_query_id")
SPARE_CONNECTIONS = 10
"""In addition to the load's: for pgdyno's own, and for sessions that end while the next ones begin."""
_CONNECTIONS, _RESERVED = "max_connections", ("superuser_reserved_connections", "reserved_connections")


@dataclass(frozen=True)
class LeftOut:
    """A setting of a peer's configuration that a compared server does not get."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True)
class PeerSettings:
    """The part of a peer's configuration that a server gets, and the settings left out."""

    settings: Mapping[str, str]
    left_out: tuple[LeftOut, ...]


def accepted_by(server: Server, settings: Mapping[str, str]) -> PeerSettings:
    """Drop and report the settings that this server would reject, since each would prevent its start."""
    return _without(settings, {name: _objection(server, name, value) for name, value in settings.items()})


def comparable(server: Server, settings: Mapping[str, str]) -> PeerSettings:
    """Drop the settings that must be equal on all compared servers, and those that this one would reject."""
    alike = _without(settings, {name: _why_alike(name, value) for name, value in settings.items()})
    accepted = accepted_by(server, alike.settings)
    return PeerSettings(accepted.settings, (*alike.left_out, *accepted.left_out))


def left_out_notes(peer: str, left_out: Sequence[LeftOut]) -> Iterator[str]:
    """Yield a sentence for each reason, with the settings left out because of it."""
    by_reason = sorted(left_out, key=lambda one: one.reason)
    for reason, same in groupby(by_reason, key=lambda one: one.reason):
        named = ", ".join(f"{one.name} = {one.value or chr(39) * 2}" for one in same)
        yield f"{peer} without {named}: {reason}"


def with_room_for(clients: int, server: Server, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with max_connections raised to the load's need; unchanged if it suffices."""
    reserved = sum(int(_value(server, settings, name)) for name in _RESERVED)
    needed = clients + SPARE_CONNECTIONS + reserved
    if int(_value(server, settings, _CONNECTIONS)) >= needed:
        return dict(settings)
    return {**settings, _CONNECTIONS: str(needed)}


def _value(server: Server, settings: Mapping[str, str], name: str) -> str:
    guc = server.settings.get(name)
    return settings.get(name, "0" if guc is None else guc.setting)


def _without(settings: Mapping[str, str], reasons: Mapping[str, str | None]) -> PeerSettings:
    accepted = {name: value for name, value in settings.items() if reasons[name] is None}
    left_out = [LeftOut(name, settings[name], reason) for name, reason in reasons.items() if reason]
    return PeerSettings(accepted, tuple(left_out))


def _why_alike(name: str, value: str) -> str | None:
    if name in _DURABLE:
        return "all servers are equally durable"
    if _is_among(name, _ACCESS):
        return "scratch servers are accessible only through a private socket"
    if "." in name or name.endswith("_preload_libraries"):
        return "the compared servers load no extensions"
    if _is_among(name, _MONITORING):
        return "monitoring has a cost, and none of the servers is monitored"
    return why_refused(name, value)


def _is_among(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _objection(server: Server, name: str, value: str) -> str | None:
    guc = server.settings.get(name)
    if guc is None:
        return f'PostgreSQL {server.version} has no setting "{name}"'
    try:
        guc.check(value)
    except SettingError as error:
        return "; ".join(filter(None, (error.message, error.detail)))
    return None


@dataclass(frozen=True)
class ConfiguredPeers:
    """Settings by peer, with notes on their source and on values left out or raised."""

    settings: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...]


def configured_peers(server: Server, facts: PeerFacts, clients: int) -> ConfiguredPeers:
    """Return every peer's settings for these facts, with enough connections for that number of clients."""
    found: dict[str, Mapping[str, str]] = {}
    notes: list[str] = []
    for name, peer in load().items():
        recommended = peer.settings(facts)
        if isinstance(recommended, Unknown):
            notes.append(f"{name} ({peer.title_for(facts.purpose)}) is not compared: {recommended.reason}")
            continue
        accepted = comparable(server, recommended)
        found[name] = with_room_for(clients, server, accepted.settings)
        notes.append(f"{name}: {peer.title_for(facts.purpose)} ({peer.source})")
        notes += _notes(name, peer, accepted.settings, found[name])
        notes += left_out_notes(name, accepted.left_out)
    return ConfiguredPeers(found, (*_purpose_notes(facts.purpose), *notes))


def _purpose_notes(purpose: Purpose) -> Iterator[str]:
    """Yield a note on the peers with a separate configuration for this kind of load.

    None for transaction processing.
    """
    if purpose is Purpose.TRANSACTIONS:
        return
    aware = [f"{name} ({peer.kinds[purpose]})" for name, peer in load().items() if purpose in peer.kinds]
    others = [name for name, peer in load().items() if purpose not in peer.kinds]
    yield (
        f"configured for {purpose.value}: {', '.join(aware)}; {', '.join(others)} have the same "
        "configuration for all kinds of load"
    )


def _notes(name: str, peer: Peer, accepted: Mapping[str, str], given: Mapping[str, str]) -> Iterator[str]:
    if peer.left_out:
        yield f"{name} without {peer.left_out}"
    if accepted != given:
        needed, had = given["max_connections"], accepted.get("max_connections", "the server's value")
        yield f"{name} with max_connections = {needed} instead of {had}: required by the load"
