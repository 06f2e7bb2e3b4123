import pytest

from evenhand.workflow import Settings


def test_each_kind_of_model_has_weights_of_its_own():
    assert Settings(rho=(1.0, 2.0)).weights == {"network": (1.0, 2.0)}
    assert Settings(model="trees", tree_rho=(3.0,)).weights == {"trees": (3.0,)}
    assert Settings(rho=(1.0,), model="both", tree_rho=(3.0,)).weights == {"network": (1.0,), "trees": (3.0,)}


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(ValueError, match="'network', 'trees' or 'both', got 'forest'"):
        Settings(model="forest")
