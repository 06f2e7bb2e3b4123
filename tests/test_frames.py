"""Odd frames: read for what they are, or refused by the name of the column, with a cure, and no cell shown."""

import traceback
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch

from evenhand import FairMetric, SenSeIClassifier, SenSeIRegressor, audit, fair_metrics
from evenhand.estimators import CoCLClassifier, ColumnsMetric
from evenhand.estimators.senstir import SenSTIRRanker, ndcg
from evenhand.frames import check_kinds, check_labels, check_numbers, numbers, plain_labels, plain_table
from evenhand.postprocess import glif, glif_new, glif_objective

N = 40
DRAW = np.random.default_rng(0)
PLAIN = pd.DataFrame({"sex": DRAW.integers(0, 2, N), "age": DRAW.integers(18, 70, N), "pay": DRAW.normal(size=N)})
PLAIN["pay"] = PLAIN["pay"].round(2)
Y = (PLAIN["pay"] > 0).astype(int).to_numpy()
TABLE = {name: PLAIN[name].tolist() for name in PLAIN}
SAME = {  # the same people, otherwise
    "nullable": PLAIN.astype({"sex": "Int64", "age": "Int64", "pay": "Float64"}),
    "boolean": PLAIN.astype({"sex": "boolean"}),
    "sparse": PLAIN.assign(sex=pd.arrays.SparseArray(PLAIN["sex"], fill_value=0)),
    "decimals": PLAIN.assign(pay=[Decimal(str(value)) for value in PLAIN["pay"]]),
    "objects": PLAIN.astype(object),
    "categories": PLAIN.assign(sex=pd.Categorical(PLAIN["sex"], categories=[0, 1, 2])),
    "an index of one value": PLAIN.set_index(np.zeros(N, dtype=int)),
    "records": PLAIN.to_records(index=False),
    "a tensor with a graph": torch.tensor(PLAIN.to_numpy(), requires_grad=True),
}


def fitted(X, y=Y):
    metric = FairMetric([[1.0], [0.0], [0.0]])
    return SenSeIClassifier(metric, steps=5, hidden=(4,), random_state=0).fit(X, y)


@pytest.mark.parametrize("name", SAME)
def test_the_same_people_give_the_same_model_and_the_same_metric(name):
    expected, found = fitted(PLAIN.to_numpy()), fitted(SAME[name])
    assert np.array_equal(expected.decision_function(PLAIN.to_numpy()), found.decision_function(SAME[name]))
    if hasattr(SAME[name], "columns"):
        metrics = [fair_metrics.from_classifier(X, predict=["sex"]).directions for X in (PLAIN, SAME[name])]
        torch.testing.assert_close(*metrics)


def test_columns_of_pyarrow():
    pytest.importorskip("pyarrow")
    arrow = PLAIN.assign(sex=PLAIN["sex"].astype(bool)).convert_dtypes(dtype_backend="pyarrow")
    expected, found = fitted(PLAIN), fitted(arrow, pd.Series(Y.astype(bool)).astype("bool[pyarrow]"))
    assert found.classes_.tolist() == [False, True]
    assert np.array_equal(expected.decision_function(PLAIN), found.decision_function(arrow))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (PLAIN.assign(day=pd.date_range("2020", periods=N)), r"'day' are not numbers.*\.dt\.days \(dates\)"),
        (PLAIN.assign(wait=pd.to_timedelta(range(N), unit="D")), r"'wait' are not.*total_seconds\(\) \(durations\)"),
        (PLAIN.assign(pay=PLAIN["pay"].astype(str)), r"'pay' are not numbers.*pd\.to_numeric.*\(numbers as text\)"),
        (PLAIN.assign(pay=PLAIN["pay"] + 1j), r"'pay' are not numbers.*abs\(\) \(complex numbers\)"),
        (PLAIN.assign(age=pd.cut(PLAIN["age"], 3)), r"'age' are not numbers.*OneHotEncoder.*\['age'\].*\(categories\)"),
        (PLAIN.assign(age=pd.period_range("2020", periods=N, freq="D")), r"'age' are not numbers.*OneHotEncoder"),
        (PLAIN.set_axis(["sex", "age", "age"], axis=1), r"more than one column named 'age'; rename all but one"),
        (PLAIN.assign(pay=np.linspace(0, 1e300, N)), r"'pay' hold numbers above 3.4e\+38.*StandardScaler"),
        (PLAIN.assign(pay=PLAIN["pay"].where(PLAIN["pay"] < 1, np.inf)), r"NaN or infinity in column\(s\) 'pay'"),
        (PLAIN.assign(age=PLAIN["age"].astype("Int64").where(PLAIN["age"] > 30)), r"NaN or infinity in .*'age'"),
        (PLAIN.assign(pay=[None, *PLAIN["pay"][1:]]).astype({"pay": object}), r"NaN or infinity in .*'pay'"),
    ],
)
def test_the_column_is_named_with_a_cure(frame, message):
    with pytest.raises(ValueError, match=message):
        check_numbers(frame)


