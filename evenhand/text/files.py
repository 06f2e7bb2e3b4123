"""A TextClassifier as one file: network, scale, metric, calibration and rules; the encoder by name and hash.

An uncompressed .npz of arrays and one JSON text. Loading runs no code from it.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from evenhand.atomic import whole_file
from evenhand.counterfactuals import GenderSwap, TokenSwap
from evenhand.fair_metrics.metric import FairMetric
from evenhand.text.calibration import Calibration
from evenhand.text.classifier import TextClassifier
from evenhand.text.encoder import SentenceEncoder, in_a_folder
from evenhand.text.features import TextFeatures
from evenhand.text.frames import FrameFeatures
from evenhand.text.levels import Levels
from evenhand.text.shrink import Shrinkage

__all__ = ["FORMAT", "load_text", "save_text", "text_model_file"]

FORMAT = "evenhand text model 1"
_PARAMETERS = ["method", "text", "rho", "eps", "k", "shrink", "read_alike", "hidden", "steps", "batch_size", "lr"] + [
    "max_accuracy_loss",
    "validation_fraction",
    "random_state",
]
_TOKEN_OPTIONS = ["plurals", "everywhere", "insults", "neutral", "passage", "sample", "random_state"]


def save_text(model: TextClassifier, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
    """Write a fitted TextClassifier to one file, atomically. Its encoder must be a SentenceEncoder: others have no name
    by which they could be found again."""
    check_is_fitted(model, "net_")
    encoder = model.features_.encoder_
    if not isinstance(encoder, SentenceEncoder):
        raise TypeError(
            f"the encoder is a {type(encoder).__name__}, which cannot be saved by name; use SentenceEncoder(name), or "
            "pickle the model where the function can be imported"
        )
    if model.features_.alike is not None and describe_swaps(model.features_.alike) is None:
        raise TypeError(
            f"the model reads texts by the method `alike` of a {type(model.features_.alike).__name__}, which a file "
            "cannot hold; train with read_alike=False, or pickle the model where the class can be imported"
        )
    linear = [layer for layer in model.net_.module_ if isinstance(layer, nn.Linear)]
    about = {
        "format": FORMAT,
        "encoder": {
            "name": encoder.name,
            "path": getattr(encoder, "path", None),
            "hash": encoder.fingerprint,
            "max_length": encoder.max_length,
        },
        "swaps": describe_swaps(model.swaps),
        "parameters": {name: getattr(model, name) for name in _PARAMETERS},
        "fitted": {
            "rho": model.rho_,
            "blind": model.blind_,
            "choice": model.choice_,
            "plain": model.plain_,
            "plain_fpr": model.plain_fpr_,
            "threshold": model.threshold_,
            "calibration": [model.calibration_.slope, model.calibration_.shift],
            "layers": len(linear),
            "because": model.chosen_because_,
            "alike": model.features_.alike is not None,
            "levels": [[one.name, list(one.groups), one.explained] for one in model.levels_],
        },
        "columns": _columns(model.features_),
        "classes": model.classes_.tolist(),
        "metadata": metadata or {},
    }
    arrays = {"mean": model.features_.mean_, "scale": model.features_.scale_}
    shrinkage = model.features_.shrinkage_
    arrays |= {"shrunk": shrinkage.directions, "factors": shrinkage.factors}
    for i, one in enumerate(model.levels_):
        arrays |= {f"level_directions{i}": one.directions, f"levels{i}": one.levels}
    for i, layer in enumerate(linear):
        arrays |= {f"weight{i}": layer.weight.detach().numpy(), f"bias{i}": layer.bias.detach().numpy()}
    if model.fair_metric_ is not None:
        arrays["directions"] = model.fair_metric_.directions.numpy()
    text = json.dumps(about, default=_plain)
    with whole_file(Path(path)) as file:
        np.savez(file, about=np.array(text), **arrays)


def load_text(
    path: str | os.PathLike[str], encoder: SentenceEncoder | str | os.PathLike[str] | None = None
) -> TextClassifier:
    """The model of a file. Its encoder is opened by its name, or given (itself, or its name or folder); either must
    have the hash that was saved. One that was a folder is looked for where it was, beside the file and among the
    installed packages, never on a hub."""
    about, arrays = _content(path)
    said = about["encoder"]
    if encoder is None:
        encoder = _found(said, Path(path))
    elif isinstance(encoder, str | os.PathLike):
        encoder = os.path.expanduser(encoder)
        if in_a_folder(encoder) and not Path(encoder).is_dir():  # a hub must not be asked for it
            raise FileNotFoundError(f"there is no folder {encoder}, where the encoder is said to be")
        encoder = SentenceEncoder(encoder, max_length=said["max_length"], progress=False)
    if encoder.fingerprint != said["hash"]:
        raise ValueError(
            f"the encoder {encoder.name!r} (max_length {encoder.max_length}) is not the one the model was trained "
            f"with, {said['name']!r} (max_length {said['max_length']}): their hashes differ"
        )
    parameters = {"read_alike": False} | about["parameters"] | {"hidden": tuple(about["parameters"]["hidden"])}
    model = TextClassifier(encoder, read_swaps(about["swaps"]), **parameters)
    model.classes_ = np.array(about["classes"])
    alike = model.swaps if about["fitted"].get("alike") else None  # older files read texts as they stand
    model.features_ = TextFeatures(encoder, alike)
    if (columns := about.get("columns")) is not None:
        model.features_ = FrameFeatures(encoder, model.text, alike)
        model.features_.numbers_ = {name: tuple(measured) for name, measured in columns["numbers"]}
        model.features_.kinds_ = dict(columns["kinds"])
    model.features_.encoder_ = encoder
    model.features_.mean_, model.features_.scale_ = arrays["mean"], arrays["scale"]
    model.features_.n_features_out_ = len(arrays["mean"])
    shrunk = (arrays["shrunk"], arrays["factors"]) if "shrunk" in arrays else None  # older files have none
    model.features_.shrinkage_ = Shrinkage.none(len(arrays["mean"])) if shrunk is None else Shrinkage(*shrunk)
    model.fair_metric_ = FairMetric(arrays["directions"]) if "directions" in arrays else None
    fitted = about["fitted"]
    model.chosen_because_ = fitted.get("because", "")
    model.levels_ = [
        Levels(name, arrays[f"level_directions{i}"], tuple(groups), arrays[f"levels{i}"], explained)
        for i, (name, groups, explained) in enumerate(fitted.get("levels", []))
    ]
    model.rho_, model.blind_, model.choice_ = fitted["rho"], fitted["blind"], fitted["choice"]
    model.plain_, model.plain_fpr_, model.threshold_ = fitted["plain"], fitted["plain_fpr"], fitted["threshold"]
    model.calibration_ = Calibration(*fitted["calibration"])
    model.metadata_ = about["metadata"]
    model.net_ = _net(model, arrays, fitted["layers"])
    return model


def _found(said: dict[str, Any], file: Path) -> SentenceEncoder:
    """The encoder that a file speaks of."""
    options = {"max_length": said["max_length"], "progress": False}
    name, folder = said["name"], said.get("path")
    if folder is None and not in_a_folder(name):
        return SentenceEncoder(name, **options)
    known = Path(folder or name)
    places = [known, Path(name), file.resolve().parent / known.name]
    for packages in ("site-packages", "dist-packages"):
        if packages in known.parts:  # of an installed package: the same one here
            inside = known.parts[known.parts.index(packages) + 1 :]
            places += [Path(root, *inside) for root in sys.path if root]
    for place in dict.fromkeys(place for place in places if place.is_dir()):
        encoder = SentenceEncoder(place, **options)
        if encoder.fingerprint == said["hash"]:
            return encoder
    raise FileNotFoundError(
        f"the encoder of {file.name} was the folder {known.name!r}, which is neither where it was nor beside the file "
        "nor among the installed packages with the same weights; say where it is: load_text(path, encoder=folder), on "
        "the command line --encoder FOLDER"
    )


def text_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether the file is a text model of ours."""
    try:
        _content(path, arrays=False)
    except (OSError, ValueError):
        return False
    return True


