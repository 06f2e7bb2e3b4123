"""Mutants are what they claim to be: one changed expression, sound Python, the same choice every time."""

import ast
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))  # as a script in that folder has it

import mutants as tool  # noqa: E402
import mutations  # noqa: E402

SOURCE = '''
def f(x: int = 1) -> int:
    """A sentence with 3 words."""
    if not x < 2 and x != 7:
        raise ValueError(f"{x + 1} is too much")
    return max(x, 3) - 4
'''


def test_one_expression_changes_and_words_do_not():
    found = mutations.mutants("m", SOURCE)
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
    for _, source in mutations.mutants("m", SOURCE):
        space: dict = {}
        exec(source, space)
        try:
            values.add(space["f"](1))
        except ValueError:
            values.add("refused")
    assert len(values) > 3


def test_the_choice_is_fixed_and_large_enough():
    first, again = (mutations.chosen("dual/confidence", 20, 0) for _ in range(2))
    assert [m.key for m, _ in first] == [m.key for m, _ in again]
    assert len({m.kind for m, _ in first}) >= 4
    assert sum(tool.MODULES.values()) >= 300


def test_the_share_leaves_out_what_is_explained():
    records = [{"noticed": True}, {"noticed": False, "equivalent": "both are zero"}, {"noticed": False, "key": "k"}]
    found = tool.summary(records)
    assert (found["noticed"], found["equivalent"], found["share"], found["survivors"]) == (1, 1, 0.5, ["k"])


def test_equal_changes_of_equal_lines_are_told_apart():
    found = mutations.mutants("m", "def f(a, b):\n    a = 1 if a else 1\n    return a + b\n")
    assert len({one.key for one, _ in found}) == len(found) == 3


def test_what_was_noticed_stays_so_and_a_survivor_is_tried_again_when_its_tests_change():
    now = {"source": "s", "tests": "t"}
    for seen, source, tests, holds in [
        (True, "s", "t", True),
        (True, "s", "other", True),
        (True, "other", "t", False),
        (False, "s", "t", True),
        (False, "s", "other", False),
        (False, "other", "t", False),
    ]:
        record = {"key": "k", "noticed": seen, "source": source, "tests": tests}
        assert tool.holds(record, now, {}) is holds
        assert tool.holds(record, now, {"k": "both are zero"}) is (source == "s")


def test_results_of_other_modules_stay_in_the_file_while_they_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "_source", lambda module: "now" if module != "old" else "another")
    out = tmp_path / "found.json"
    for module, seen in [("a", True), ("b", True), ("old", True), ("a", False)]:
        record = {"module": module, "key": module, "noticed": seen, "line": 1, "kind": "compare", "source": "now"}
        tool.store(out, module, [record], ["slow"] if module == "b" else None)
    found = tool.kept(out)
    assert (found["total"], found["noticed"], found["survivors"], found["left_out"]) == (2, 1, ["a"], {"b": ["slow"]})


def test_breaks_by_hand_stand_in_the_package_and_are_counted_apart():
    listed = json.loads(mutations.BY_HAND.read_text())
    assert len(listed) >= 15
    for module in {entry["module"] for entry in listed}:
        for one, source in mutations.by_hand(module):
            ast.parse(source)
            assert one.kind == "by hand"
        assert tool.tests_of(module, ROOT)
    found = tool.summary([{"noticed": True, "kind": "by hand"}, {"noticed": False, "kind": "by hand", "key": "k"}])
    assert (found["total"], found["by_hand"], found["survivors"]) == (0, {"total": 2, "noticed": 1}, ["k"])


def test_every_reason_is_about_a_mutant_that_exists():
    reasons = json.loads(tool.EQUIVALENT.read_text())
    for module in {key.split(" | ")[0] for key in reasons}:
        keys = {one.key for one, _ in mutations.mutants(module, (ROOT / "evenhand" / f"{module}.py").read_text())}
        assert {key for key in reasons if key.split(" | ")[0] == module} <= keys


TESTS = """
import os
from pathlib import Path

def value():
    return Path('value').read_text()

def test_quick():
    assert value() != 'wrong'

def test_other():
    if value() == 'deadly':
        os.kill(os.getpid(), 9)
"""
ASK = """
import json, sys
from pathlib import Path
import mutants

copy, found = Path(sys.argv[1]), []
slow = {"tests/test_one.py::test_quick": 9.0, "tests/test_one.py::test_other": 9.0}
for value, seconds in [("right", {}), ("wrong", {}), ("deadly", {}), ("wrong", slow)]:
    (copy / "value").write_text(value)
    found.append(mutants.ask(copy, ["tests/test_one.py"], seconds, 60.0).by)
print(json.dumps(found))
"""


def test_a_broken_copy_is_noticed_and_a_whole_one_is_not(tmp_path):
    """Who failed is told; what dies is no answer; where every test is too slow, nothing is called whole."""
    (tmp_path / "repo" / "tests").mkdir(parents=True)
    (tmp_path / "repo" / "tests" / "test_one.py").write_text(TESTS)
    command = [sys.executable, "-c", ASK, str(tmp_path / "repo")]
    said = subprocess.run(command, cwd=ROOT / "tools", capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == ["", "tests/test_one.py::test_quick", "hangs or dies", "cannot be collected"]
