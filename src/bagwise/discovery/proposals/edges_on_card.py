"""The package's edge network on a graphics card."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from bagwise._utils.torch_network import TorchNetwork, alone_on_card, in_batches
from bagwise.discovery.proposals.edges import NetworkEdges, mirrored

Padded = tuple[np.ndarray, tuple[slice, slice]]


class CardEdges(NetworkEdges):
    """`NetworkEdges`, run by torch, on several images at once.

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

    def _run(self, image: np.ndarray, *outputs: str) -> list[np.ndarray]:
        return self.maps_of([self.padded(image, outputs)], outputs)[0]

    def padded(self, image: np.ndarray, outputs: Sequence[str]) -> Padded:
        """An image, uint8 (h, w, 3), as large as the network wants it for these outputs, and where it lies there."""
        return mirrored(image, self._multiple(outputs))

    def maps_of(self, padded: Sequence[Padded], outputs: Sequence[str]) -> list[list[np.ndarray]]:
        """Some of the network's maps of each image, float32 (h, w) in [0, 1].

        Parameters
        ----------
        padded : list
            From `padded`.
        outputs : sequence of str
            "edges", "figure" or both.
        """
        maps: list[list[np.ndarray]] = [[] for _ in padded]
        for batch in in_batches([pixels.shape for pixels, _ in padded]):
            pixels = np.stack([padded[i][0] for i in batch])
            made = alone_on_card(partial(self.model.computed, pixels, outputs))
            for place, i in enumerate(dict.fromkeys(batch)):
                maps[i] = [np.ascontiguousarray(each[place, 0][padded[i][1]]) for each in made]
        return maps
