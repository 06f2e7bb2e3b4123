def test_raw_frame_to_fair_decisions(load):
    scores = load("sklearn_pipeline").main(steps=80, rows=3000)
    assert scores["balanced accuracy"] > 0.7
    assert scores["consistency under sex and race"] > 0.95