def _content(path: str | os.PathLike[str], arrays: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file says of the model, and its arrays where they are wanted."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            found = {name: stored[name] for name in stored.files if name != "about"} if arrays else {}
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):  # numpy would propose to unpickle it
        about, found = {}, {}
    if about.get("format") != FORMAT:
        raise ValueError(
            f"{os.path.basename(path)} is not a text model of this version ({FORMAT}), or not a whole one; give a "
            "file that save_text or evenhand train --text wrote"
        )
    return about, found


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python; what else JSON cannot hold is refused by its kind."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(
        f"a file of a text model holds numbers and texts, and cannot hold a {type(value).__name__}; use labels "
        "that are numbers or texts and a whole number as random_state, or pickle the model"
    )


def _columns(features: TextFeatures) -> dict[str, Any] | None:
    """What was learned of the columns beside the text: pairs, because the name of a column may be a number."""
    if not isinstance(features, FrameFeatures):
        return None
    return {"numbers": list(features.numbers_.items()), "kinds": list(features.kinds_.items())}


def describe_swaps(swaps: Any) -> dict[str, Any] | None:
    """A swap of ours as plain values; None for a function of one's own, which a file cannot hold."""
    if isinstance(swaps, TokenSwap):
        options = {name: getattr(swaps, name) for name in _TOKEN_OPTIONS}
        return {"kind": "tokens", "categories": swaps.categories, **options}
    if isinstance(swaps, GenderSwap):
        names = None if swaps.names is None else [list(some) for some in swaps.names]
        return {
            "kind": "gender",
            "nouns": swaps.nouns,
            "names": names,
            "sure": swaps.sure,
            "passage": swaps.passage,
            "everywhere": swaps.everywhere,
            "random_state": swaps.random_state,
        }
    return None


def read_swaps(about: dict[str, Any] | None) -> Any:
    """The swap that was described."""
    if about is None:
        return None
    options = {name: value for name, value in about.items() if name not in ("kind", "categories", "names")}
    if about["kind"] == "tokens":
        categories = about["categories"]
        return TokenSwap(categories[""] if list(categories) == [""] else categories, **options)
    return GenderSwap(names=None if about["names"] is None else tuple(about["names"]), **options)


def _net(model: TextClassifier, arrays: dict[str, Any], layers: int) -> Any:
    modules: list[nn.Module] = []
    for i in range(layers):
        weight, bias = torch.from_numpy(arrays[f"weight{i}"].copy()), torch.from_numpy(arrays[f"bias{i}"].copy())
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        linear.load_state_dict({"weight": weight, "bias": bias})
        modules += [linear, nn.ReLU()]
    net = model._net(model.method, model.rho_)
    net.module_ = nn.Sequential(*modules[:-1]).eval()
    net.classes_ = np.arange(len(model.classes_))
    net.n_features_in_ = len(arrays["mean"])
    net.bounds_ = None
    net.fair_metric_ = model.fair_metric_
    return net
