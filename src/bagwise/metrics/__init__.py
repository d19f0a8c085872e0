"""How good an answer is."""

from bagwise.metrics.corloc import CorLoc, Rate, corloc_any_class, corloc_per_class, iou
from bagwise.metrics.detection import Calibration, average_precision, calibration, detection_rate, first_hits
from bagwise.metrics.probability import expected_calibration_error
from bagwise.metrics.truth import TruthBox

__all__ = [
    "Calibration",
    "CorLoc",
    "Rate",
    "TruthBox",
    "average_precision",
    "calibration",
    "corloc_any_class",
    "corloc_per_class",
    "detection_rate",
    "expected_calibration_error",
    "first_hits",
    "iou",
]
