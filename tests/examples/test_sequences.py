def test_fair_training_on_sequences(load):
    scores = load("sequences").main(steps=60)
    plain, fair = scores["plain"], scores["fair"]
    assert plain["decisions that depend on the level"] > 0.4
    assert fair["decisions that depend on the level"] < 0.5 * plain["decisions that depend on the level"]
    first = next(iter(plain))
    assert fair[first] > plain[first]
