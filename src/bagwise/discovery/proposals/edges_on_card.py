"""The package's edge network on a graphics card."""

from collections.abc import Sequence
from dataclasses import dataclass
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
        return self.finish(self.begin([self.padded(image, outputs)], outputs))[0]

    def padded(self, image: np.ndarray, outputs: Sequence[str]) -> Padded:
        """An image, uint8 (h, w, 3), as large as the network wants it for these outputs, and where it lies there."""
        return mirrored(image, self._multiple(outputs))

    def begin(self, padded: Sequence[Padded], outputs: Sequence[str]) -> "Begun":
        """Have the card make some of the network's maps, "edges", "figure" or both, of what is `padded`."""
        return alone_on_card(partial(self._begin, padded, outputs))

    def _begin(self, padded: Sequence[Padded], outputs: Sequence[str]) -> "Begun":
        torch, made = self.model.torch, []
        with self.model.exactly():
            for batch in in_batches([pixels.shape for pixels, _ in padded]):
                pixels = torch.from_numpy(np.stack([padded[i][0] for i in batch])).to(self.device)
                made.append((batch, torch.cat(self.model.run(pixels, outputs), dim=1)))
        return Begun(made, [inside for _, inside in padded], self.model.mark())

    def finish(self, begun: "Begun") -> list[list[np.ndarray]]:
        """The maps of each image, float32 (h, w) in [0, 1]: once the card has made them, whatever else it has to do."""
        return alone_on_card(partial(self._finish, begun))

    def _finish(self, begun: "Begun") -> list[list[np.ndarray]]:
        maps: list[list[np.ndarray]] = [[] for _ in begun.inside]
        with self.model.exactly(), self.model.copies_from(begun.mark):
            for batch, made in begun.made:
                for place, i in enumerate(dict.fromkeys(batch)):
                    maps[i] = list(made[place][:, *begun.inside[i]].contiguous().cpu().numpy())
        return maps


@dataclass(frozen=True)
class Begun:
    """Maps that a card is at work on: the batches with their tensors, where each image lies, and a mark after them."""

    made: Sequence[tuple[list[int], Any]]
    inside: Sequence[tuple[slice, slice]]
    mark: Any
