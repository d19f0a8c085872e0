"""What a run folder keeps of its images and models, ready to score boxes as they did in the run."""

import bagwise
from bagwise.discovery.calibration import Calibration
from bagwise.discovery.imageset import ImageSet
from bagwise.discovery.learning import ClassModel, Objectness
from bagwise.discovery.runfolder import RunFolder
from bagwise.discovery.settings import Settings


def load_models(run: RunFolder) -> dict[str, ClassModel]:
    """What was learnt of every class of the run; a class without a model of its own goes by objectness alone."""
    if "learnt" not in run.manifest:
        raise ValueError(f"{run.path} does not say how it was learnt: run `bagwise discover` again")
    learnt = run.manifest["learnt"]
    prior = Objectness(learnt["prior_mean"], Settings.from_dict(run.manifest["settings"]).recipe.prior_weight)
    models = {}
    for label in run.classes:
        path = run.model_path(label)
        model = bagwise.load(path) if path.is_file() else None
        models[label] = ClassModel(label, model, Calibration(*learnt["calibration"].get(label, ())), prior)
    return models


def images_of(run: RunFolder) -> ImageSet:
    """The run's images with their labels."""
    labels = [tuple(names) for names in run.images["labels"].to_pylist()]
    return ImageSet(run.source_root, run.images["file"].to_pylist(), labels)
