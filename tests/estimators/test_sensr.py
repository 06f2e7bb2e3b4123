"""SenSR removes the dependence on a free direction."""

import numpy as np
import pandas as pd

from evenhand import ERMClassifier, SenSRClassifier, fair_metrics


def test_the_sensitive_feature_stops_to_matter():
    rng = np.random.default_rng(0)
    skill, group = rng.normal(size=1500), rng.integers(0, 2, 1500)
    X = pd.DataFrame({"skill": skill, "group": group.astype(float)})
    y = (skill + 1.5 * (group - 0.5) + 0.3 * rng.normal(size=1500) > 0).astype(int)
    options = {"hidden": (16,), "steps": 300, "batch_size": 200, "lr": 0.01, "random_state": 0}
    plain = ERMClassifier(**options).fit(X, y)
    fair = SenSRClassifier(fair_metrics.from_columns(X, ["group"]), eps=0.01, **options).fit(X, y)

    def flips(model):
        return np.mean(model.predict(X.assign(group=0.0)) != model.predict(X.assign(group=1.0)))

    assert flips(plain) > 0.3
    assert flips(fair) < 0.1
    assert {"loss", "lam", "d_x"} <= set(fair.history_.columns)
