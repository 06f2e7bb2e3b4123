"""The weight of fairness: measured against the best model without fairness."""

import pytest

from evenhand.workflow.choice import pick

TABLE = [
    {"kind": "network", "rho": 1.0, "accuracy": 0.80, "unfairness": 0.1},
    {"kind": "network", "rho": 5.0, "accuracy": 0.79, "unfairness": 0.01},
    {"kind": "network", "rho": 15.0, "accuracy": 0.75, "unfairness": 0.001},
]


@pytest.mark.parametrize(
    ("best", "loss", "rho", "within"),
    [(0.80, 0.03, 5.0, True), (0.82, 0.03, 5.0, True), (0.825, 0.03, 1.0, True), (0.9, 0.03, 1.0, False),
     (0.80, 0.06, 15.0, True)],
)  # fmt: skip
def test_the_rule(best, loss, rho, within):
    chosen = pick(TABLE, {"name": "boosted", "accuracy": best}, loss, regression=False)
    assert (chosen["rho"], chosen["within"]) == (rho, within)
    assert f"boosted trees (balanced accuracy {best:.3f})" in chosen["why"]
    assert ("No weight of fairness comes within" in chosen["why"]) is not within


@pytest.mark.parametrize(("unfairness", "rho"), [(0.0133, 15.0), (0.0134, 5.0)])
def test_of_weights_that_differ_by_chance_the_largest(unfairness, rho):
    table = [*TABLE[:2], {**TABLE[2], "unfairness": unfairness}]
    chosen = pick(table, {"name": "plain", "accuracy": 0.78}, 0.03, False)
    assert chosen["rho"] == rho
    assert ("rho = 15 is as fair, but for chance, as the smaller 5, the least unfair of" in chosen["why"]) == (
        rho == 15.0
    )
    trees = {"kind": "trees", "rho": 90.0, "accuracy": 0.79, "unfairness": 0.0101}  # another scale of rho
    assert pick([*table, trees], {"name": "plain", "accuracy": 0.78}, 0.03, False)["rho"] == rho


def test_undefined_is_not_chosen():
    table = [{**TABLE[2], "unfairness": float("nan")}, TABLE[1]]
    assert pick(table, {"name": "plain", "accuracy": 0.5}, 0.03, False)["rho"] == 5.0
    with pytest.raises(ValueError, match="nothing to choose from"):
        pick(table[:1], {"name": "plain", "accuracy": 0.5}, 0.03, False)


def test_trees_and_networks_are_chosen_from_together():
    trees = [{"kind": "trees", "rho": 0.3, "accuracy": 0.81, "unfairness": 0.005}]
    chosen = pick([*TABLE, *trees], {"name": "boosted", "accuracy": 0.82}, 0.03, regression=False)
    assert (chosen["kind"], chosen["rho"]) == ("trees", 0.3)
    assert "it is the weight of boosted trees" in chosen["why"]
    assert "weight of" not in pick(TABLE, {"name": "boosted", "accuracy": 0.82}, 0.03, regression=False)["why"]


@pytest.mark.parametrize(
    ("best", "said"),
    [
        (0.80, "rho = 5 is the least unfair of the 2 of 3 weights that lose at most 0.03 against"),
        (0.78, "rho = 15 is the least unfair of the 3 weights tried, none of which loses more than 0.03 against"),
        (0.825, "rho = 1 is the only one of 3 weights that loses at most 0.03 against"),
    ],
)
def test_the_sentence_counts_the_weights(best, said):
    chosen = pick(TABLE, {"name": "boosted", "accuracy": best}, 0.03, regression=False)
    assert chosen["why"].startswith(f"{said} the best model without fairness, boosted trees")