def test_the_cures_work():
    odd = PLAIN.assign(day=pd.date_range("2020", periods=N), wait=pd.to_timedelta(range(N), unit="D"))
    odd["text"] = PLAIN["pay"].astype(str)
    odd["day"] = (odd["day"] - pd.Timestamp("2000-01-01")).dt.days
    odd["wait"] = odd["wait"].dt.total_seconds()
    odd["text"] = pd.to_numeric(odd["text"])
    check_numbers(odd)


def test_one_and_the_text_one_are_two_columns():
    twins = pd.DataFrame({1: [0.0, np.nan], "1": [0.0, 1.0]})
    with pytest.raises(ValueError, match="'1'"):
        check_numbers(twins)
    with pytest.raises(ValueError, match="'1'"):
        check_numbers(twins[["1", 1]])


SECRET = "Jane Doe, born 3 May"


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("judge", ["fit", "audit", "metric"])
def test_no_error_shows_what_a_cell_holds(judge, as_array):
    frame = PLAIN.assign(note=SECRET)
    X = frame.to_numpy() if as_array else frame
    calls = {
        "fit": lambda: fitted(X),
        "audit": lambda: audit(torch.nn.Linear(4, 2), X, FairMetric.euclidean(4), eps=0.1, bounds=(-9.0, 99.0)),
        "metric": lambda: fair_metrics.from_classifier(X, predict=[0] if as_array else ["sex"]),
    }
    with pytest.raises(ValueError, match="are not numbers; encode them first") as raised:
        calls[judge]()
    error = raised.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or error.__context__
    assert ("'3'" if as_array else "'note'") in str(raised.value)


