"""The presets are the numbers of the paper's table of hyper-parameters."""

from evenhand.search import PAPER_ADULT, PAPER_ADULT_SENSR, PAPER_BIOS, PAPER_TOXICITY


def test_the_paper_s_numbers():
    def numbers(search):
        return search.subspace_step, search.subspace_steps, search.full_step, search.full_steps

    assert numbers(PAPER_ADULT) == (5.0, 50, 0.001, 50)
    assert numbers(PAPER_ADULT_SENSR) == (10.0, 50, 0.0001, 40)
    assert numbers(PAPER_BIOS) == (0.1, 50, 0.01, 10)
    assert numbers(PAPER_TOXICITY)[:2] == (0.1, 10)
    assert PAPER_TOXICITY.full_steps == 0
