"""Classifiers of texts that do not care who a text is about, and the sentence encoder behind them."""

from evenhand.text.classifier import TextClassifier
from evenhand.text.encoder import SentenceEncoder, cache_directory
from evenhand.text.features import TextFeatures, without_blind
from evenhand.text.files import load_text, save_text

__all__ = [
    "SentenceEncoder",
    "TextClassifier",
    "TextFeatures",
    "cache_directory",
    "load_text",
    "save_text",
    "without_blind",
]
