import os

import numpy as np
import pytest

from evenhand.text.cache import VectorCache


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


def test_vectors_are_mapped_and_not_held(tmp_path):
    VectorCache(tmp_path, 3).add(some(0))
    reader = VectorCache(tmp_path, 3)
    assert all(isinstance(vectors, np.memmap) for _, vectors, _ in reader._parts)


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
    files = {
        start: next(path for path, *_ in (one._parts + other._parts)[i : i + 1]) for i, start in enumerate((0, 10, 20))
    }
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
