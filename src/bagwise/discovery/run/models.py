"""What a run folder keeps of its images and models, ready to score boxes as they did in the run."""

import bagwise
from bagwise.discovery.learning.confidence import Calibration
from bagwise.discovery.learning.models import OBJECTNESS_ALONE, ClassModel, Objectness
from bagwise.discovery.learning.ranking import Ranking
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.sources.columns import LabelSets, Names
from bagwise.discovery.sources.imageset import ImageSet


def load_models(run: RunFolder) -> dict[str, ClassModel]:
    """What was learned of every class of the run; a class without a model of its own goes by objectness alone."""
    learned = run.manifest.get("learnt", {})
    if not {"prior_mean", "calibration", "trust"} <= learned.keys():
        raise ValueError(f"{run.path} does not say how it was learned: run `bagwise discover` again")
    recipe = Settings.from_dict(run.manifest["settings"]).recipe
    prior = Objectness(learned["prior_mean"], recipe.prior_weight)
    models = {}
    for label in run.classes:
        path = run.model_path(label)
        # A file that the manifest does not know was left by the refit of an earlier run.
        model = bagwise.load(path) if label in learned["calibration"] and path.is_file() else None
        calibration = Calibration(*learned["calibration"].get(label, ()))
        ranking = recipe.ranking if recipe.method != OBJECTNESS_ALONE else Ranking.none()
        models[label] = ClassModel(label, model, calibration, prior, ranking, learned["trust"].get(label, 0.0))
    return models


def images_of(run: RunFolder) -> ImageSet:
    """The run's images with their labels."""
    return ImageSet(run.source_root, Names.of_column(run.images["file"]), LabelSets.of_column(run.images["labels"]))
