"""Connection strings: where they lead, and what of them may be shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from psycopg.pq import Conninfo

from pgdyno.base.errors import UsageError
from pgdyno.postgres.connection.connection import addresses, has_password, names_database, without_password


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    services = tmp_path / "services"
    services.write_text("[prod]\nhost=db1,db2\nport=6432\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("host=/run port=5433", ("host=/run port=5433",)),
        ("host=db1", ("host=db1 port=5432",)),
        ("hostaddr=192.0.2.1", ("host=192.0.2.1 port=5432",)),
        ("host=db1 hostaddr=192.0.2.1", ("host=db1 port=5432",)),
        ("host=db1,db2 port=5433", ("host=db1 port=5433", "host=db2 port=5433")),
        ("postgresql://db1:5433,db2/app", ("host=db1 port=5433", "host=db2 port=5432")),
        ("service=prod", ("host=db1 port=6432", "host=db2 port=6432")),
        ("service=prod host=db3", ("host=db3 port=6432",)),
        ("service=typo", ()),
        ("host=db1,db2 port=1,2,3", ()),
    ],
)
def test_a_connection_string_leads_where_libpq_would_look(dsn: str, expected: tuple[str, ...]) -> None:
    assert addresses(dsn) == expected


def test_without_a_connection_string_the_environment_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    (default,) = addresses(None)
    assert default.startswith("host=/")
    monkeypatch.setenv("PGHOST", "db9")
    monkeypatch.setenv("PGPORT", "5444")
    assert addresses(None) == addresses("") == ("host=db9 port=5444",)


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("service=prod password=s3cret", "service=prod"),
        ("postgresql://app:s3cret@db1:5433/shop", "user=app dbname=shop host=db1 port=5433"),
        ("user='a b' host=db1 sslpassword=s3cret", "user='a b' host=db1"),
    ],
)
def test_what_is_typed_again_has_no_password(dsn: str, shown: str) -> None:
    assert without_password(dsn) == shown


@pytest.mark.parametrize(
    "keyword", ["password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"]
)
def test_no_secret_of_libpqs_is_shown_or_passed_unnoticed(keyword: str) -> None:
    if keyword.encode() not in {one.keyword for one in Conninfo.get_defaults()}:
        pytest.skip(f"this libpq is older than {keyword}")
    assert has_password(f"host=db1 {keyword}=s3cret")
    assert without_password(f"host=db1 {keyword}=s3cret") == "host=db1"


def test_a_string_that_is_none_is_said() -> None:
    with pytest.raises(UsageError, match="invalid connection string"):
        addresses("postgresql://app:s3 cret@db/x")


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        (None, False),
        ("", False),
        ("host=db1 user=app", False),
        ("host=db1 dbname=shop", True),
        ("host=db1 dbname=''", False),
        ("postgresql://db1/shop", True),
        ("postgresql://db1", False),
        ("service=prod", True),
    ],
)
def test_a_connection_string_or_the_environment_names_a_database(
    dsn: str | None, *, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names_database(dsn) is expected
    for variable in ("PGDATABASE", "PGSERVICE"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, "shop")
            assert names_database(dsn)
