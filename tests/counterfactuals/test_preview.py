from evenhand.counterfactuals import TokenSwap


def test_counts_reasons_and_examples():
    swap = TokenSwap(["gay", "old", "deaf"])
    shown = swap.preview(["an old song", "a gay man and an old man", "nothing"], show=1)
    assert (shown.texts, shown.swapped, len(shown.changes), len(shown.left)) == (3, 1, 2, 1)
    lines = str(shown).splitlines()
    assert lines[0] == "1 of 3 texts have versions: 2 words are swapped, 1 are left."
    assert lines[1] == "  row 1: …a [gay -> old] man and an old man…"
    assert lines[2] == "Left: idiom 1."
    assert lines[3] == "  row 0: …an [old: left, idiom] song…"
