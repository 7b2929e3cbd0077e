from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.server.redaction import redacted


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("primary_conninfo", "host=db password=s3cret port=1", "host=db password=******** port=1"),
        ("primary_conninfo", "host=db password = 's3 cr\\'et' port=1", "host=db password = ******** port=1"),
        ("primary_conninfo", "postgresql://app:s3cret@db/x", "postgresql://app:********@db/x"),
        ("primary_conninfo", "postgresql://app@db/x?password=s3cret&port=1", "postgresql://app@db/x?password=********&port=1"),
        ("archive_command", "AWS_SECRET_ACCESS_KEY=x wal-push %p", "********"),
        ("app.jwt_secret", "abc", "********"),
        ("app.settings.service_role_key", "abc", "********"),
    ],
)  # fmt: skip
def test_secrets_are_replaced(name: str, value: str, shown: str) -> None:
    assert redacted(name, value) == shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("archive_command", "(disabled)"),
        ("archive_command", ""),
        ("ssl_passphrase_command_supports_reload", "off"),
        ("password_encryption", "scram-sha-256"),
        ("search_path", '"$user", public'),
        ("ssl_key_file", "/etc/ssl/private/server.pem"),
        ("log_line_prefix", "%m [%p] %q%u@%d "),
    ],
)
def test_what_is_no_secret_is_left_alone(name: str, value: str) -> None:
    assert redacted(name, value) == value


@given(
    password=st.text("abcXYZ019!$%^*()_+-./", min_size=9).map(lambda text: f"!{text}"),
    host=st.sampled_from(["", "host=db "]),
    tail=st.sampled_from(["", " port=1", " user=app"]),
)
def test_no_unquoted_password_of_a_conninfo_survives(password: str, host: str, tail: str) -> None:
    assert password not in redacted("primary_conninfo", f"{host}password={password}{tail}")
