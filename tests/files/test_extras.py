"""Without the extra: one sentence that says what to install, and no file written."""

import builtins
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand import ERMClassifier
from evenhand.files import load, save

X = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)


@pytest.fixture
def without(monkeypatch):
    """A package that is not installed, also not for those who had imported it."""
    plainly = builtins.__import__

    def forget(package):
        def refuse(name, *args, **kwargs):
            if name.split(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return plainly(name, *args, **kwargs)

        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(builtins, "__import__", refuse)

    return forget


@pytest.mark.parametrize("package", ["safetensors", "skops"])
def test_saving_and_loading_say_what_to_install(package, without, tmp_path):
    model = make_pipeline(StandardScaler(), ERMClassifier(hidden=(3,), steps=2)).fit(X, X[:, 0] > 0)
    save(model, tmp_path / "model")
    without(package)
    says = rf"^saving and loading models needs {package}: pip install 'evenhand\[io\]'$"
    with pytest.raises(ModuleNotFoundError, match=says):
        save(model, tmp_path / "other")
    with pytest.raises(ModuleNotFoundError, match=says):
        load(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_model_without_preprocessing_needs_no_skops(without, tmp_path):
    model = ERMClassifier(hidden=(3,), steps=2).fit(X, X[:, 0] > 0)
    without("skops")
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))
