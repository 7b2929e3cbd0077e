from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fix_settings import MAJORS, settings_of

from pgdyno.postgres.secrets import redacted


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("primary_conninfo", "scram_client_key=c2VjcmV0 port=1", "scram_client_key=******** port=1"),
        ("primary_conninfo", "host=db password=s3cret port=1", "host=db password=******** port=1"),
        ("primary_conninfo", "host=db password = 's3 cr\\'et' port=1", "host=db password = ******** port=1"),
        ("primary_conninfo", "postgresql://app:s3cret@db/x", "postgresql://app:********@db/x"),
        ("primary_conninfo", "postgresql://app@db/x?password=s3cret&port=1", "postgresql://app@db/x?password=********&port=1"),
        ("archive_command", "AWS_SECRET_ACCESS_KEY=x wal-push %p", "********"),
        ("app.jwt_secret", "abc", "********"),
        ("app.settings.service_role_key", "abc", "********"),
        ("foo.passwd", "abc", "********"),
        ("vault.credentials", "abc", "********"),
        ("app.apikey", "abc", "********"),
        ("app.auth", "Bearer abc", "********"),
        ("app.pin", "1234", "********"),
        ("app.anything", "whatever its owner put there", "********"),
        ("basebackup_to_shell.command", "curl -u me:abc", "********"),
        ("App.Settings", '{"dsn": "abc"}', "********"),
        ("", "restore with aws_secret_access_key=abc now", "restore with aws_secret_access_key=******** now"),
        ("", "pwd=abc;x", "pwd=********"),
        ("", "PGPASSWORD=abc psql", "PGPASSWORD=******** psql"),
        ("", "api-token: 'a b c' end", "api-token: ******** end"),
        ("", '{"password": "a b", "port": 1}', '{"password": ********, "port": 1}'),
        ("", "curl -H 'Authorization: Bearer abc.def' x", "curl -H 'Authorization: ******** x"),
        ("", "with bearer abc.def", "with bearer ********"),
        ("primary_conninfo", "password=ab&cd port=1", "password=******** port=1"),
        ("primary_conninfo", r"password=a\ secret port=1", "password=******** port=1"),
        ("primary_conninfo", "password=a://b&c port=1", "password=******** port=1"),
        ("", "see 'https://h/?api_key=a&page=2&token=b'", "see 'https://h/?api_key=********&page=2&token=********"),
        ("", "ALTER ROLE a PASSWORD 'b c' LOGIN", "ALTER ROLE a PASSWORD ******** LOGIN"),
        ("", "CREATE ROLE a PASSWORD E'it\\'s b' LOGIN", "CREATE ROLE a PASSWORD ******** LOGIN"),
        ("", "CREATE ROLE a PASSWORD 'it''s b' LOGIN", "CREATE ROLE a PASSWORD ******** LOGIN"),
        ("", "CREATE ROLE a PASSWORD $q$b c$q$ LOGIN", "CREATE ROLE a PASSWORD ******** LOGIN"),
        ("", "CREATE ROLE a PASSWORD 'a log cuts off", "CREATE ROLE a PASSWORD ********"),
        ("", "OPTIONS (user 'a', password 'b c')", "OPTIONS (user 'a', password ********)"),
        ("", "OPTIONS (SET \"password\" 'b c')", 'OPTIONS (SET "password" ********)'),
        ("", "CONNECTION 'password=''b c'' port=1'", "CONNECTION 'password=******** port=1'"),
        ("", "SET app.token TO 'b c'; x", "SET app.token TO ********; x"),
        ("", "set_config('app.token', 'b c', false)", "set_config('app.token', ********, false)"),
        ("primary_conninfo", "postgres://u@h/db?pass%77ord=b&port=1", "postgres://u@h/db?password=********&port=1"),
        ("primary_conninfo", "postgres://u@h/db?%70assword%00=b", "postgres://u@h/db?password=********"),
        ("", "dsn=postgres://u@h/db?%50assword=b", "dsn=postgres://u@h/db?Password=********"),
        ("", "curl -H 'X-Api-Key: b' x", "curl -H 'X-Api-Key: ******** x"),
        ("", "AccountName=a;AccountKey=b", "AccountName=a;AccountKey=********"),
        ("", "https://h/a?sv=1&sig=b%2B&se=2", "https://h/a?sv=1&sig=********&se=2"),
        ("", "https://h/a?X-Amz-Signature=b&x=1", "https://h/a?X-Amz-Signature=********&x=1"),
        ("", "DB_PASS=b psql", "DB_PASS=******** psql"),
        ("", "ALTER ROLE a PASSWORD/**/'b c' LOGIN", "ALTER ROLE a PASSWORD******** LOGIN"),
        ("", "ALTER ROLE a PASSWORD --c\n'b c'", "ALTER ROLE a PASSWORD ********"),
        ("", "ALTER ROLE a PASSWORD /* c * / */ -- c\n E'b c'", "ALTER ROLE a PASSWORD   ********"),
        ("", "SET app.token/**/=/**/'b c'", "SET app.token=********"),
        ("", "SET app.token TO/**/'b c'", "SET app.token TO********"),
        ("", "set_config('app.token' /*c*/, /*c*/ 'b c')", "set_config('app.token' ,  ********)"),
        ("", "password=/*b*/c port=1", "password=******** port=1"),
        ("", "password=--b\nport=1 c", "password=******** c"),
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
        ("authentication_timeout", "60"),
        ("oauth_validator_libraries", "my_validator"),
        ("pg_stat_statements.track", "top"),
        ("passwordcheck.min_password_length", "8"),
        ("auth_delay.milliseconds", "500"),
        ("pgaudit.log_relation", "on"),
        ("timescaledb.max_background_workers", "16"),
        ("citus.node_conninfo_timeout", "5s"),
        ("", "password authentication failed for user"),
        ("", "password_encryption = scram-sha-256 was planned"),
        ("", "SET password_encryption TO 'scram-sha-256'"),
        ("", "ALTER ROLE a PASSWORD NULL"),
        ("", "SELECT bypass /* c */ 'x', design = 'y', 'a significant: z'"),
        ("", "passfile=/home/a/.pgpass"),
        ("log_line_prefix", "%ad=%c "),
        ("", 'PostgreSQL manual, "Connections and Authentication": see there'),
    ],
)
def test_what_is_no_secret_is_left_alone(name: str, value: str) -> None:
    assert redacted(name, value) == value


