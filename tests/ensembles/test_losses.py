import numpy as np
import pytest

from evenhand.ensembles.losses import balanced_log_loss, squared_loss

rng = np.random.default_rng(0)


@pytest.mark.parametrize("k", [1, 3])
def test_losses_have_the_gradients_they_say(k):
    h = rng.normal(size=(6, k))
    y = (rng.integers(0, 2, (6, 1)) if k == 1 else np.eye(3)[rng.integers(0, 3, 6)]).astype(float)
    for loss in (balanced_log_loss, squared_loss):
        _, gradient, _ = loss(h, y)
        for c in range(k):
            step = np.zeros_like(h)
            step[:, c] = 1e-6
            slope = (loss(h + step, y)[0] - loss(h - step, y)[0]) / 2e-6
            assert slope == pytest.approx(gradient[:, c], abs=1e-6)
