"""Objects in images with image-level labels: from a folder of images to a run folder with boxes.

`bagwise.discover` and `bagwise.detect` do all of it; here are the parts. A name is imported when it is first asked
for, so that reading images needs no network and proposing boxes no learning.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bagwise.discovery.check.checks import Finding, check_images
    from bagwise.discovery.evaluation.runs import evaluate_run
    from bagwise.discovery.features.backbones import default_backbone, open_backbone
    from bagwise.discovery.features.store import FeatureStore
    from bagwise.discovery.learning.models import Recipe
    from bagwise.discovery.proposals.boxes import edge_boxes
    from bagwise.discovery.proposals.edges import edge_detector
    from bagwise.discovery.run.export import export_run
    from bagwise.discovery.run.folder import RunFolder
    from bagwise.discovery.run.settings import Settings
    from bagwise.discovery.sources.images import read_image
    from bagwise.discovery.sources.imageset import ImageSet
    from bagwise.discovery.sources.reading import read_source, read_unlabelled

_FROM = {
    "check.checks": "Finding check_images",
    "evaluation.runs": "evaluate_run",
    "features.backbones": "default_backbone open_backbone",
    "features.store": "FeatureStore",
    "learning.models": "Recipe",
    "proposals.boxes": "edge_boxes",
    "proposals.edges": "edge_detector",
    "run.export": "export_run",
    "run.folder": "RunFolder",
    "run.settings": "Settings",
    "sources.images": "read_image",
    "sources.imageset": "ImageSet",
    "sources.reading": "read_source read_unlabelled",
}

__all__ = [
    "FeatureStore",
    "Finding",
    "ImageSet",
    "Recipe",
    "RunFolder",
    "Settings",
    "check_images",
    "default_backbone",
    "edge_boxes",
    "edge_detector",
    "evaluate_run",
    "export_run",
    "open_backbone",
    "read_image",
    "read_source",
    "read_unlabelled",
]


def __getattr__(name: str) -> Any:
    for module, names in _FROM.items():
        if name in names.split():
            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
