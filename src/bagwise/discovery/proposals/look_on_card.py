"""Looking at several images at once on a graphics card."""

from collections.abc import Sequence

import numpy as np

from bagwise.discovery.proposals.edges_on_card import Begun, CardEdges, Padded
from bagwise.discovery.proposals.look import Looker, SeenMaps, working_copy


class CardLooker(Looker):
    """A `Looker` whose detector is `CardEdges`."""

    detector: CardEdges

    def ready(self, image: np.ndarray) -> Padded | None:
        """What the detector is shown of an image; None of one too small to look for edges in."""
        small = working_copy(image)
        return None if small is None else self.detector.padded(small, self._outputs)

    def begin(self, images: Sequence[Padded | None]) -> Begun:
        """Have the card look at images that are `ready`."""
        return self.detector.begin([each for each in images if each is not None], self._outputs)

    def finish(self, images: Sequence[Padded | None], begun: Begun) -> list[SeenMaps | None]:
        """The `maps` of each of these images."""
        seen = iter(self.detector.finish(begun))
        return [None if each is None else self._pair(next(seen)) for each in images]

    @property
    def _outputs(self) -> tuple[str, ...]:
        return ("edges",) if self._figure is None else ("edges", "figure")

    def _pair(self, maps: list[np.ndarray]) -> SeenMaps:
        edges, figure = maps if len(maps) == 2 else (maps[0], np.zeros_like(maps[0]))
        return edges, figure
