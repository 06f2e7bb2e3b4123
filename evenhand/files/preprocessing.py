"""scikit-learn preprocessing through skops, behind a fixed allow-list that is checked before anything is built."""

from __future__ import annotations

import io
import json
import math
import zipfile
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from evenhand.files.extras import of_the_extra_io

# module prefix -> classes that may be built by their state
CLASSES: dict[str, frozenset[str]] = {
    "sklearn.pipeline": frozenset({"Pipeline", "FeatureUnion"}),
    "sklearn.compose": frozenset({"ColumnTransformer", "_RemainderColsList"}),  # the list of columns of 1.5 and 1.6
    "sklearn.impute": frozenset({"SimpleImputer", "MissingIndicator"}),
    "sklearn.preprocessing": frozenset(
        {
            "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "OneHotEncoder", "OrdinalEncoder",
            "Normalizer", "PowerTransformer", "QuantileTransformer", "KBinsDiscretizer",
            "PolynomialFeatures", "Binarizer",
        }
    ),
    "sklearn.decomposition": frozenset({"PCA", "TruncatedSVD"}),
    "sklearn.feature_selection": frozenset({"VarianceThreshold"}),
}  # fmt: skip
# loader -> (module, class) pairs that it may name
PLAIN: dict[str, frozenset[tuple[str, str]]] = {
    "DictNode": frozenset({("builtins", "dict")}),
    "ListNode": frozenset({("builtins", "list")}),
    "TupleNode": frozenset({("builtins", "tuple")}),
    "SetNode": frozenset({("builtins", "set")}),
    "SliceNode": frozenset({("builtins", "slice")}),
    "JsonNode": frozenset({("builtins", "str")}),
    "BytesNode": frozenset({("builtins", "bytes")}),
    "DTypeNode": frozenset({("numpy", "dtype")}),
    "TypeNode": frozenset(
        {("builtins", name) for name in ("str", "int", "float", "bool", "object")}
        | {("numpy", name) for name in ("float16", "float32", "float64", "int32", "int64", "bool_", "str_", "object_")}
    ),
}
NUMPY_SCALARS = frozenset({"float16", "float32", "float64", "int8", "int16", "int32", "int64", "bool_", "bool", "str_"})
MAX_DEPTH, MAX_NODES, MAX_SCHEMA = 100, 2_000_000, 1 << 26


class NotAllowed(ValueError):
    """Something that preprocessing in a model file may not hold."""


def write_preprocessing(pipeline: Pipeline | None) -> bytes:
    """The fitted steps before the estimator; steps that the allow-list does not know are refused by name."""
    if pipeline is None:
        return b""
    with of_the_extra_io():
        from skops.io import dumps

    data = settled(bytes(dumps(pipeline)))
    try:
        check(data)
    except NotAllowed as error:
        raise ValueError(
            f"{error}; a model file holds only preprocessing of scikit-learn that needs no code of yours: "
            f"{', '.join(sorted(name for names in CLASSES.values() for name in names if name[0] != '_'))}"
        ) from error
    return data


def read_preprocessing(data: bytes) -> Pipeline | None:
    """The steps again. The whole description is checked against the allow-list before the first object is made."""
    if not data:
        return None
    check(data)
    with of_the_extra_io():
        from skops.io import get_untrusted_types, loads
        from skops.io.exceptions import UntrustedTypesFoundException

    allowed = {"numpy.dtype", "builtins.object", *(f"numpy.{name}" for name in NUMPY_SCALARS)}
    allowed |= {"sklearn.compose._column_transformer._RemainderColsList"}
    try:
        unknown = set(get_untrusted_types(data=data))
        if unknown - allowed:
            raise NotAllowed(f"preprocessing holds {', '.join(sorted(unknown - allowed))}, which is not allowed")
        pipeline = loads(data, trusted=sorted(unknown))
    except (UntrustedTypesFoundException, OSError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise ValueError(f"the preprocessing is damaged or not allowed: {error}") from error
    if type(pipeline) is not Pipeline:
        raise NotAllowed(f"preprocessing must be a Pipeline, got {type(pipeline).__name__}")
    return pipeline


def settled(data: bytes) -> bytes:
    """The same description with objects numbered in the order they appear and a fixed date: skops numbers them by
    where they lie in memory, so that the same Pipeline would give other bytes each time."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    schema = json.loads(members.pop("schema.json"))
    numbers: dict[Any, int] = {}
    files: dict[str, str] = {}
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "__id__" in node:
                node["__id__"] = numbers.setdefault(node["__id__"], len(numbers))
            if node.get("file") in members:
                node["file"] = files.setdefault(node["file"], f"{len(files)}.npy")
        waiting += reversed(list(node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()))
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as archive:
        for name, content in [*((files[old], members[old]) for old in files), ("schema.json", _json(schema))]:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return result.getvalue()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def check(data: bytes) -> None:
    """Walk the description of every object and refuse what is not on the list; nothing is built."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            for info in infos:
                if "/" in info.filename or "\\" in info.filename or not info.filename.endswith((".npy", ".json")):
                    raise NotAllowed(f"preprocessing holds a member {info.filename!r}, which is not allowed")
                if info.compress_type != zipfile.ZIP_STORED or info.file_size > len(data) or info.flag_bits & 1:
                    raise NotAllowed(f"preprocessing member {info.filename!r} is compressed, or larger than the file")
                if info.filename.endswith(".npy"):
                    _check_array(archive, info)
            if archive.getinfo("schema.json").file_size > MAX_SCHEMA:
                raise NotAllowed(f"the description of the preprocessing is larger than {MAX_SCHEMA:,} bytes")
            schema = json.loads(archive.read("schema.json"))
    except (zipfile.BadZipFile, KeyError, EOFError, OSError, NotImplementedError, RecursionError) as error:
        raise ValueError(f"the preprocessing is damaged: {error}") from error
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    seen = 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_NODES:
            raise NotAllowed("preprocessing is nested too deeply or too large")
        if isinstance(node, dict):
            if "__loader__" in node or "__class__" in node or "__module__" in node:
                _check_node(node)
            waiting += [(child, depth + 1) for child in node.values()]
        elif isinstance(node, list):
            waiting += [(child, depth + 1) for child in node]


def _check_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """An array must be as large as it declares, before anything is reserved for it; objects would be a pickle."""
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file, max_header_size=10_000)
        header = file.tell()
    if dtype.hasobject:
        raise NotAllowed(f"preprocessing member {info.filename!r} holds objects, which only a pickle could")
    if math.prod(shape) * dtype.itemsize != info.file_size - header:
        raise NotAllowed(f"preprocessing member {info.filename!r} declares another size than it has")


def _check_node(node: dict[str, Any]) -> None:
    module, name, loader = (str(node.get(key)) for key in ("__module__", "__class__", "__loader__"))
    if loader == "ObjectNode":
        for prefix, names in CLASSES.items():
            if (module == prefix or module.startswith(f"{prefix}.")) and name in names:
                return
    elif loader == "NdArrayNode":
        if module == "numpy" and (name == "ndarray" or name in NUMPY_SCALARS) and node.get("type") in ("numpy", "json"):
            return
    elif (module, name) in PLAIN.get(loader, frozenset()) or loader == "CachedNode":
        return
    raise NotAllowed(f"preprocessing holds {module}.{name} ({loader}), which is not on the list of what may be loaded")
