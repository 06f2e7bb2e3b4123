def test_the_term_makes_decisions_depend_less_on_sex(load):
    example = load("plain_pytorch")
    plain, fair = example.main(steps=60, rho=0.0), example.main(steps=60)
    assert fair["decisions that depend on sex"] < plain["decisions that depend on sex"]
