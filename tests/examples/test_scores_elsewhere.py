import pytest


def test_metric_frame_and_scorers(load):
    pytest.importorskip("fairlearn", reason="fairlearn is not installed")
    found = load("scores_elsewhere").main(rows=1500)
    assert found["by group"].index.tolist() == ["Female", "Male"]
    assert 0 < found["consistency"] <= 1
    assert found["gap"] == pytest.approx(float(found["by group"]["balanced accuracy"].diff().abs().iloc[-1]))