@pytest.mark.timeout(60)  # what grows with the square of the length takes hours
@pytest.mark.parametrize(
    "part",
    [
        *(
            "password",
            "password/*",
            "/*password/**/",
            "password--",
            "password--\n",
            "password/**/",
            "/*",
            "*/",
        ),
        *(
            "password /*",
            "password=/*",
            "%",
            "%70",
            "%70=",
            "%70 ",
            "pass%77ord=",
            "a://?%70",
            "sig",
            "pass ",
        ),
        *("to ", "password to ", "password to/**/", "token,/*", "--\npassword "),
    ],
)
def test_long_texts_are_read_in_a_moment(part: str) -> None:
    assert redacted("", part * 50_000) is not None
    assert redacted("", "password" + part * 50_000 + "*/ x") is not None
    assert redacted("", part + " " * 300_000 + part) is not None


@pytest.mark.parametrize("major", MAJORS)
def test_of_postgresqls_own_settings_only_commands_are_hidden_whatever_they_hold(major: int) -> None:
    commands = {
        *("archive_command", "archive_cleanup_command", "recovery_end_command", "restore_command"),
        "ssl_passphrase_command",
    }
    hidden = {
        guc.name
        for guc in settings_of(major).values()
        if guc.vartype == "string" and redacted(guc.name, "a plain word") != "a plain word"
    }
    assert hidden == commands


@given(
    password=st.text("abcXYZ019!$%^*()_+-./&?:=", min_size=9).map(lambda text: f"!{text}"),
    host=st.sampled_from(["", "host=db "]),
    tail=st.sampled_from(["", " port=1", " user=app"]),
)
def test_no_unquoted_password_of_a_conninfo_survives(password: str, host: str, tail: str) -> None:
    assert password not in redacted("primary_conninfo", f"{host}password={password}{tail}")
