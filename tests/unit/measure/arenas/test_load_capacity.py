"""A server that cannot take a load is refused before any data are loaded."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import PgdynoError, PrivilegeError, RefusedError, UsageError
from pgdyno.measure.arenas.load_capacity import _require_room, _Rights


def rights(**given: object) -> _Rights:
    usual = {"may_create_databases": True, "may_checkpoint": True, "is_standby": False, "connections": 7}
    return _Rights(**{**usual, **given})  # type: ignore[arg-type]


def test_three_connections_are_spare() -> None:
    _require_room(rights(), 4)
    with pytest.raises(UsageError) as caught:
        _require_room(rights(), 5)
    assert str(caught.value) == (
        "the server does not have enough free connections for 5 clients\n"
        "DETAIL:  4 are free for clients now\n"
        "HINT:  use fewer clients, or raise max_connections there"
    )
    with pytest.raises(UsageError, match=r"connections for 1 client\nDETAIL:  0 are free"):
        _require_room(rights(connections=2), 1)


@pytest.mark.parametrize(
    ("given", "kind", "message", "hint"),
    [
        (
            {"is_standby": True},
            RefusedError,
            "the server is a standby and cannot store test data",
            "name its primary with --dsn",
        ),
        (
            {"may_create_databases": False},
            PrivilegeError,
            "the role may not create databases for the measurement",
            "connect as a role with CREATEDB",
        ),
        (
            {"may_checkpoint": False},
            PrivilegeError,
            "the role may not run checkpoints, which begin every round",
            "connect as a superuser, or, since PostgreSQL 15, GRANT pg_checkpoint TO the role",
        ),
    ],
)
def test_each_right_that_is_missing_has_its_remedy(
    given: dict[str, bool], kind: type[PgdynoError], message: str, hint: str
) -> None:
    with pytest.raises(kind) as caught:
        _require_room(rights(**given), 1)
    assert (caught.value.message, caught.value.hint) == (message, hint)
