"""A file of SQLite that could be opened by another name, beside which there is no log."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from continuarm.errors import StoreError
from continuarm.store import Entry, open_store, sqlite_names
from continuarm.store.sqlite import SqliteDatabase


def test_a_second_name_of_a_store_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    first, second = tmp_path / "shop.db", tmp_path / "other" / "link.db"
    second.parent.mkdir()
    with closing(open_store(first)) as store:
        store.create("prices", "")
        os.link(first, second)
        for name in (first, second):
            with pytest.raises(StoreError, match=r"must have one name, but .* has 2") as caught:
                open_store(name)
            assert "\n" not in str(caught.value)
        assert not list(second.parent.glob("*-wal"))
        assert store.append("prices", [Entry("asked", "{}", opens="1")]).head == 1
    second.unlink()
    with closing(open_store(first)) as store:
        assert store.append("prices", [Entry("asked", "{}", opens="2")]).head == 2


def test_a_file_that_is_mounted_alone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, mounts = tmp_path / "the shop.db", tmp_path / "mountinfo"
    SqliteDatabase(file).close()
    line = f"36 35 98:0 /x {str(file).replace(' ', chr(92) + '040')} rw,noatime - ext4 /dev/x rw\n"
    monkeypatch.setattr(sqlite_names, "MOUNTS", mounts)
    SqliteDatabase(file).close()  # a system without such a list
    mounts.write_text("35 1 98:0 / / rw - ext4 /dev/x rw\n" + line)
    with pytest.raises(StoreError, match="the folder of a store must be mounted"):
        SqliteDatabase(file)


def test_a_folder_is_not_said_to_have_two_names(tmp_path: Path) -> None:
    folder = tmp_path / "shop.db"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(StoreError) as caught:
        open_store(folder)
    assert "one name" not in str(caught.value)


def test_the_system_lists_what_is_mounted() -> None:
    assert not sqlite_names.MOUNTS.exists() or "/" in sqlite_names.mounted()
