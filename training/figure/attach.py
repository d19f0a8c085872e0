"""Write the trained branch into the edge network's file, as a second output; every node of the edges stays as it is.

    python attach.py BRANCH.pt EDGES.onnx OUTPUT.onnx

Kernels are stored in 8 bits as those of the edge network are. A branch already in EDGES.onnx is replaced.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from branch import FigureBranch, load_branch
from export import OnnxOps
from onnx import TensorProto, helper
from trunk import PREFIX, tap_names, without_figure


class FigureOnnxOps(OnnxOps):
    """The operations of the branch as ONNX nodes, their names marked as the figure's."""

    def __init__(self) -> None:
        super().__init__()
        self._leading = self.constant(np.array([0], np.int64))
        self._two = self.constant(np.array([2], np.int64))
        self._four = self.constant(np.array([4], np.int64))

    def _name(self) -> str:
        return f"{PREFIX}_{super()._name()}"

    def resize_like(self, x: str, like: str) -> str:
        leading = self.node("Slice", self.node("Shape", x), self._leading, self._two)
        sides = self.node("Slice", self.node("Shape", like), self._two, self._four)
        sizes = self.node("Concat", leading, sides, axis=0)
        return self.node("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")

    def mean(self, x: str) -> str:
        return self.node("GlobalAveragePool", x)

    def enlarge(self, x: str) -> str:
        """To the image's size."""
        times = self.constant(np.array([1, 1, 4, 4], np.float32))
        return self.node("Resize", x, "", times, mode="linear", coordinate_transformation_mode="half_pixel")


def attach(branch: FigureBranch, edges: onnx.ModelProto) -> onnx.ModelProto:
    """The edge network with the branch as a second output: float32 (1, 1, h, w) in [0, 1], named ``figure``."""
    model = without_figure(edges)
    ops = FigureOnnxOps()
    logits, _ = branch.eval().wire(tap_names(model), ops)
    ops.nodes.append(helper.make_node("Sigmoid", [ops.enlarge(logits)], [PREFIX]))
    model.graph.node.extend(ops.nodes)
    model.graph.initializer.extend(ops.constants)
    shape = [1, 1, "height", "width"]
    model.graph.output.append(helper.make_tensor_value_info(PREFIX, TensorProto.FLOAT, shape))
    onnx.checker.check_model(model)
    return model


def main(branch: str, edges: str, output: str) -> None:
    aside = Path(output + ".part")
    aside.write_bytes(attach(load_branch(branch), onnx.load(edges)).SerializeToString())
    aside.replace(output)
    print(f"{output}: {Path(output).stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
