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
        return alone_on_card(partial(self._maps_of, padded, outputs))

    def _maps_of(self, padded: Sequence[Padded], outputs: Sequence[str]) -> list[list[np.ndarray]]:
        torch, made = self.model.torch, []
        with self.model.exactly():
            for batch in in_batches([pixels.shape for pixels, _ in padded]):
                pixels = torch.from_numpy(np.stack([padded[i][0] for i in batch])).to(self.device)
                made.append((batch, torch.cat(self.model.run(pixels, outputs), dim=1)))
            maps: list[list[np.ndarray]] = [[] for _ in padded]
            # The card does all that before the first answer is waited for.
            for batch, outcome in made:
                for place, i in enumerate(dict.fromkeys(batch)):
                    maps[i] = list(outcome[place][:, *padded[i][1]].contiguous().cpu().numpy())
        return maps
