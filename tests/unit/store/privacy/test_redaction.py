"""Free texts and documents without secrets: what is replaced, and what stays."""

from __future__ import annotations

import pytest

from pgdyno.store.privacy.redaction import portable_text, rewritten, setting_name


@pytest.mark.parametrize(
    ("text", "portable"),
    [
        ("see postgresql://me:pw@db/shop now", "see postgresql://******** now"),
        ("host=db.example user=me sslmode=require", "host=******** user=******** sslmode=require"),
        ('relation "orders" of role "app"', 'relation "********" of role "********"'),
        ("from 192.0.2.7/24 and 2001:db8::1", "from (address) and (address)"),
        ("version 18.6.0.1-2 at 12:30:05", "version 18.6.0.1-2 at 12:30:05"),
        ("in /home/me/data, not /proc/meminfo", "in (path), not /proc/meminfo"),
        ("/sys/fs/cgroup/system.slice/pg.service/memory.max", "/sys/fs/cgroup/…/memory.max"),
        ("/sys/class/net/eth0/mtu", "/sys/class/net/…/mtu"),
        ("read/write at 2/3", "read/write at 2/3"),
    ],
)
def test_connections_names_places_and_addresses_are_replaced(text: str, portable: str) -> None:
    assert portable_text(text) == portable


def test_values_of_settings_are_rewritten_by_their_name_wherever_they_stand() -> None:
    document = {
        "note": "n",
        "variants": [{"name": "v", "settings": {"jit": "off"}}],
        "gucs": [{"name": "port", "setting": "5432", "unit": None}],
        "change": {"key": "jit", "current": "on", "value": "off", "reason": "r"},
    }
    found = rewritten(document, lambda name, value: f"{name}={value}", str.upper)
    assert found == {
        "note": "N",
        "variants": [{"name": "V", "settings": {"jit": "JIT=OFF"}}],
        "gucs": [{"name": "PORT", "setting": "PORT=5432", "unit": None}],
        "change": {"key": "JIT", "current": "JIT=ON", "value": "JIT=OFF", "reason": "R"},
    }
    assert setting_name({"name": "v", "settings": {}}) is None
