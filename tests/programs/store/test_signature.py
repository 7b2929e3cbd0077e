"""Signed bundles: what is checked is that the checksums are those that the owner of a key has signed."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests.golden.synthetic import experiment

from pgdyno.base.errors import StorageError
from pgdyno.cli.main import main
from pgdyno.results.bundle import export_bundle
from pgdyno.store.bundle import SIGNATURE, check_bundle, pack_bundle
from pgdyno.store.documents import dump_experiment
from pgdyno.store.signature import sign

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")

FILES = {"experiment.json": json.dumps(dump_experiment(experiment())).encode(), "README.txt": b"read me\n"}


@dataclass(frozen=True)
class Key:
    """A private key with its fingerprint as another call of the program shows it."""

    file: Path
    fingerprint: str

    @property
    def public(self) -> str:
        return self.file.with_suffix(".pub").read_text(encoding="utf-8").strip()

    @property
    def name(self) -> str:
        return f"ED25519 {self.fingerprint}"


def new_key(file: Path) -> Key:
    keygen = partial(subprocess.run, check=True, capture_output=True, text=True)
    keygen(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(file)])
    shown = keygen(["ssh-keygen", "-l", "-f", f"{file}.pub"]).stdout
    return Key(file, shown.split()[1])


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    return new_key(tmp_path_factory.mktemp("key") / "key")


@pytest.fixture
def bundle(tmp_path: Path, key: Key) -> Path:
    path = tmp_path / "bundle.zip"
    path.write_bytes(pack_bundle("pgdyno-x", FILES, partial(sign, key=key.file)))
    return path


def signers(tmp_path: Path, line: str) -> Path:
    path = tmp_path / "signers"
    path.write_text(line + "\n", encoding="utf-8")
    return path


def with_members(path: Path, changes: dict[str, bytes | None]) -> Path:
    """Repack a bundle with members replaced, or left out where the content is None."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members |= {f"pgdyno-x/{name}": content or b"" for name, content in changes.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if changes.get(name.partition("/")[2], b"") is not None:
                archive.writestr(name, content)
    return path


def test_a_signed_bundle_names_the_key_and_with_signers_its_owner(
    bundle: Path, key: Key, tmp_path: Path
) -> None:
    found = check_bundle(bundle)
    assert (found.problems, found.experiment) == ((), experiment())
    assert found.signature is not None
    assert (found.signature.key, found.signature.signer) == (key.name, None)
    for line in (f"ann@example.org {key.public}", f"ann@example.org,bob@example.org {key.public}"):
        known = check_bundle(bundle, signers(tmp_path, line))
        assert known.problems == ()
        assert known.signature is not None
        assert (known.signature.key, known.signature.signer) == (key.name, "ann@example.org")


