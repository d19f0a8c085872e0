"""Networks with random weights for tests."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def alexnet(path, batch=1):
    """A network of the shape of the paper's AlexNet as the ONNX Model Zoo has it, with random weights."""
    rng = np.random.default_rng(0)
    nodes, constants = [], []

    def weight(name, *shape):
        value = (rng.standard_normal(shape, dtype=np.float32) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32)
        constants.append(numpy_helper.from_array(value, name))
        return name

    def add(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def conv(x, number, channels, inputs, side, groups=1, **attributes):
        kernel = weight(f"conv{number}_w", channels, inputs // groups, side, side)
        bias = weight(f"conv{number}_b", channels)
        x = add("Conv", [x, kernel, bias], f"conv{number}_1", kernel_shape=[side] * 2, group=groups, **attributes)
        return add("Relu", [x], f"conv{number}_2")

    def pool(x, number):
        return add("MaxPool", [x], f"pool{number}_1", kernel_shape=[3, 3], strides=[2, 2])

    x = conv("data_0", 1, 96, 3, 11, strides=[4, 4])
    x = pool(add("LRN", [x], "norm1_1", size=5, alpha=1e-4, beta=0.75), 1)
    x = conv(x, 2, 256, 96, 5, groups=2, pads=[2] * 4)
    x = pool(add("LRN", [x], "norm2_1", size=5, alpha=1e-4, beta=0.75), 2)
    x = conv(x, 3, 384, 256, 3, pads=[1] * 4)
    x = conv(x, 4, 384, 384, 3, groups=2, pads=[1] * 4)
    x = pool(conv(x, 5, 256, 384, 3, groups=2, pads=[1] * 4), 5)
    x = add("Flatten", [x], "flat")
    x = add("Gemm", [x, weight("fc6_w", 4096, 256 * 25), weight("fc6_b", 4096)], "fc6_1", transB=1)
    x = add("Relu", [x], "fc6_2")
    x = add("Gemm", [x, weight("fc7_w", 1000, 4096), weight("fc7_b", 1000)], "fc7_1", transB=1)
    add("Softmax", [x], "prob_1")
    graph = helper.make_graph(
        nodes,
        "alexnet",
        [helper.make_tensor_value_info("data_0", TensorProto.FLOAT, [batch, 3, 224, 224])],
        [helper.make_tensor_value_info("prob_1", TensorProto.FLOAT, [batch, 1000])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)])
    model.ir_version = 7
    path.write_bytes(model.SerializeToString())
    return path
