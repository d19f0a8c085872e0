"""What a discovery run is made with, in one record that can be written down and read back."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bagwise._utils.torch_network import TorchNetwork
from bagwise.discovery.features.backbones import Backbone, default_backbone, open_backbone
from bagwise.discovery.features.extraction import Extractor
from bagwise.discovery.features.extraction_on_card import CardExtractor
from bagwise.discovery.features.on_card import CardRoiFeatures
from bagwise.discovery.features.regions import CONTRAST, SHORT_SIDES, CropFeatures, Features, RoiFeatures
from bagwise.discovery.learning.models import Recipe
from bagwise.discovery.learning.ranking import Ranking
from bagwise.discovery.proposals.edges import edge_detector
from bagwise.discovery.proposals.edges_on_card import CardEdges
from bagwise.discovery.proposals.look import Looker
from bagwise.discovery.proposals.look_on_card import CardLooker

PRESETS = ("default", "paper")
PAPER_LAYER = "fc6_1"  # of AlexNet as the ONNX Model Zoo has it (bvlcalexnet-12.onnx)


@dataclass(frozen=True)
class Settings:
    """Settings of a run.

    Attributes
    ----------
    edges : str
        Edge detector: "network", "gradient" or the file of a structured forest.
    figure : bool
        Whether the figure map is asked: its components' boxes join the proposals, and it helps to choose the whole.
    max_boxes, min_score
        Of Edge Boxes.
    backbone, layer, normalise
        An ONNX file, where to cut it, and how it wants its pixels; None for the default network.
    crop : bool
        Run the network on every box by itself.
    components : int
        Numbers per box after reduction; 0 keeps what the network returns.
    short_sides : tuple of int
        Short sides of the image in the network's passes over it; a box has its features from the one that suits it.
    contrast : float
        How much of a box's surroundings is taken off its features; crops have no surroundings.
    recipe : Recipe
        How classes are learned.
    max_objects : int
        Most objects of a class in one image.
    rivalry : bool
        Whether a box that looks like another class of its image scores less.
    device : {"cpu", "cuda"}
        Where the network runs and RMI-SVM learns. It is no part of what a run is, and neither written down with the
        other settings nor compared with those of a store: a card's features differ from the CPU's by less than the
        store's own rounding, so a store may hold both.
    """

    edges: str = "network"
    figure: bool = True
    max_boxes: int = 400
    min_score: float = 0.01
    backbone: str | None = None
    layer: str | None = None
    normalise: str = "imagenet"
    crop: bool = False
    components: int = 256
    short_sides: tuple[int, ...] = SHORT_SIDES
    contrast: float = CONTRAST
    recipe: Recipe = field(default_factory=Recipe)
    max_objects: int = 1
    rivalry: bool = True
    device: str = "cpu"

    @classmethod
    def preset(cls, name: str, backbone: str | None = None, layer: str | None = None) -> "Settings":
        """The settings called ``name``.

        "paper" is the paper's own recipe: boxes of score .1 or more, AlexNet's fc6 of every warped box (pass its
        ONNX file as ``backbone``; without it the default network stands in), no prior, and RMI-SVM as published:
        2000 steps on bags drawn independently, the last iterate taken.
        """
        if name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}: use one of {', '.join(PRESETS)}")
        if name == "default":
            return cls(backbone=backbone, layer=layer)
        recipe = Recipe(
            prior_weight=0.0, lam=0.0015, steps=2000, average=False, sampling="uniform", refit=False,
            ranking=Ranking.none(),
        )  # fmt: skip
        settings = cls(figure=False, min_score=0.1, short_sides=(600,), contrast=0.0, recipe=recipe, rivalry=False)
        if backbone is None:
            return settings
        return replace(
            settings, backbone=backbone, layer=layer or PAPER_LAYER, normalise="caffe", crop=True, components=0
        )

    def changed(self, *, method: str | None = None, seed: int | None = None, **changes: Any) -> "Settings":
        """A copy with some settings changed; None leaves a setting as it is."""
        recipe = replace(self.recipe, **_given(method=method, seed=seed))
        return replace(self, recipe=recipe, **_given(**changes))

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {name: value for name, value in asdict(self).items() if name != "device"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Settings":
        """From the manifest."""
        try:
            recipe = dict(values["recipe"])
            recipe["ranking"] = Ranking(**recipe["ranking"])
            return cls(**{**values, "recipe": Recipe(**recipe), "short_sides": tuple(values["short_sides"])})
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the settings of the run are damaged, or of another version of bagwise ({error}): run discover again"
            ) from error

    def open_backbone(self) -> Backbone:
        """The network."""
        if self.backbone is None:
            if self.layer is not None:
                raise ValueError("a layer needs the network it belongs to: give its ONNX file as backbone")
            return default_backbone(device=self.device)
        return open_backbone(self.backbone, self.layer, normalise=self.normalise, device=self.device)

    def make_features(self) -> Features:
        """What turns boxes into vectors."""
        backbone = self.open_backbone()
        if self.crop:
            return CropFeatures(backbone)
        kind = CardRoiFeatures if isinstance(backbone.runtime, TorchNetwork) else RoiFeatures
        return kind(backbone, contrast=self.contrast, short_sides=self.short_sides)

    def make_proposer(self) -> Looker:
        """What finds boxes, edges and figure."""
        detector = edge_detector(self.edges, device=self.device)
        kind = CardLooker if isinstance(detector, CardEdges) else Looker
        return kind(detector, figure=self.figure, min_score=self.min_score, max_boxes=self.max_boxes)

    def make_extractor(self, features: Features, jobs: int) -> Extractor:
        """What fills a store, with features that were made already."""
        kind = CardExtractor if isinstance(features, CardRoiFeatures) else Extractor
        return kind(self.make_proposer(), features, components=self.components, jobs=jobs)

    def store_settings(self, backbone: Backbone) -> dict[str, Any]:
        """What determines the content of the feature store: a store made with other settings cannot be used."""
        return {
            "edges": self.edges,
            "figure": self.figure,
            "max_boxes": self.max_boxes,
            "min_score": self.min_score,
            "backbone": backbone.name,
            "backbone_sha256": backbone.sha256,
            "crop": self.crop,
            "components": self.components,
            "short_sides": list(self.short_sides),
            "contrast": self.contrast,
        }


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def default_jobs() -> int:
    """Threads to use: the cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
