"""The allow-list is checked before anything is built."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from evenhand.files.preprocessing import MAX_DEPTH, NotAllowed, check, read_preprocessing, write_preprocessing

X = np.random.default_rng(0).normal(size=(20, 2))


def repack(data, change):
    source = zipfile.ZipFile(io.BytesIO(data))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                change(schema)
                content = json.dumps(schema).encode()
            archive.writestr(name, content)
    return out.getvalue()


def test_known_steps_come_back():
    pipeline = Pipeline([("scale", StandardScaler().fit(X))])
    again = read_preprocessing(write_preprocessing(pipeline))
    assert np.array_equal(again.transform(X), pipeline.transform(X))
    assert read_preprocessing(write_preprocessing(None)) is None


def test_functions_are_refused_by_name():
    with pytest.raises(ValueError, match=r"FunctionTransformer.*holds only preprocessing of scikit-learn"):
        write_preprocessing(Pipeline([("f", FunctionTransformer(np.log1p))]))


@pytest.mark.parametrize(
    "node",
    [
        {"__module__": "os", "__class__": "system", "__loader__": "FunctionNode", "content": {}},
        {"__module__": "builtins", "__class__": "eval", "__loader__": "TypeNode"},
        {"__module__": "sklearn.pipeline", "__class__": "Pipeline", "__loader__": "MethodNode", "content": {}},
        {"__module__": "operator", "__class__": "methodcaller", "__loader__": "OperatorFuncNode", "attrs": {}},
        {"__module__": "sklearn.ensemble._forest", "__class__": "RandomForestClassifier", "__loader__": "ObjectNode"},
        {"__module__": "sklearn.pipelineevil", "__class__": "Pipeline", "__loader__": "ObjectNode"},
        {"__module__": "numpy", "__class__": "ndarray", "__loader__": "NdArrayNode", "type": "pickle"},
        {"__class__": "x"},
    ],
    ids=lambda node: str(node.get("__loader__")),
)
def test_hostile_nodes_are_refused_and_not_run(node, tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(os, "system", lambda *a: ran.append(a))
    data = write_preprocessing(Pipeline([("scale", StandardScaler().fit(X))]))

    def plant(schema):
        schema["content"]["content"]["steps"] = node

    planted = repack(data, plant)
    with pytest.raises(NotAllowed, match="not on the list"):
        check(planted)
    with pytest.raises(ValueError, match="not on the list"):
        read_preprocessing(planted)
    assert ran == []


def test_other_members_and_other_roots_are_refused():
    data = write_preprocessing(Pipeline([("scale", StandardScaler().fit(X))]))
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("../x.npy", b"")
    with pytest.raises(NotAllowed, match="member"):
        check(out.getvalue())
    for name in ("folder/x.npy", "x\\y.npy", "x.pkl"):
        out = io.BytesIO(data)
        with zipfile.ZipFile(out, "a") as archive:
            archive.writestr(name, b"")
        with pytest.raises(NotAllowed, match=r"member .* which is not allowed"):
            check(out.getvalue())
    with pytest.raises(NotAllowed, match="must be a Pipeline"):
        read_preprocessing(skops.io.dumps(OneHotEncoder()))
    with pytest.raises(ValueError, match="damaged"):
        read_preprocessing(b"garbage")


def test_a_compressed_description_is_refused_before_it_is_unpacked():
    """A few hundred kilobytes of deflated blanks would be gigabytes of JSON."""
    data = write_preprocessing(Pipeline([("scale", StandardScaler().fit(X))]))
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name) + b" " * (10_000_000 if name == "schema.json" else 0))
    with pytest.raises(NotAllowed, match=r"schema.json.*compressed|npy.*compressed"):
        check(out.getvalue())


@pytest.mark.parametrize("declared", [np.zeros(1, "<U200000000"), np.zeros(1, "f8")], ids=["wide", "short"])
def test_arrays_are_as_large_as_they_declare(declared):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(declared))
    data = write_preprocessing(Pipeline([("scale", StandardScaler().fit(X))]))
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as archive:
        for name in source.namelist():
            archive.writestr(name, header.getvalue() if name == "0.npy" else source.read(name))
    with pytest.raises(NotAllowed, match="declares another size"):
        check(out.getvalue())


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["lists", "dicts"])
def test_how_deep_a_description_may_be(wrap):
    for depth, fine in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False)):
        node = 1
        for _ in range(depth):
            node = wrap(node)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("schema.json", json.dumps(node))
        if fine:
            check(out.getvalue())
        else:
            with pytest.raises(NotAllowed, match="nested too deeply"):
                check(out.getvalue())


def test_how_much_a_description_may_hold(monkeypatch):
    monkeypatch.setattr("evenhand.files.preprocessing.MAX_NODES", 50)
    for items, fine in ((49, True), (50, False)):  # and the list around them
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("schema.json", json.dumps([1] * items))
        if fine:
            check(out.getvalue())
        else:
            with pytest.raises(NotAllowed, match="too large"):
                check(out.getvalue())


def test_nothing_is_no_preprocessing():
    assert read_preprocessing(write_preprocessing(None)) is None
