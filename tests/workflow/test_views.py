"""What a model sees: its columns, its free directions, its domain."""

import numpy as np
import torch

from evenhand.tables.encoder import encoded_names
from evenhand.workflow.views import carry_over


def test_each_view_has_its_columns_and_frees_the_sensitive_ones(small):
    seeing, blind = small.task.views["seeing"], small.task.views["blind"]
    assert set(seeing.columns) - set(blind.columns) == {"sex"}
    place = encoded_names(seeing.encoder).index(("sex", "m"))
    step = torch.zeros(1, seeing.fair_metric.d)
    step[0, place] = 1.0
    assert seeing.fair_metric.cost(step).item() < 1e-9
    assert blind.box.blocks  # the towns: one of them holds
    for view in (seeing, blind):
        assert view.inside(small.task.parts["held_out"]).all()


def test_a_town_that_training_did_not_have_is_outside(small):
    part = small.task.parts["held_out"].head(5)
    frame = part.frame.assign(town=["elsewhere", *part.frame["town"][1:]])
    assert small.task.view.inside(type(part)(frame, part.y)).tolist() == [False, True, True, True, True]


def test_directions_are_carried_over_by_name(small):
    seeing, blind = small.task.views["seeing"].encoder, small.task.views["blind"].encoder
    if not small.task.proxies:
        return
    (proxy,) = carry_over(small.task.proxies, blind, seeing)
    names = encoded_names(blind)
    assert len(proxy.models) == len(small.task.proxies[0].models)
    for carried, model in zip(proxy.models, small.task.proxies[0].models):
        for i, name in enumerate(encoded_names(seeing)):
            wanted = model.directions[names.index(name)] if name in names else 0.0
            np.testing.assert_allclose(carried.directions[i], wanted)
