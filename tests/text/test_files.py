import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from evenhand.counterfactuals import GenderSwap, TokenSwap, identity_categories
from evenhand.datasets import templates
from evenhand.text import TextClassifier, load_text, save_text
from evenhand.text.averaged import mean_network
from evenhand.text.files import describe_swaps, read_swaps, text_model_file

COMMENTS = templates(120, seed=0)
TOKENS = list(COMMENTS.groups.columns)


class Small:
    """An encoder with what a file needs to know of one."""

    name, max_length, fingerprint = "small", 16, "abc"

    def __call__(self, texts):
        rng = {text: np.random.default_rng(abs(hash(text)) % 2**32) for text in texts}
        return np.stack([rng[text].normal(size=12) for text in texts]).astype(np.float32)


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr("evenhand.text.files.SentenceEncoder", Small)
    swaps = TokenSwap(TOKENS, sample=2)
    return TextClassifier(Small(), swaps, hidden=(6, 4), steps=10, k=3, rho=1.0).fit(COMMENTS.texts, COMMENTS.y)


def test_a_saved_model_predicts_the_same_and_the_file_holds_no_cache(model, tmp_path):
    path = tmp_path / "model.text"
    save_text(model, path, {"note": "x"})
    again = load_text(path, Small())
    assert (again.predict_proba(COMMENTS.texts) == model.predict_proba(COMMENTS.texts)).all()
    assert (again.predict(COMMENTS.texts) == model.predict(COMMENTS.texts)).all()
    assert again.metadata_ == {"note": "x"}
    assert again.swaps(COMMENTS.texts).values.tolist() == model.swaps(COMMENTS.texts).values.tolist()
    assert path.stat().st_size < 20_000
    assert text_model_file(path)


def test_a_saved_model_reads_alike_as_it_did_and_an_older_file_does_not(model, tmp_path):
    path = tmp_path / "model.text"
    save_text(model, path)
    texts = ["My gay friend sings.", "My deaf friend sings."]
    mine = TokenSwap(TOKENS)([COMMENTS.texts[i] for i in range(40)]).values[0].tolist()
    again = load_text(path, Small())
    assert again.read_alike is None
    assert (again.predict_proba(texts + mine) == model.predict_proba(texts + mine)).all()
    assert np.ptp(again.predict_proba(mine), axis=0).max() < 1e-7  # rounding of the means in float32
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    about = json.loads(str(arrays["about"]))
    del about["parameters"]["read_alike"], about["fitted"]["alike"]
    np.savez(tmp_path / "older.npz", **(arrays | {"about": np.array(json.dumps(about))}))
    older = load_text(tmp_path / "older.npz", Small())
    assert older.read_alike is False
    assert np.ptp(older.predict_proba(mine), axis=0).max() > 1e-5


def test_a_way_of_reading_that_a_file_cannot_hold_is_refused(monkeypatch, tmp_path):
    class Own:
        def __init__(self):
            self.swap = TokenSwap(TOKENS, sample=2)

        def __call__(self, texts):
            return self.swap(texts)

        def alike(self, texts):
            return self.swap.alike(texts)

    monkeypatch.setattr("evenhand.text.files.SentenceEncoder", Small)
    options = {"hidden": (3,), "steps": 2, "k": 2, "rho": 1.0}
    model = TextClassifier(Small(), Own(), read_alike=True, **options).fit(COMMENTS.texts, COMMENTS.y)
    with pytest.raises(TypeError, match=r"method `alike` of a Own.*read_alike=False"):
        save_text(model, tmp_path / "x")
    model = TextClassifier(Small(), Own(), read_alike=False, **options).fit(COMMENTS.texts, COMMENTS.y)
    save_text(model, tmp_path / "x")
    assert load_text(tmp_path / "x", Small()).swaps is None


