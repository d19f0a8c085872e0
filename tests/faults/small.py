"""Discovery small enough to be run dozens of times: little pictures, a network of one layer, few boxes."""

import io

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageDraw

from bagwise.discovery.learning.models import Recipe
from bagwise.discovery.run.settings import Settings

RESULTS = ("images.parquet", "boxes.parquet", "boxes.json", "models/ball.bagwise", "models/gate.bagwise")


def write_network(path):
    """Eight random filters over squares of 32 pixels."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.normal(0, 0.05, (8, 3, 32, 32)).astype(np.float32), "weight")
    nodes = [
        helper.make_node("Conv", ["image", "weight"], ["map"], strides=[32, 32], kernel_shape=[32, 32]),
        helper.make_node("Relu", ["map"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "height", "width"])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 8, "rows", "columns"])],
        [weight],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def make_photographs(root, each=4):
    """Balls and gates, and the network beside them; gives the settings to find them with."""
    rng = np.random.default_rng(0)
    for number in range(each):
        for kind in ("ball", "gate"):
            image = Image.fromarray(rng.integers(90, 160, (90, 120, 3), dtype=np.uint8))
            x, y = rng.integers(5, 50, 2).tolist()
            pen = ImageDraw.Draw(image)
            (pen.ellipse if kind == "ball" else pen.rectangle)(
                (x, y, x + 40, y + 35), fill=(220, 30, 30) if kind == "ball" else (30, 60, 200)
            )
            (root / kind).mkdir(parents=True, exist_ok=True)
            buffer = io.BytesIO()
            image.save(buffer, "PNG")
            (root / kind / f"{number}.png").write_bytes(buffer.getvalue())
    # Some are said to show both, so that classes compete for boxes.
    names = [f"{kind}/{number}.png" for kind in ("ball", "gate") for number in range(each)]
    rows = [f"{name},{'ball;gate' if name.endswith('/0.png') else name[:4]}" for name in names]
    (root.parent / "labels.csv").write_text("\n".join(["file,labels", *rows, "ball/broken.png,ball"]) + "\n")
    network = root.parent / "small.onnx"
    write_network(network)
    return Settings(
        edges="gradient", max_boxes=8, components=4, backbone=str(network), recipe=Recipe(steps=100)
    )  # fmt: skip


def results(folder):
    """Bytes of what a run found."""
    return {name: (folder / name).read_bytes() for name in RESULTS}
