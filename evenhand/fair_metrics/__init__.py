"""d_X, the fair metric: each learner returns a ``FairMetric``."""

from evenhand.fair_metrics.classifier import AttributeModel, from_classifier, from_classifier_stream
from evenhand.fair_metrics.columns import from_columns
from evenhand.fair_metrics.explore import explore
from evenhand.fair_metrics.face import face, face_stream
from evenhand.fair_metrics.metric import FairMetric, check_free_share, free_share
from evenhand.fair_metrics.tokens import TokenMetric, per_token

__all__ = [
    "AttributeModel",
    "FairMetric",
    "TokenMetric",
    "check_free_share",
    "explore",
    "face",
    "face_stream",
    "free_share",
    "from_classifier",
    "from_classifier_stream",
    "from_columns",
    "per_token",
]
