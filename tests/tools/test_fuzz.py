"""Damaged files end in the documented error, whatever the damage."""

import importlib.util
import random
from pathlib import Path

import pytest

pytest.importorskip("safetensors", reason="model files need evenhand[io]")
spec = importlib.util.spec_from_file_location("fuzz", Path(__file__).parent.parent.parent / "tools" / "fuzz.py")
fuzz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz)


@pytest.mark.parametrize("name", ["checkpoint", "model", "metric", "table"])
def test_damaged_files_end_in_the_documented_error(name):
    reader, draw = fuzz.readers()[name], random.Random(0)
    sound = reader.sound(reader.folder)
    reader.read(sound, reader.folder)  # the sound file itself is read
    for _ in range(150):
        reader(fuzz.mutated(sound, draw))  # raises what is not documented


def test_the_mutations_do_damage():
    draw, sound = random.Random(0), bytes(range(200))
    assert sum(fuzz.mutated(sound, draw) != sound for _ in range(100)) > 80
