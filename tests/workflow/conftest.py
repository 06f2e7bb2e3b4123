from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from evenhand.workflow import Folder, Settings, prepare
from evenhand.workflow.baselines import train_one

SMALL = Settings(rho=(2.0,), hidden=(3,), steps=60, trees=3, batch_size=50, lr=0.05, audit_rows=6, show_people="all")


def loans(n=300, seed=0):
    """Pay decides, and sex does; town is only there. Some pays are missing."""
    rng = np.random.default_rng(seed)
    sex, pay = rng.choice(["f", "m"], n), rng.normal(30, 8, n).round(1)
    yes = pay + 8 * (sex == "m") + rng.normal(0, 2, n) > 34
    pay[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame({"pay": pay, "town": rng.choice(["a", "b", "c"], n), "sex": sex, "loan": np.where(yes, 2, 1)})


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A prepared table, a folder, and the plain and the fair model trained into it."""
    folder = Folder(tmp_path_factory.mktemp("small"))
    (folder.path / "stages").mkdir()
    task = prepare(loans(), "loan", ["sex"])
    models = {
        name: train_one(name, task, SMALL, folder, lambda text: None, rho) for name, rho in (("plain", 0), ("fair", 2))
    }
    return SimpleNamespace(folder=folder, task=task, settings=SMALL, models=models, frame=loans())
