"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import evenhand

OPTIONAL = {"evenhand.__main__"}
NAMES = [m.name for m in pkgutil.walk_packages(evenhand.__path__, "evenhand.") if m.name not in OPTIONAL]


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
