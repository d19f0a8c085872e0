"""The package's edge network on a graphics card."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bagwise._utils.torch_network import TorchNetwork, alone_on_card
from bagwise.discovery.proposals.edges import NetworkEdges


class CardEdges(NetworkEdges):
    """`NetworkEdges`, run by torch.

    Parameters
    ----------
    device : str
        As torch names it.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def _open(self) -> Any:
        return TorchNetwork(self.weights.read_bytes(), self.weights.name, self.device)

    def _facts(self) -> tuple[set[str], int]:
        return set(self.model.outputs), int(self.model.metadata["stride"])

    def _maps(self, padded: np.ndarray, outputs: Sequence[str]) -> list[np.ndarray]:
        network = self.model
        maps = alone_on_card(lambda: network.computed(padded[None], outputs))
        return [each[0, 0] for each in maps]
