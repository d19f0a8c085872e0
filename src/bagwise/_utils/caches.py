"""Where bagwise keeps what it made or fetched once: networks, data sets, the secrets of review pages."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder in the environment variable BAGWISE_CACHE, else the user's cache folder. It need not exist yet."""
    chosen = os.environ.get("BAGWISE_CACHE")
    if chosen:
        return Path(chosen)
    import pooch

    return Path(pooch.os_cache("bagwise"))
