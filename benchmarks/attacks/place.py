"""Where the attack is: its folder, its PostgreSQL, its servers, and how often it tries."""

import secrets
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from benchmarks.attacks.acknowledged import Log
from continuarm.cli.progress import Progress
from tests import postgresql

__all__ = ["STORES", "Place"]

STORES = ("SQLite", "PostgreSQL")


class Place:
    """What the parts of an attack share.

    folder : for logs of answers and results, which stay; stores are gone afterwards.
    database : a PostgreSQL to use; else one is started when it is needed.
    """

    def __init__(
        self, folder: Path, *, quick: bool, database: postgresql.Server | None = None
    ) -> None:
        self.folder, self.quick = folder, quick
        self._stack = ExitStack()
        self.stores = Path(tempfile.mkdtemp(prefix="stores-", dir=folder))
        self._stack.callback(shutil.rmtree, self.stores, True)
        self._database = database

    def often(self, usually: int, quickly: int) -> int:
        """How often something is tried."""
        return quickly if self.quick else usually

    @property
    def database(self) -> postgresql.Server:
        """A PostgreSQL."""
        if self._database is None:
            self._database = self._stack.enter_context(postgresql.Server())
        return self._database

    def fresh(self, kind: str) -> str:
        """The address of a new store."""
        name = f"shop-{secrets.token_hex(8)}"
        return str(self.stores / f"{name}.db") if kind == "SQLite" else self.database.fresh(name)

    def log(self, name: str) -> Log:
        """A new log of answers."""
        path = self.folder / f"{name.replace(' ', '-')}.acknowledged"
        path.unlink(missing_ok=True)
        return Log(path)

    @staticmethod
    def progress(label: str, length: int) -> Progress:
        """A bar on standard error, where that is a terminal; `with` gives what moves it."""
        return Progress(label, length, hidden=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