def test_the_mean_of_several_networks_is_saved_as_the_one_it_is(model, tmp_path):
    other = TextClassifier(Small(), model.swaps, hidden=(6, 4), steps=10, k=3, rho=1.0, random_state=1)
    both = [model.net_.module_, other.fit(COMMENTS.texts, COMMENTS.y).net_.module_]
    alone = model.predict_proba(COMMENTS.texts)
    model.net_.module_ = mean_network(both)
    save_text(model, tmp_path / "mean.text")
    again = load_text(tmp_path / "mean.text", Small())
    assert (again.predict_proba(COMMENTS.texts) == model.predict_proba(COMMENTS.texts)).all()
    assert np.abs(again.predict_proba(COMMENTS.texts) - alone).max() > 1e-6
    assert [len(again.net_.module_[i].weight) for i in (0, 2, 4)] == [12, 8, 2]


def test_another_encoder_is_refused(model, tmp_path):
    path = tmp_path / "model.text"
    save_text(model, path)
    other = Small()
    other.fingerprint = "other"
    with pytest.raises(ValueError, match="their hashes differ"):
        load_text(path, other)


def test_an_encoder_without_a_name_is_refused(tmp_path):
    model = TextClassifier(Small(), None, "plain", hidden=(3,), steps=2).fit(COMMENTS.texts, COMMENTS.y)
    with pytest.raises(TypeError, match="cannot be saved by name"):
        save_text(model, tmp_path / "x")


def test_other_files_are_no_text_models(tmp_path):
    path = tmp_path / "other.npz"
    path.write_bytes(b"nothing")
    assert not text_model_file(path)
    np.savez(path, about=np.array(json.dumps({"format": "later"})))
    assert not text_model_file(path)
    with pytest.raises(ValueError, match="not a text model"):
        load_text(path, Small())


def test_a_table_and_half_a_file_are_said_to_be_no_text_model(model, tmp_path):
    """Numpy would propose to unpickle the first, and a zip file without its end is an error of another kind."""
    whole = tmp_path / "model.text"
    save_text(model, whole)
    contents = {"table": b"text,toxic\na,1\n", "half": whole.read_bytes()[:3000], "empty": b""}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert not text_model_file(tmp_path / name)
        with pytest.raises(ValueError, match=rf"{name} is not a text model .* or not a whole one; give a file that"):
            load_text(tmp_path / name, Small())
    np.save(tmp_path / "one.npy", np.zeros(3))
    assert not text_model_file(tmp_path / "one.npy")


def test_parameters_that_are_numbers_of_numpy_are_saved(model, tmp_path):
    """As a search over np.arange gives them."""
    model.set_params(k=np.int64(3), steps=np.int64(10), eps=np.float32(0.5), hidden=(np.int64(6), 4))
    save_text(model, tmp_path / "model.text")
    again = load_text(tmp_path / "model.text", Small()).get_params()
    assert {name: again[name] for name in ("k", "steps", "eps")} == {"k": 3, "steps": 10, "eps": 0.5}
    assert again["hidden"] == (6, 4)


def test_what_a_file_cannot_hold_is_refused_and_nothing_is_written(model, tmp_path):
    with pytest.raises(TypeError, match=r"cannot hold a RandomState; use labels .* or pickle the model"):
        save_text(model.set_params(random_state=np.random.RandomState(0)), tmp_path / "x")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        save_text(TextClassifier(Small()), tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "swaps",
    [
        TokenSwap(["gay", "straight"], sample=1, passage=9, insults=True),
        TokenSwap(identity_categories(), neutral=True),
        GenderSwap(nouns=True, names=(["John"], ["Anna"])),
        GenderSwap(),
    ],
)
def test_swaps_come_back_as_they_were(swaps):
    again = read_swaps(json.loads(json.dumps(describe_swaps(swaps))))
    texts = ["John is an old man, a gay friend.", "She is a Muslim woman"]
    assert again(texts).values.tolist() == swaps(texts).values.tolist()
    assert repr(again) == repr(swaps)


def test_pickles_of_swaps():
    swaps = TokenSwap(["gay", "straight"])
    assert pickle.loads(pickle.dumps(swaps))(["a gay man"]).values.tolist() == swaps(["a gay man"]).values.tolist()


