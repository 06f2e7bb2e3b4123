import os
import subprocess
import sys

import numpy as np
import pytest

from evenhand.text.cache import MERGED, VectorCache, _mapped


def some(start, n=4, d=3):
    rng = np.random.default_rng(start)
    return {f"{start + i:016d}".encode(): rng.normal(size=d).astype(np.float32) for i in range(n)}


def test_what_was_added_is_read_back_in_any_order_by_anybody(tmp_path):
    first, second = some(0), some(100)
    cache = VectorCache(tmp_path, 3)
    cache.add(first)
    cache.add(second)
    for reader in (cache, VectorCache(tmp_path, 3)):
        keys = [*second, b"x" * 16, *first]
        vectors, there = reader.read(keys)
        assert there.tolist() == [True] * 4 + [False] + [True] * 4
        np.testing.assert_array_equal(vectors[there], np.stack([*second.values(), *first.values()]))
        assert len(reader) == 8


def test_vectors_are_mapped_while_they_are_asked_for_and_not_held(tmp_path):
    VectorCache(tmp_path, 3).add(some(0))
    reader = VectorCache(tmp_path, 3)
    (path,) = reader._parts
    assert isinstance(_mapped(path), np.memmap)
    assert not any(isinstance(held, np.memmap) for part in reader._parts.values() for held in part)


MANY = """
import os, resource, sys, warnings
from pathlib import Path
import numpy as np
from evenhand.text.cache import VectorCache
warnings.simplefilter("error")
os.fsync = lambda file: None  # which takes most of the time and is not what is looked at
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
cache = VectorCache(Path(sys.argv[1]), 3)
for i in range(2000):
    cache.add({f"{i:016d}".encode(): np.full(3, i, dtype=np.float32)})
    assert cache.read([f"{i:016d}".encode()])[1].all()
for reader in (cache, VectorCache(Path(sys.argv[1]), 3)):
    vectors, there = reader.read([f"{i:016d}".encode() for i in range(2000)])
    assert there.all() and (vectors[:, 0] == np.arange(2000)).all() and len(reader) == 2000
print(len(os.listdir(sys.argv[1])), len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0)
"""


def test_thousands_of_single_texts_leave_few_files_and_none_open(tmp_path, monkeypatch):
    pytest.importorskip("resource")
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    done = subprocess.run([sys.executable, "-c", MANY, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files, descriptors = map(int, done.stdout.split())
    assert files <= 2 * 32
    assert descriptors < 20


def test_what_another_process_has_merged_is_found(tmp_path, recwarn):
    writer = VectorCache(tmp_path, 3)
    for i in range(MERGED - 1):
        writer.add(some(100 * i))
    reader = VectorCache(tmp_path, 3)
    writer.add(some(100 * (MERGED - 1)))
    assert len(list(tmp_path.glob("*.keys"))) == 1
    wanted = [key for i in range(MERGED - 1) for key in some(100 * i)]
    assert reader.read(wanted)[1].all()
    late = VectorCache(tmp_path, 3)  # two who merge the same parts, or parts that are gone
    for i in range(2 * MERGED, 3 * MERGED):
        writer.add(some(100 * i))
        late.add(some(10_000 + 100 * i))
    everything = [key for i in [*range(MERGED), *range(2 * MERGED, 3 * MERGED)] for key in some(100 * i)]
    assert VectorCache(tmp_path, 3).read(everything)[1].all()
    assert not recwarn.list


def test_a_merge_that_was_killed_loses_nothing(tmp_path, monkeypatch):
    writer = VectorCache(tmp_path, 3)
    for i in range(MERGED - 1):
        writer.add(some(100 * i))

    def killed(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("evenhand.text.cache._remove", killed)
    with pytest.raises(KeyboardInterrupt):
        writer.add(some(100 * (MERGED - 1)))
    monkeypatch.undo()
    again = VectorCache(tmp_path, 3)
    assert again.read([key for i in range(MERGED) for key in some(100 * i)])[1].all()
    again.add(some(5000))
    assert len(again) == 4 * (MERGED + 1)


def test_damage_does_not_survive_a_merge(tmp_path):
    writer = VectorCache(tmp_path, 3)
    writer.add(some(0))
    (file,) = tmp_path.glob("*.npy")
    content = bytearray(file.read_bytes())
    content[-2] ^= 0x40
    file.write_bytes(bytes(content))
    for i in range(1, MERGED):
        writer.add(some(100 * i))
    assert VectorCache(tmp_path, 3).read(list(some(0)))[1].tolist() == [True, True, True, False]


def test_what_cannot_be_opened_is_not_called_damaged(tmp_path, monkeypatch):
    VectorCache(tmp_path, 3).add(some(0))

    def too_many(path):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("evenhand.text.cache._mapped", too_many)
    with pytest.warns(UserWarning, match=r"cannot be opened \(Too many open files\)"):
        VectorCache(tmp_path, 3)


def test_a_changed_vector_is_not_believed(tmp_path):
    VectorCache(tmp_path, 3).add(some(0))
    (file,) = tmp_path.glob("*.npy")
    content = bytearray(file.read_bytes())
    content[-2] ^= 0x40  # one bit of the last vector
    file.write_bytes(bytes(content))
    with pytest.warns(UserWarning, match="damaged"):
        _, there = VectorCache(tmp_path, 3).read(list(some(0)))
    assert there.tolist() == [True, True, True, False]


@pytest.mark.parametrize("kind", ["*.keys", "*.npy"])
def test_half_a_file_is_not_read(tmp_path, kind):
    VectorCache(tmp_path, 3).add(some(0))
    (file,) = tmp_path.glob(kind)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.warns(UserWarning, match="damaged"):
        assert len(VectorCache(tmp_path, 3)) == 0


def test_vectors_without_their_keys_are_nothing(tmp_path):
    VectorCache(tmp_path, 3).add(some(0))
    next(tmp_path.glob("*.keys")).unlink()
    assert len(VectorCache(tmp_path, 3)) == 0


def test_those_not_asked_for_the_longest_time_go_first(tmp_path):
    one, other = VectorCache(tmp_path / "a", 3, root=tmp_path), VectorCache(tmp_path / "b", 3, root=tmp_path)
    one.add(some(0))
    one.add(some(10))
    other.add(some(20))
    files = dict(zip((0, 10, 20), [*one._parts, *other._parts]))
    for age, start in enumerate((10, 0, 20)):  # 10 is the oldest
        os.utime(files[start], ns=(age * 10**9, age * 10**9))
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.*")) // 3
    small = VectorCache(tmp_path / "a", 3, limit=int(3.5 * size), root=tmp_path)
    small.read(list(some(0))[:1])  # asked for: now the newest
    small.add(some(30))
    left = VectorCache(tmp_path / "a", 3)
    assert left.read(list(some(10)))[1].sum() == 0
    assert left.read(list(some(0)))[1].all()
    assert left.read(list(some(30)))[1].all()
    assert VectorCache(tmp_path / "b", 3).read(list(some(20)))[1].all()


def test_the_newest_part_stays_whatever_the_limit(tmp_path):
    cache = VectorCache(tmp_path, 3, limit=1)
    cache.add(some(0))
    assert cache.read(list(some(0)))[1].all()