CELLS = PLAIN.astype(object).to_numpy()
CELLS[3, 2] = SECRET
HIDDEN = {  # a person in a table that is no frame
    "objects": CELLS,
    "texts": CELLS.astype(str),
    "bytes": CELLS.astype(str).astype("S"),
    "objects of bytes": np.where(CELLS == SECRET, SECRET.encode(), CELLS),
    "new texts": CELLS.astype(str).astype(np.dtypes.StringDType()),
    "masked": np.ma.masked_array(CELLS, mask=np.zeros(CELLS.shape, bool)),
    "lists": CELLS.tolist(),
    "tuples": tuple(map(tuple, CELLS.tolist())),
    "a list of arrays": list(CELLS),
    "days": np.where(CELLS == SECRET, pd.Timestamp("1990-05-03"), CELLS),
}
SHORT = {"steps": 2, "hidden": (3,)}
EVEN = FairMetric.euclidean(3)
TABLE_DOORS = {
    "fit": lambda X: SenSeIClassifier(EVEN, **SHORT).fit(X, Y),
    "fit_stream": lambda X: SenSeIClassifier(EVEN, **SHORT).fit_stream([(X, Y)]),
    "predict": lambda X: fitted(PLAIN.to_numpy()).predict(X),
    "audit": lambda X: audit(torch.nn.Linear(3, 2), np.asarray(X), EVEN, eps=0.1, bounds=(-9.0, 99.0)),
    "metric": lambda X: fair_metrics.from_classifier(X, predict=[0]),
    "metric of an estimator": lambda X: ColumnsMetric([0]).fit(X),
    "embedding": lambda X: CoCLClassifier(**SHORT).fit(PLAIN, Y, embedding=X),
    "glif": lambda X: glif(PLAIN["pay"], X, EVEN),
    "glif_new": lambda X: glif_new(PLAIN["pay"], X, PLAIN["pay"], PLAIN, EVEN),
    "outputs": lambda X: glif(X, PLAIN, EVEN),
    "rank": lambda X: SenSTIRRanker(EVEN, steps=2).fit(X, Y, np.arange(N) // 4),
}
COLUMN = [*PLAIN["pay"][:-1].tolist(), SECRET]
COLUMN_DOORS = {
    "sample_weight": lambda v: SenSeIClassifier(EVEN, **SHORT).fit(PLAIN, Y, sample_weight=v),
    "y": lambda v: SenSeIRegressor(EVEN, **SHORT).fit(PLAIN, v),
    "y of a stream": lambda v: SenSeIRegressor(EVEN, **SHORT).fit_stream([(PLAIN, v)]),
    "y of a score": lambda v: SenSeIRegressor(EVEN, **SHORT).fit(PLAIN, Y).score(PLAIN, v),
    "outputs": lambda v: glif(v, PLAIN, EVEN),
    "smoothed": lambda v: glif_objective(v, Y, np.eye(N), 1.0),
    "relevance": lambda v: ndcg(v, Y, np.arange(N) // 4),
}


def everything_shown(call):
    with pytest.raises((TypeError, ValueError), match="number") as raised:
        call()
    return "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("door", TABLE_DOORS)
@pytest.mark.parametrize("form", HIDDEN)
def test_no_form_of_a_table_gets_its_cells_shown(form, door):
    told = everything_shown(lambda: TABLE_DOORS[door](HIDDEN[form]))
    assert "Jane" not in told
    assert "1990-05" not in told
    assert "'2'" in told  # the column


@pytest.mark.parametrize("door", COLUMN_DOORS)
@pytest.mark.parametrize("form", [list, pd.Series, lambda v: pd.Series(v).astype("category"), np.array])
def test_no_form_of_a_column_gets_its_cells_shown(form, door):
    told = everything_shown(lambda: COLUMN_DOORS[door](form(COLUMN)))
    assert "Jane" not in told
    assert "1 of 40" in told


def test_one_person_alone_is_not_printed():
    jane = np.array([0.0, 31.0, 1234.5])
    for alone in (jane, jane.tolist(), pd.Series(jane)):
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead") as raised:
            fitted(PLAIN.to_numpy()).predict(alone)
        assert "1234" not in str(raised.value)


def test_numbers_however_they_are_held():
    for held in (PLAIN, PLAIN.to_numpy().tolist(), PLAIN.to_numpy().astype(str), torch.tensor(PLAIN.to_numpy())):
        np.testing.assert_array_equal(numbers(held, "embedding"), PLAIN.to_numpy())
    with pytest.raises(ValueError, match=r"column\(s\) 'note' of embedding are not numbers; encode them first"):
        numbers(PLAIN.assign(note=SECRET), "embedding")
    with pytest.raises(ValueError, match="weights must be numbers, and some of its values are none"):
        numbers([1.0, {}], "weights")
    with pytest.raises(ValueError, match="weights holds dates and must be numbers"):
        numbers(pd.date_range("2020", periods=N), "weights")


def test_arrays_of_texts_that_read_as_numbers_are_numbers():
    check_kinds(PLAIN.to_numpy().astype(str))
    with pytest.raises(ValueError, match=r"column\(s\) '0', '2' are not numbers"):
        check_kinds(np.array([["a", "1", "2"], ["1", "2", "b"]]))


def test_masked_cells_are_missing_ones():
    masked = np.ma.masked_array(PLAIN.to_numpy(), mask=np.arange(3 * N).reshape(N, 3) == 5)
    found = plain_table(masked)
    assert np.isnan(found[1, 2])
    assert np.isnan(found).sum() == 1
    with pytest.raises(ValueError, match="NaN"):
        fitted(masked)


def test_a_table_of_lists_is_no_frame_yet():
    with pytest.raises(TypeError, match=r"write pd\.DataFrame\(X\)"):
        fitted(TABLE)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (pd.Series(Y, dtype="Int64"), [0, 1]),
        (pd.Series(Y - 1, dtype="Int8"), [-1, 0]),
        (pd.Series(Y, dtype="boolean"), [False, True]),
        (pd.Series(np.where(Y, "yes", "no"), dtype="string"), ["no", "yes"]),
        (pd.Categorical(np.where(Y, "yes", "no"), categories=["no", "yes", "never"]), ["no", "yes"]),
        (Y.astype(float), [0.0, 1.0]),
    ],
)
def test_classes_stay_what_they_are(y, classes):
    clf = fitted(PLAIN, y)
    assert clf.classes_.tolist() == classes
    assert [type(value) for value in clf.classes_.tolist()] == [type(value) for value in classes]
    assert set(clf.predict(PLAIN).tolist()) <= set(classes)


