"""`bagwise.discover` and `bagwise.detect`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.api.result import Discovery
from bagwise.discovery.run import pipeline
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.sources.reading import Images, read_source, read_unlabelled
from bagwise.review.rerun import forget_refit, repeat_refit, was_refitted

if TYPE_CHECKING:
    from bagwise._utils.cluster import Cluster

DEFAULT_OUTPUT = "bagwise-run"


def discover(
    images: Images,
    labels: Any = None,
    output: str | os.PathLike[str] = DEFAULT_OUTPUT,
    *,
    split: str | None = None,
    negative: Collection[str] | None = None,
    preset: str = "default",
    method: str | None = None,
    max_objects: int | None = None,
    max_boxes: int | None = None,
    edges: str | None = None,
    figure: bool = True,
    backbone: str | os.PathLike[str] | None = None,
    layer: str | None = None,
    normalise: str | None = None,
    crop: bool = False,
    snapshots: bool = False,
    discard_refit: bool = False,
    jobs: int | None = None,
    device: str = "cpu",
    seed: int = 0,
    cluster: Cluster | None = None,
    store: str | None = None,
    say: Callable[[str], None] = pipeline.silent,
) -> Discovery:
    """Find the objects of each class in images that carry only image-level labels.

    Progress is shown on standard error. An interrupted call resumes when it is made again with the same output
    folder, and images that were added since then are all that is worked on.

    Parameters
    ----------
    images : path or sequence of paths
        A folder with one subfolder per class, a VOC, COCO or FiftyOne folder, Hugging Face's image folder; or, with
        ``labels``, the folder that the names in them start from, or the images themselves.
    labels : path, mapping, sequence or pandas.DataFrame, optional
        A table of labels (.csv, .jsonl), a COCO or FiftyOne file (.json), a mapping of image names to a label or
        several, one entry for each of a sequence of images, or a data frame with the columns of a table.
    output : path, default="bagwise-run"
        The run folder, which holds features, models and boxes. It belongs to one folder of images.
    split : str, optional
        Which part of a VOC, COCO or Hugging Face folder: "train", "val", ...
    negative : collection of str, optional
        Labels that mean "none of these classes"; by default "none", "negative", "background" and the like.
    preset : {"default", "paper"}, default="default"
        "paper" is the published recipe.
    method : str, optional
        "RMISVC", another classifier that scores instances, or "edge-boxes"; by default that of the preset.
    max_objects : int, optional
        Most objects of a class in one image.
    max_boxes : int, optional
        Most boxes to consider in one image.
    edges : str, optional
        Edges that boxes are proposed from: "network", "gradient", or the file of a structured forest.
    figure : bool, default=True
        Whether the map of what stands out in an image is asked; its teacher once learned from drawn masks.
    backbone, layer, normalise
        An ONNX file to describe boxes with, where to cut it, and how it wants its pixels ("imagenet", "caffe" or
        "centred"). By default EfficientNet-Lite0.
    crop : bool, default=False
        Run the network on every box by itself: much slower.
    snapshots : bool, default=False
        Also keep the answers after 0, 100, 500, 1000 and 2000 steps of learning.
    discard_refit : bool, default=False
        When the run in the output folder was refitted on the review page, leave the boxes as discovered. By default
        the refit is repeated with the same decisions.
    jobs : int, optional
        Threads; by default one per core.
    device : {"cpu", "cuda"}, default="cpu"
    seed : int, default=0
        Of all random numbers.
    cluster : Cluster, optional
        Where to work instead of here.
    store : str, optional
        With a cluster, the folder or URL that all workers see, for features; by default the run folder.
    say : callable
        Gets a line of text now and then. Without it, what you should know becomes a warning.

    Returns
    -------
    Discovery

    Examples
    --------
    >>> import bagwise
    >>> found = bagwise.discover("photos", "labels.csv")  # doctest: +SKIP
    >>> found.to_pandas()  # doctest: +SKIP
    >>> found.export("yolo", "dataset")  # doctest: +SKIP
    """
    settings = Settings.preset(preset, os.fspath(backbone) if backbone is not None else None, layer).changed(
        method=method,
        max_objects=max_objects,
        max_boxes=max_boxes,
        edges=edges,
        figure=None if figure else False,
        normalise=normalise,
        crop=crop or None,
        device=device,
        seed=seed,
    )
    source = read_source(images, labels, split, negative)
    run = pipeline.discover(
        source,
        Path(output),
        settings=settings,
        snapshots=snapshots,
        jobs=jobs,
        say=say,
        cluster=cluster,
        store_at=store,
    )
    if was_refitted(run.path):
        (forget_refit if discard_refit else repeat_refit)(run, say)
    return Discovery(run)


def detect(
    model: str | os.PathLike[str] | RunFolder | Discovery,
    images: Images,
    output: str | os.PathLike[str] | None = None,
    *,
    threshold: float = pipeline.SHOWN_FROM,
    jobs: int | None = None,
    device: str = "cpu",
    cluster: Cluster | None = None,
    store: str | None = None,
    say: Callable[[str], None] = pipeline.silent,
) -> Discovery:
    """Find the classes of an earlier run in images without labels.

    Parameters
    ----------
    model : path or Discovery
        What `discover` returned, or its folder.
    images : path or sequence of paths
        An image, a folder of images, or the images themselves.
    output : path, optional
        The folder of the new run; by default a temporary one, which disappears with the object that is returned.
    threshold : float, default=0.9
        An image gets boxes of the classes that it shows with this probability or more.
    jobs, device, cluster, store, say
        As for `discover`.

    Returns
    -------
    Discovery
        Holds a box for every class that an image shows by that measure.

    Examples
    --------
    >>> import bagwise
    >>> new = bagwise.detect("bagwise-run", "inbox")  # doctest: +SKIP
    >>> new.boxes[0].label  # doctest: +SKIP
    """
    source = read_unlabelled(images)
    room = tempfile.TemporaryDirectory(prefix="bagwise-detect-") if output is None else None
    run = pipeline.discover_unlabelled(
        run_folder(model).path,
        source,
        Path(room.name if output is None and room is not None else os.fspath(output or "")),
        threshold=threshold,
        jobs=jobs,
        device=device,
        say=say,
        cluster=cluster,
        store_at=store,
    )
    return Discovery(run, room)


def run_folder(of: str | os.PathLike[str] | RunFolder | Discovery) -> RunFolder:
    """The run folder of whatever names one."""
    if isinstance(of, Discovery):
        return of.run
    return of if isinstance(of, RunFolder) else RunFolder(Path(of))
