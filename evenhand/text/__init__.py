"""From texts to vectors: the sentence encoder and its cache."""

from evenhand.text.encoder import SentenceEncoder, cache_directory

__all__ = ["SentenceEncoder", "cache_directory"]
