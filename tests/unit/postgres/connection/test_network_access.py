"""Login rules of servers that listen on the network."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pgdyno.base.errors import RefusedError
from pgdyno.postgres.connection.network_access import entrance, login_rules


def test_each_load_host_is_let_in_by_its_address_and_the_password(tmp_path: Path) -> None:
    addresses = ["10.0.0.2", "fd00::3", "10.0.0.2"]  # two behind one address
    found = entrance(tmp_path, "10.0.0.1", addresses, "bench")
    assert found.rules.read_text() == (
        "local all all trust\n"
        "host bench pgdyno_load 10.0.0.2/32 scram-sha-256\n"
        "host bench pgdyno_load fd00::3/128 scram-sha-256\n"
    )
    assert stat.S_IMODE(found.rules.stat().st_mode) == 0o644
    assert found.settings() == {"listen_addresses": "10.0.0.1", "hba_file": str(found.rules)}
    assert found.password not in found.rules.read_text()
    assert len(found.password) > 30


def test_methods_are_appended_to_what_lets_everybody_in(tmp_path: Path) -> None:
    with login_rules(tmp_path) as rules:
        assert rules.path.read_text() == "local all all trust\n"
        rules.append({"scram-sha-256", "md5"})
        assert rules.path.read_text() == (
            "local all all trust\nhost all all 127.0.0.1/32 md5\nhost all all 127.0.0.1/32 scram-sha-256\n"
        )
    assert stat.S_IMODE((tmp_path / "pg_hba.conf").stat().st_mode) == 0o644


def test_what_is_put_in_its_place_gets_nothing(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("root's\n")
    with login_rules(tmp_path) as rules:
        rules.path.unlink()
        rules.path.symlink_to("victim")
        rules.append({"md5"})
    assert (tmp_path / "victim").read_text() == "root's\n"


def test_a_link_that_is_there_already_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "pg_hba.conf").symlink_to("victim")
    with pytest.raises(FileExistsError), login_rules(tmp_path):
        pass
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        pytest.param("trust\nevil::0:0::/root:/bin/sh", r"'trust\nevil::0:0::/root:/bin/sh'", id="line"),
        pytest.param("\x1b]0;x\x07", r"'\x1b]0;x\x07'", id="escape"),
        pytest.param("mdé", r"'md\xe9'", id="letter"),
        pytest.param("", "''", id="nothing"),
        pytest.param("a b" * 1000, "'" + ("a b" * 14)[:40] + "'", id="long"),
    ],
)
def test_what_is_no_name_of_a_method_is_not_written(tmp_path: Path, method: str, shown: str) -> None:
    with login_rules(tmp_path) as rules:
        with pytest.raises(RefusedError) as caught:
            rules.append(["md5", method])
        assert rules.path.read_text() == "local all all trust\n"
    assert caught.value.message == f"the server reports an invalid authentication method: {shown}"
    assert caught.value.detail == "method names consist of lower-case letters, digits and hyphens"
    assert caught.value.hint == "nothing was changed; see SELECT auth_method FROM pg_hba_file_rules"
