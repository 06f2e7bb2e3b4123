"""d_X, the fair metric: each learner returns a ``FairMetric``."""

from evenhand.fair_metrics.classifier import AttributeModel, from_classifier
from evenhand.fair_metrics.columns import from_columns
from evenhand.fair_metrics.explore import explore
from evenhand.fair_metrics.face import face
from evenhand.fair_metrics.metric import FairMetric
from evenhand.fair_metrics.streaming import face_stream, from_classifier_stream

__all__ = [
    "AttributeModel",
    "FairMetric",
    "explore",
    "face",
    "face_stream",
    "from_classifier",
    "from_classifier_stream",
    "from_columns",
]
