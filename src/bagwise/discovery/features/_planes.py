"""Compiled part of `backbones`: pixels as the planes of numbers that a network takes."""

from bagwise._utils.compiled import loop


@loop
def fill_planes(images, values, sources, planes):
    """Look up the number that stands for each pixel's brightness.

    Parameters
    ----------
    images : uint8 array (n, rows, columns, 3)
    values : float32 array (3, 256)
        For each plane the number of every brightness.
    sources : int array (3,)
        The channel that each plane is made of.
    planes : float32 array (n, 3, rows, columns)
        Filled.
    """
    for i in range(images.shape[0]):
        for p in range(3):
            for y in range(images.shape[1]):
                for x in range(images.shape[2]):
                    planes[i, p, y, x] = values[p, images[i, y, x, sources[p]]]