def test_the_signature_can_be_checked_without_pgdyno(bundle: Path, key: Key, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
    place = tmp_path / "pgdyno-x"
    allowed = signers(tmp_path, f"ann@example.org {key.public}")
    done = subprocess.run(
        [
            *("ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", "ann@example.org"),
            *("-n", "pgdyno-bundle", "-s", str(place / SIGNATURE)),
        ],
        input=(place / "SHA256SUMS").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert b'Good "pgdyno-bundle" signature for ann@example.org' in done.stdout


def test_checksums_that_somebody_else_wrote_do_not_match(bundle: Path, tmp_path: Path) -> None:
    """The forger repacks the bundle with right checksums, and keeps the signature of the old ones."""
    forged = tmp_path / "forged.zip"
    other = {**FILES, "README.txt": b"buy me\n"}
    with zipfile.ZipFile(bundle) as archive:
        kept = archive.read(f"pgdyno-x/{SIGNATURE}")
    forged.write_bytes(pack_bundle("pgdyno-x", other, lambda _: kept))
    found = check_bundle(forged)
    assert found.signature is None
    (problem,) = found.problems
    assert problem.startswith("the signature does not match: ")


@pytest.mark.parametrize("content", [b"", b"-----BEGIN SSH SIGNATURE-----\n", b"\xff\x00"])
def test_what_is_no_signature_does_not_match(bundle: Path, content: bytes) -> None:
    (problem,) = check_bundle(with_members(bundle, {SIGNATURE: content})).problems
    assert problem.startswith("the signature does not match: ")


def test_a_signature_for_something_else_is_none_for_a_bundle(tmp_path: Path, key: Key) -> None:
    def as_for_git(content: bytes) -> bytes:
        return subprocess.run(
            ["ssh-keygen", "-Y", "sign", "-f", str(key.file), "-n", "git"],
            input=content,
            capture_output=True,
            check=True,
        ).stdout

    path = tmp_path / "b.zip"
    path.write_bytes(pack_bundle("pgdyno-x", FILES, as_for_git))
    (problem,) = check_bundle(path).problems
    assert problem.startswith("the signature does not match: ")


def test_with_signers_named_others_do_not_count(bundle: Path, key: Key, tmp_path: Path) -> None:
    other = new_key(tmp_path / "other")
    allowed = signers(tmp_path, f"bob@example.org {other.public}")
    assert check_bundle(bundle, allowed).problems == (
        f'it was signed with {key.name}, which belongs to none of the signers in "{allowed}"',
    )
    unsigned = with_members(bundle, {SIGNATURE: None})
    assert check_bundle(unsigned).problems == ()
    assert check_bundle(unsigned, allowed).problems == ("it is not signed",)


def test_a_key_that_may_not_sign_bundles_does_not_count(bundle: Path, key: Key, tmp_path: Path) -> None:
    allowed = signers(tmp_path, f'ann@example.org namespaces="git" {key.public}')
    (problem,) = check_bundle(bundle, allowed).problems
    assert problem.startswith(
        f"it was signed with {key.name} of ann@example.org, which is not valid: Could not verify signature"
    )


def test_a_key_that_is_none_is_named(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("no key\n", encoding="utf-8")
    with pytest.raises(StorageError) as caught:
        export_bundle(experiment(), tmp_path / "b.zip", key=key)
    assert str(caught.value).splitlines()[0] == f'could not sign with the key "{key}"'
    assert str(caught.value).endswith("HINT:  a key is made by: ssh-keygen -t ed25519 -f FILE")
    assert not (tmp_path / "b.zip").exists()


def test_without_ssh_keygen_the_error_says_what_to_install(
    bundle: Path, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for attempt in (lambda: check_bundle(bundle), lambda: sign(b"x", key.file)):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert str(caught.value) == (
            "signatures are made and checked by ssh-keygen, which is not installed\n"
            "HINT:  install OpenSSH's client (apt install openssh-client)"
        )


def test_the_commands_sign_and_verify(
    tmp_path: Path, key: Key, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))
    source, path = tmp_path / "source.zip", tmp_path / "signed.zip"
    main(["bundle", "import", str(export_bundle(experiment(), source))])
    main(["bundle", "export", experiment().id, "--sign", str(key.file), "--output", str(path)])
    capsys.readouterr()
    main(["bundle", "verify", str(path)])
    main(["bundle", "verify", str(path), "--signers", str(signers(tmp_path, f"ann {key.public}"))])
    assert capsys.readouterr().out == (
        f"{path}: all checksums and the schema are correct\n"
        f"{path}: signed by a key with unknown owner (see --signers), {key.name}\n"
        f"{path}: all checksums and the schema are correct\n"
        f"{path}: signed by ann, {key.name}\n"
    )
    with zipfile.ZipFile(path) as archive:
        readme = archive.read(f"pgdyno-{experiment().id}/README.txt").decode()
    assert "SHA256SUMS.sig           signature of SHA256SUMS\n" in readme
    with pytest.raises(SystemExit) as caught:
        main(["bundle", "verify", str(source), "--signers", str(tmp_path / "signers"), "--json"])
    assert caught.value.code == 1
    assert json.loads(capsys.readouterr().out)["verification"]["problems"] == ["it is not signed"]
