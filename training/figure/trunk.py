"""The edge network as a frozen trunk: its ONNX file, and the maps inside that the figure branch reads."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx.utils import Extractor

PREFIX = "figure"


def without_figure(model: onnx.ModelProto) -> onnx.ModelProto:
    """The edge network alone: what attach.py added, known by its names, taken off again."""
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    for values, name in (
        (plain.graph.node, lambda node: node.output[0]),
        (plain.graph.initializer, lambda tensor: tensor.name),
        (plain.graph.output, lambda output: output.name),
    ):
        kept = [value for value in values if not name(value).startswith(PREFIX)]
        del values[:]
        values.extend(kept)
    return plain


def tap_names(model: onnx.ModelProto) -> list[tuple[str, str]]:
    """Names of the (encoder, decoder) maps at strides 4, 8 and 16, found by following the decoder's wiring."""
    made_by = {node.output[0]: node for node in model.graph.node}
    # Each step of the decoder is Add(Conv(encoder's map), Resize(Conv(decoder's map))).
    steps = [n for n in model.graph.node if n.op_type == "Add" and made_by[n.input[1]].op_type == "Resize"]
    skips = [made_by[step.input[0]].input[0] for step in steps]
    decoded = [made_by[made_by[step.input[1]].input[0]].input[0] for step in steps]
    # The decoder's first map is Clip(Conv(Clip(Conv(encoder's end)))).
    end = decoded[0]
    for _ in range(4):
        end = made_by[end].input[0]
    return list(zip([end, *skips[:2]], decoded))[::-1]


def open_session(model: onnx.ModelProto, threads: int = 1) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Trunk:
    """From images to the maps of `tap_names`."""

    def __init__(self, weights: str | Path):
        model = without_figure(onnx.load(str(weights)))
        self.taps = tap_names(model)
        names = [name for pair in self.taps for name in pair]
        for name in names:
            model.graph.value_info.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
        # Cut off above the last tap: the edges themselves, at full size, would cost the most.
        self.session = open_session(Extractor(model).extract_model(["image"], names))
        self.names = names

    def __call__(self, images: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Map uint8 (n, h, w, 3), sides multiples of 16, to ((encoder, decoder), ...) from stride 4 to 16."""
        maps = self.session.run(self.names, {"image": images})
        return list(zip(maps[::2], maps[1::2]))