@pytest.mark.parametrize(
    "y",
    [
        [None, *Y[1:].tolist()],
        np.where(np.arange(N) == 0, np.nan, Y),
        pd.Series(Y, dtype="Int64").mask(np.arange(N) == 0),
        pd.Series(Y, dtype="boolean").mask(np.arange(N) == 0),
    ],
)
def test_missing_labels_are_counted(y):
    assert plain_labels(y) is y
    with pytest.raises(ValueError, match=f"y is missing in 1 of {N} rows; drop these rows first"):
        check_labels(y, numeric=False)
    with pytest.raises(ValueError, match=f"y is missing in 1 of {N} rows"):
        fitted(PLAIN, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (pd.Series(pd.date_range("2020", periods=N)), "y holds dates; predict a number"),
        (pd.Series(pd.to_timedelta(range(N), unit="D")), "y holds durations; predict a number"),
        (Y + 1j, "Complex data not supported: y holds"),
        ([SECRET, *PLAIN["pay"][1:].tolist()], f"y holds text in 1 of {N} rows"),
        (np.linspace(0, 1e300, N), "y holds numbers above 3.4e"),
        (np.where(Y, np.nan, 1.0), "y is missing in"),
    ],
)
def test_what_cannot_be_predicted_as_a_number(y, message):
    with pytest.raises(ValueError, match=message) as raised:
        SenSeIRegressor(FairMetric.euclidean(3), steps=5).fit(PLAIN, y)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "y",
    [
        PLAIN["pay"].astype(str),
        [Decimal(str(value)) for value in PLAIN["pay"]],
        PLAIN["pay"].astype("Float64"),
        PLAIN[["pay"]].to_numpy()[:, 0],
    ],
)
def test_numbers_however_they_are_written(y):
    model = SenSeIRegressor(FairMetric.euclidean(3), steps=5, random_state=0)
    expected = model.fit(PLAIN, PLAIN["pay"].to_numpy()).predict(PLAIN)
    np.testing.assert_allclose(model.fit(PLAIN, y).predict(PLAIN), expected, rtol=1e-6)


def test_complex_arrays_are_refused_without_showing_them():
    with pytest.raises(ValueError, match="Complex data not supported: X holds") as raised:
        fitted(PLAIN.to_numpy() + 1j)
    assert len(str(raised.value)) < 150


def test_a_sensitive_value_that_is_pandas_own_missing_one():
    sex = pd.Series(PLAIN["sex"], dtype="boolean").mask(np.arange(N) == 3)
    with pytest.raises(ValueError, match=rf"is missing in 1 of {N} rows \(first: \[3\]\)"):
        SenSeIClassifier(steps=5).fit(PLAIN, Y, sensitive_features=sex)


def test_directions_from_a_frame():
    assert FairMetric(pd.DataFrame({"a": [1.0, 0.0]})).d == 2


def test_bfloat16_is_as_good_as_the_same_numbers_in_float32():
    x = torch.rand(80, 3, generator=torch.Generator().manual_seed(0)).bfloat16()
    torch.manual_seed(0)
    net, metric = torch.nn.Sequential(torch.nn.Linear(3, 2)), FairMetric([[1.0], [0.0], [0.0]])
    low, wide = (audit(net, rows, metric, 0.1, (0.0, 1.0)).lower for rows in (x, x.float()))
    assert low == wide
    learned = [fair_metrics.from_classifier(rows.round(), columns=[0]).directions for rows in (x.float(), x)]
    assert torch.equal(*learned)
    assert torch.equal(plain_table(x), x.float())
