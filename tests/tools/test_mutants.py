"""Mutants are what they claim to be: one changed expression, sound Python, the same choice every time."""

import ast
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
tool = importlib.util.module_from_spec(spec)
sys.modules["mutants"] = tool
spec.loader.exec_module(tool)

SOURCE = '''
def f(x: int = 1) -> int:
    """A sentence with 3 words."""
    if not x < 2 and x != 7:
        raise ValueError(f"{x + 1} is too much")
    return max(x, 3) - 4
'''


def test_one_expression_changes_and_words_do_not():
    found = tool.mutants("m", SOURCE)
    changes = sorted((m.kind, m.was, m.now) for m, _ in found)
    assert ("compare", "x < 2", "x <= 2") in changes
    assert ("compare", "x != 7", "x == 7") in changes
    assert ("boolean", "not x < 2 and x != 7", "not x < 2 or x != 7") in changes
    assert ("negation", "not x < 2", "x < 2") in changes
    assert ("turned", "max(x, 3)", "min(x, 3)") in changes
    assert ("arithmetic", "max(x, 3) - 4", "max(x, 3) + 4") in changes
    assert ("constant", "1", "2") in changes  # the default
    assert not any("too much" in new and "x - 1" in new for _, new in found)  # a message is not a result
    assert "def f(x: int = 1) -> int:\n" in found[-1][1] or found[-1][0].was == "1"
    for _, new in found:
        ast.parse(new)
        assert new != SOURCE


def test_a_mutant_behaves_differently():
    values = set()
    for _, source in tool.mutants("m", SOURCE):
        space: dict = {}
        exec(source, space)
        try:
            values.add(space["f"](1))
        except ValueError:
            values.add("refused")
    assert len(values) > 3


def test_the_choice_is_fixed_and_large_enough():
    first, again = (tool.chosen("dual/confidence", 20, 0) for _ in range(2))
    assert [m.key for m, _ in first] == [m.key for m, _ in again]
    assert len({m.kind for m, _ in first}) >= 4
    assert sum(tool.MODULES.values()) >= 300


def test_the_share_leaves_out_what_is_explained():
    records = [{"noticed": True}, {"noticed": False, "equivalent": "both are zero"}, {"noticed": False, "key": "k"}]
    found = tool.summary(records)
    assert (found["noticed"], found["equivalent"], found["share"], found["survivors"]) == (1, 1, 0.5, ["k"])
