def test_fair_training_on_digits_images(load):
    scores = load("digits_images").main(steps=60)
    plain, fair = scores["plain"], scores["fair"]
    assert plain["decisions that depend on the tone"] > 0.4
    assert fair["decisions that depend on the tone"] < 0.5 * plain["decisions that depend on the tone"]
    first = next(iter(plain))
    assert fair[first] > plain[first]