def test_a_model_of_a_text_beside_columns_is_one_file_too(monkeypatch, tmp_path):
    monkeypatch.setattr("evenhand.text.files.SentenceEncoder", Small)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"says": COMMENTS.texts, "age": rng.normal(size=120), "kind": rng.choice(["a", "b", None], 120)}
    )
    sex = np.where(table["age"] + 0.3 * rng.normal(size=120) > 0, "f", "m")
    options = {"hidden": (6,), "steps": 10, "k": 3, "rho": 1.0, "text": "says"}
    model = TextClassifier(Small(), TokenSwap(TOKENS, sample=2), **options).fit(table, COMMENTS.y, {"sex": sex})
    assert [one.name for one in model.levels_] == ["sex"]
    save_text(model, tmp_path / "model.text")
    again = load_text(tmp_path / "model.text", Small())
    odd = table.assign(kind="new", age=np.where(np.arange(120) % 3 == 0, np.nan, 1e9))
    odd.loc[3, "says"] = None
    for rows in (table, odd):
        assert (again.predict_proba(rows) == model.predict_proba(rows)).all()
    x = model.features_.scaled(model.features_.vectors(table))
    assert (again.levels_[0].versions(x).values == model.levels_[0].versions(x).values).all()
    assert (again.levels_[0].groups, again.text) == (model.levels_[0].groups, "says")
    assert again.get_params()["shrink"] == model.shrink


class Folder(Small):
    """An encoder in a folder, whose hash is what the folder holds."""

    def __init__(self, name, max_length=None, progress=True):
        self.name, self.path = str(name), str(Path(name).resolve())
        self.fingerprint = (Path(name) / "weights").read_text()


@pytest.fixture
def in_a_folder(model, tmp_path, monkeypatch):
    """A model whose encoder was opened as a relative folder, and where its file is."""
    monkeypatch.setattr("evenhand.text.files.SentenceEncoder", Folder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "encA").mkdir()
    (tmp_path / "encA" / "weights").write_text("abc")
    model.features_.encoder_ = Folder("encA")
    (tmp_path / "models").mkdir()
    save_text(model, tmp_path / "models" / "m.text")
    return tmp_path / "models" / "m.text"


def test_an_encoder_of_a_folder_is_found_from_anywhere_and_beside_the_file(in_a_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "models")
    assert load_text(in_a_folder).predict(["My gay friend sings."]).shape == (1,)
    (tmp_path / "encA").rename(tmp_path / "models" / "encA")
    assert load_text(in_a_folder).features_.encoder_.path == str((tmp_path / "models" / "encA").resolve())


def test_an_encoder_whose_folder_is_gone_is_asked_for_and_can_be_given(in_a_folder, tmp_path, monkeypatch):
    (tmp_path / "encA").rename(tmp_path / "encB")
    with pytest.raises(FileNotFoundError, match=r"was the folder 'encA'.*load_text\(path, encoder=folder\).*--encoder"):
        load_text(in_a_folder)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*encC, where the encoder"):
        load_text(in_a_folder, encoder=tmp_path / "encC")
    assert load_text(in_a_folder, encoder=tmp_path / "encB").features_.encoder_.fingerprint == "abc"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_text(in_a_folder, encoder="~/encB").features_.encoder_.fingerprint == "abc"
    (tmp_path / "encB" / "weights").write_text("other")
    with pytest.raises(ValueError, match="their hashes differ"):
        load_text(in_a_folder, encoder=str(tmp_path / "encB"))


def test_an_encoder_of_an_installed_package_is_found_where_the_package_is_now(in_a_folder, tmp_path, monkeypatch):
    with np.load(in_a_folder) as stored:
        arrays = {name: stored[name] for name in stored.files}
    about = json.loads(str(arrays["about"]))
    about["encoder"] |= {"name": "/old/site-packages/some/model", "path": "/old/site-packages/some/model"}
    np.savez(tmp_path / "moved.npz", **(arrays | {"about": np.array(json.dumps(about))}))
    (tmp_path / "now" / "some").mkdir(parents=True)
    (tmp_path / "encA").rename(tmp_path / "now" / "some" / "model")
    monkeypatch.syspath_prepend(str(tmp_path / "now"))
    assert load_text(tmp_path / "moved.npz").features_.encoder_.fingerprint == "abc"
