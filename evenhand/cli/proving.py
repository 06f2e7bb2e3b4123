"""What evenhand certify does, once the table and the model are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from evenhand.certify.certificate import Certificate
from evenhand.certify.certify import certify
from evenhand.cli.auditing import same_of_everybody, similar_words
from evenhand.cli.console import UserError
from evenhand.output_distances import mean_squared_logits, squared_error
from evenhand.tables.encoder import encode
from evenhand.workflow.foreign import Foreign
from evenhand.workflow.opened import TableModel
from evenhand.workflow.provable import make_provable
from evenhand.workflow.similarity import check_free

Say = Callable[[str], None]
Statement = tuple[float, float, Any]  # eps, confidence, progress
FEWEST = 50


def prove_ours(
    opened: TableModel, frame: pd.DataFrame, others: pd.DataFrame | None, distinct_people: bool, statement: Statement,
    say: Say,
) -> Certificate:  # fmt: skip
    """The certificate of a model that evenhand saved, for people whom it has not learned from."""
    if opened.box is None:
        raise UserError(f"{opened.name} says nothing about possible people, so it cannot be certified")
    people = _new_people(opened, frame, distinct_people, say)
    _enough(people)
    encoded = encode(opened.pipeline[0], people)
    for words in (check_free(opened.fair_metric, encoded)[1], same_of_everybody(opened, people)):
        if words:
            say(words)
    x_tune = None
    if others is not None:
        x_tune = opened.inside(opened.schema.apply(others))
        x_tune.index = [f"tuning {i}" for i in x_tune.index]
    say("tuning and bounding")
    return prove(opened, people, x_tune, *statement)


def prove_foreign(
    opened: Foreign, frame: pd.DataFrame, others: pd.DataFrame | None, sensitive: Sequence[str], proxy: bool | None,
    statement: Statement, say: Say,
) -> Certificate:  # fmt: skip
    """The certificate of somebody else's model. Tuning people, a fifth of the rows where no others are given, say what
    a standard deviation is and who is possible."""
    if not sensitive:
        raise UserError("this model does not say which columns are sensitive; add --sensitive sex,race")
    if others is None:
        fifth = len(frame) // 5  # the rows are in random order
        others, frame = frame.iloc[:fifth], frame.iloc[fifth:]
    _enough(frame)
    ready = make_provable(opened, frame, others, sensitive, proxy)
    _enough(ready.people)
    if ready.left_out:
        say(
            f"{ready.left_out:,} of {len(frame):,} people have missing values or lie outside the range of the tuning "
            "people; they are left out, and the statement is about the others"
        )
    say("whether the model has learned from these people only you know: the statement holds for new ones")
    say(similar_words(ready.free, [one.name for one in ready.proxies], ready.fair_metric.directions.shape[1]))
    if ready.warning:
        say(ready.warning)
    eps, confidence, progress = statement
    tuning = ready.tuning.set_axis([f"tuning {i}" for i in ready.tuning.index])
    try:
        return certify(
            ready.model, ready.people, ready.fair_metric, eps, ready.box, tuning, confidence=confidence,
            output_distance=squared_error if opened.regression else None, distinct_people=True, progress=progress,
        )  # fmt: skip
    except TypeError as error:
        raise UserError(
            f"{opened.name} cannot be certified: {error}. evenhand audit works for any model and can show unfairness"
        ) from error


def prove(opened: TableModel, people: Any, x_tune: Any, eps: float, confidence: float, progress: Any) -> Certificate:
    """The certificate of one of our models."""
    return certify(
        opened.pipeline, people, opened.fair_metric, eps, opened.box, x_tune, confidence=confidence,
        output_distance=squared_error if opened.schema.regression else mean_squared_logits,
        distinct_people=x_tune is None, progress=progress,
    )  # fmt: skip


def _enough(people: pd.DataFrame) -> None:
    if len(people) < FEWEST:
        raise UserError(
            f"{len(people)} usable rows are too few to say anything with confidence; give at least {FEWEST}"
        )


def _new_people(opened: TableModel, frame: pd.DataFrame, distinct_people: bool, say: Any) -> pd.DataFrame:
    """Clean rows inside the domain that the model has not learned from; who is left out is said."""
    clean = opened.schema.apply(frame)
    if opened.seen is not None and not distinct_people:
        shared = opened.seen.too_many(clean)
        if shared:
            raise UserError(
                f"{shared:,} of {len(clean):,} rows are rows that the model was trained, chosen or tuned on; "
                "a certificate "
                "needs new people. If these are other people who look alike, say --distinct-people"
            )
    people = opened.inside(clean)
    if len(people) < len(clean):
        say(
            f"{len(clean) - len(people):,} of {len(clean):,} people hold categories that training did not "
            "have; they are "
            "left out, and the statement is about the others"
        )
    return people
