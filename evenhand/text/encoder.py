"""Texts to vectors: a sentence encoder which never encodes the same text twice (extra `text`).

Any function `list[str] -> array (n, d)` can stand in for it wherever the library wants embeddings.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.counterfactuals.texts import as_texts
from evenhand.text.cache import VectorCache

__all__ = ["SentenceEncoder", "cache_directory", "in_a_folder"]

Vectors = NDArray[np.float32]


class SentenceEncoder:
    """A sentence-transformers model as a function: `embed(texts)` gives an array (n, d) of float32.

    name_or_path: a model name or directory; a plain transformers model is given mean pooling.
    max_length: the longest text in word pieces, None for the model's own limit; what is beyond is not read.
    batch_size: texts in a batch. Batches are sorted by length, so little is padded.
    cache: a directory, None for `cache_directory()`, or False to keep nothing. Vectors are stored by the hash of the
        text, below the hash of the model's weights and settings: a second run encodes nothing and another model
        never sees them. Work is saved every `save_every` texts, each file complete or not there at all, so an
        interrupted run goes on where it stopped. They are mapped, not read: memory holds the keys only.
    cache_bytes: what all vectors in the cache may need on the disk, of all models together; those that have not been
        asked for the longest time go first. None: no limit.
    progress: a bar on a terminal while encoding.

    Texts that are the same to the model (repeated, or equal after the cut at `max_length`, or in their word pieces:
    many versions of a long text are) are encoded once. `encoded` counts what the model really had to read.
    """

    def __init__(
        self,
        name_or_path: str | os.PathLike[str],
        *,
        max_length: int | None = None,
        batch_size: int = 32,
        cache: str | os.PathLike[str] | bool | None = None,
        cache_bytes: int | None = 20 * 2**30,
        save_every: int = 2048,
        progress: bool = True,
        device: str | None = None,
    ) -> None:
        if batch_size < 1 or save_every < 1 or (max_length is not None and max_length < 3):
            raise ValueError(
                f"batch_size and save_every must be at least 1 and max_length at least 3, "
                f"got {batch_size}, {save_every}, {max_length}"
            )
        self.name = str(name_or_path)
        self.path = str(Path(self.name).resolve()) if Path(self.name).is_dir() else None
        self.batch_size = batch_size
        self.save_every = save_every
        self.progress = progress
        self.encoded = 0
        self.device, self.cache, self.cache_bytes = device, cache, cache_bytes
        self._open(max_length)

    def _open(self, max_length: int | None) -> None:
        folder = getattr(self, "path", None)
        if folder is not None and not Path(folder).is_dir():  # a hub must not be asked for what was a folder
            raise FileNotFoundError(f"the folder of the encoder {self.name!r} is gone; open it from where it is now")
        if folder is None and in_a_folder(self.name):
            raise FileNotFoundError(
                f"there is no folder {self.name}; an encoder is the folder or the name of a sentence-transformers model"
            )
        self.model = _load(folder or self.name, self.device)
        own = self.model.max_seq_length
        self.max_length = int(own if max_length is None else max_length if own is None else min(max_length, own))
        dimension = getattr(self.model, "get_embedding_dimension", None) or self.model.get_sentence_embedding_dimension
        self.dimension = int(dimension())
        self.fingerprint = _fingerprint(self.model, self.max_length)
        self._store: VectorCache | None = None
        if self.cache is not False:
            root = cache_directory() if self.cache is None or self.cache is True else Path(self.cache)
            folder = root / "embeddings"
            self._store = VectorCache(folder / self.fingerprint, self.dimension, self.cache_bytes, folder)

    def __getstate__(self) -> dict[str, Any]:
        """A copy or a pickle holds the encoder by reference, name and hash: neither its weights nor its cache."""
        return {name: value for name, value in vars(self).items() if name not in ("model", "_store")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        said = self.fingerprint
        self._open(self.max_length)
        if self.fingerprint != said:
            raise ValueError(
                f"the encoder {self.name!r} is not the one that was saved: its weights, vocabulary or cut differ "
                f"(hash {self.fingerprint} instead of {said}); install the version the model was trained with"
            )

    def __repr__(self) -> str:
        return f"SentenceEncoder({self.name!r}, max_length={self.max_length}, dimension={self.dimension})"

    def __call__(self, texts: Iterable[str]) -> Vectors:
        """The vectors of the texts: (n, d)."""
        listed = as_texts(texts)
        keys = [_key(text, i) for i, text in enumerate(listed)]
        if self._store is None:
            out, there = np.empty((len(listed), self.dimension), dtype=np.float32), np.zeros(len(listed), dtype=bool)
        else:
            out, there = self._store.read(keys)
        missing = {key: listed[i] for i, key in enumerate(keys) if not there[i]}
        rows: dict[bytes, list[int]] = {key: [] for key in missing}
        for i in np.flatnonzero(~there):
            rows[keys[i]].append(int(i))
        for some in self._encode(missing):
            for key, vector in some.items():
                out[rows[key]] = vector
            if self._store is not None:
                self._store.add(some)
        return out

    def _encode(self, missing: dict[bytes, str]) -> Iterator[dict[bytes, Vectors]]:
        """The vectors of the texts by their key, a few thousand at a time."""
        if not missing:
            return
        import torch
        from tqdm.auto import tqdm  # type: ignore[import-untyped]

        same: dict[tuple[int, ...], list[bytes]] = {}
        for key, ids in zip(missing, self._word_pieces(list(missing.values()))):
            same.setdefault(ids, []).append(key)
        # Long first: the largest batch comes first, so that too large a batch_size fails at once.
        order = sorted(same, key=len, reverse=True)
        was_training = self.model.training
        self.model.eval()
        bar = tqdm(total=len(order), unit="text", disable=None if self.progress else True, file=sys.stderr)
        try:
            with torch.inference_mode():
                some: dict[bytes, Vectors] = {}
                for start in range(0, len(order), self.batch_size):
                    batch = order[start : start + self.batch_size]
                    vectors = self._forward(batch)
                    for ids, vector in zip(batch, vectors):
                        some |= dict.fromkeys(same[ids], vector)
                    self.encoded += len(batch)
                    bar.update(len(batch))
                    if len(some) >= self.save_every:
                        yield some
                        some = {}
                yield some
        finally:
            bar.close()
            self.model.train(was_training)

    def _word_pieces(self, texts: list[str]) -> list[tuple[int, ...]]:
        out: list[tuple[int, ...]] = []
        for start in range(0, len(texts), 1024):  # a slice at a time: the encodings of 60,000 texts need much memory
            pieces = self.model.tokenizer(
                texts[start : start + 1024], truncation=True, max_length=self.max_length, return_attention_mask=False
            )
            out.extend(map(tuple, pieces["input_ids"]))
        return out

    def _forward(self, batch: list[tuple[int, ...]]) -> Vectors:
        features = self.model.tokenizer.pad({"input_ids": [list(ids) for ids in batch]}, return_tensors="pt")
        features = {name: tensor.to(self.model.device) for name, tensor in features.items()}
        vectors: Vectors = self.model(features)["sentence_embedding"].float().cpu().numpy()
        return vectors


def cache_directory() -> Path:
    """Where vectors are kept: $EVENHAND_CACHE, else evenhand in $XDG_CACHE_HOME, else ~/.cache/evenhand."""
    if os.environ.get("EVENHAND_CACHE"):
        return Path(os.environ["EVENHAND_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenhand"


def in_a_folder(name: str) -> bool:
    """Whether a name can only be that of a folder; models of a hub are called so/and/so."""
    return Path(name).is_absolute() or name.startswith((".", "~")) or "\\" in name


def _key(text: str, position: int) -> bytes:
    try:
        return hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()
    except UnicodeEncodeError as error:
        raise ValueError(f"text {position} is not valid unicode ({error.reason}); clean it before encoding") from error


def _load(name: str, device: str | None) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError("SentenceEncoder needs sentence-transformers: pip install evenhand[text]") from error
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # it counts the weights, which takes no time
    try:
        return SentenceTransformer(name, device=device)
    finally:
        if shown:
            bars.enable_progress_bar()


def _fingerprint(model: Any, max_length: int) -> str:
    """A hash of everything a vector depends on: the modules, the weights, the vocabulary and the cut."""
    hashed = hashlib.sha256(f"{max_length} {[str(module) for module in model]}".encode())
    for name, tensor in sorted(model.state_dict().items()):
        hashed.update(name.encode())
        hashed.update(np.ascontiguousarray(tensor.detach().cpu().float().numpy()).data)
    hashed.update(str(sorted(model.tokenizer.get_vocab().items())).encode())
    return hashed.hexdigest()[:16]
