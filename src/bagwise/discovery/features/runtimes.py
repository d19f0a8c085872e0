"""What runs an ONNX network: ONNX Runtime on the CPU; on an NVIDIA card torch, or ONNX Runtime's package for cards."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from bagwise._utils.optional import require
from bagwise._utils.torch_network import TorchNetwork, UnknownOperators

DEVICES = ("cpu", "cuda")
ON_CARD = "CUDAExecutionProvider"
# Full single precision: the shortened numbers (TF32) that cards multiply with by default are a thousandth off.
CARD_OPTIONS = {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}


class Runtime(Protocol):
    """A network that is ready to run.

    Attributes
    ----------
    input_shape : list
        Of its one input: whole numbers, and None or names where the size is free.
    dtype : np.dtype
        Of its input.
    """

    input_shape: list[Any]
    dtype: np.dtype

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """The network's one output for an input of its shape and type."""


def open_runtime(model: bytes, name: str, *, threads: int = 1, device: str = "cpu") -> Runtime:
    """Make a network ready.

    Parameters
    ----------
    model : bytes
        A serialised ONNX model.
    name : str
        For errors.
    threads : int
        Threads inside one call on the CPU.
    device : {"cpu", "cuda"}
        "cuda" takes torch, and onnxruntime-gpu for networks that torch cannot run here.
    """
    if device not in DEVICES:
        raise ValueError(f"unknown device {device!r}: use one of {', '.join(DEVICES)}")
    if device == "cpu":
        return OnnxRuntime(model, name, threads, ["CPUExecutionProvider"])
    torch = require("torch", extra="gpu")
    if not torch.cuda.is_available():
        raise ValueError("device cuda was asked for, but torch finds no CUDA card here: use cpu")
    try:
        return TorchNetwork(model, name, device)
    except UnknownOperators:
        runtime = require("onnxruntime", extra="vision")
        if ON_CARD in runtime.get_available_providers():
            network = OnnxRuntime(model, name, threads, [(ON_CARD, CARD_OPTIONS), "CPUExecutionProvider"])
            if ON_CARD in network.providers:  # without a card it would quietly use the CPU
                return network
        raise


class OnnxRuntime:
    """A network on ONNX Runtime; see `Runtime`."""

    def __init__(self, model: bytes, name: str, threads: int, providers: list[Any]) -> None:
        runtime = require("onnxruntime", extra="vision")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(model, options, providers=providers)
        except Exception as error:  # ONNX Runtime's errors share no base class
            raise ValueError(f"ONNX Runtime cannot run {name}: {error}") from error
        self.providers = self._session.get_providers()
        inputs = self._session.get_inputs()
        self.input_shape = list(inputs[0].shape) if len(inputs) == 1 else []
        self._input = inputs[0].name if inputs else ""
        half = bool(inputs) and inputs[0].type == "tensor(float16)"
        self.dtype = np.dtype(np.float16 if half else np.float32)

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        return self._session.run(None, {self._input: batch})[0]
