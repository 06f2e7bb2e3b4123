import errno
import os
import threading

import pytest

from evenhand.atomic import previous, whole_file, write_whole


def test_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "a"
    write_whole(path, b"old")

    def stopped():
        with whole_file(path) as file:
            file.write(b"half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["a"]


def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    write_whole(path, b"old")
    synced = os.fsync

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    monkeypatch.setattr(os, "fsync", synced)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_the_bytes_are_on_the_disk_before_the_name(tmp_path, monkeypatch):
    path, seen = tmp_path / "a", []
    synced = os.fsync

    def watch(handle):
        seen.append(path.exists())
        synced(handle)

    monkeypatch.setattr(os, "fsync", watch)
    write_whole(path, b"1")
    assert seen == [False, True]  # the file, then its folder


def test_two_writers_do_not_mix(tmp_path):
    path = tmp_path / "a"

    def write(letter):
        for _ in range(20):
            with whole_file(path) as file:
                for _ in range(50):
                    file.write(letter * 100)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in (b"a" * 5000, b"b" * 5000)
    assert os.listdir(tmp_path) == ["a"]


def test_the_file_before_is_kept_on_request(tmp_path):
    path = tmp_path / "a"
    for data in (b"1", b"2", b"3"):
        with whole_file(path, keep_previous=True) as file:
            file.write(data)
    assert (path.read_bytes(), previous(path).read_bytes()) == (b"3", b"2")


def test_permissions_are_those_of_any_file(tmp_path):
    write_whole(tmp_path / "a", b"")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
