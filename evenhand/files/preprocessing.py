"""scikit-learn preprocessing through skops, behind a fixed allow-list that is checked before anything is built."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from sklearn.pipeline import Pipeline

# module prefix -> classes that may be built by their state
CLASSES: dict[str, frozenset[str]] = {
    "sklearn.pipeline": frozenset({"Pipeline", "FeatureUnion"}),
    "sklearn.compose": frozenset({"ColumnTransformer"}),
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
MAX_DEPTH, MAX_NODES, MAX_SCHEMA = 100, 2_000_000, 1 << 28


class NotAllowed(ValueError):
    """Something that preprocessing in a model file may not hold."""


def write_preprocessing(pipeline: Pipeline | None) -> bytes:
    """The fitted steps before the estimator; steps that the allow-list does not know are refused by name."""
    from skops.io import dumps

    if pipeline is None:
        return b""
    data = bytes(dumps(pipeline))
    try:
        check(data)
    except NotAllowed as error:
        raise ValueError(
            f"{error}; a model file holds only preprocessing of scikit-learn that needs no code of yours: "
            f"{', '.join(sorted(name for names in CLASSES.values() for name in names))}"
        ) from error
    return data


def read_preprocessing(data: bytes) -> Pipeline | None:
    """The steps again. The whole description is checked against the allow-list before the first object is made."""
    from skops.io import get_untrusted_types, loads
    from skops.io.exceptions import UntrustedTypesFoundException

    if not data:
        return None
    check(data)
    allowed = {"numpy.dtype", "builtins.object", *(f"numpy.{name}" for name in NUMPY_SCALARS)}
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


def check(data: bytes) -> None:
    """Walk the description of every object and refuse what is not on the list; nothing is built."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            for info in infos:
                if "/" in info.filename or "\\" in info.filename or not info.filename.endswith((".npy", ".json")):
                    raise NotAllowed(f"preprocessing holds a member {info.filename!r}, which is not allowed")
                if info.file_size > 8 * len(data) + MAX_SCHEMA:
                    raise NotAllowed(f"preprocessing member {info.filename!r} unpacks to {info.file_size:,} bytes")
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
