"""What a run of the tests left out, by what is missing, with how to get it: for the end of `make test`."""

import re
from collections import Counter
from collections.abc import Iterable

# What a reason for skipping speaks of; what that is called; how to get it. The first that matches counts.
WAYS = [
    (r"chromium|playwright", "Chromium", "apt-get install chromium (Debian, Ubuntu); pip install playwright"),
    (r"cuda|graphics card|no card", "a graphics card", "run the tests on a machine that has one"),
    (r"torch|\[gpu\]", "PyTorch", "pip install torch --index-url https://download.pytorch.org/whl/cpu"),
    (r"BAGWISE_DATA", "the data sets", "docs/howto/data.md says where they are; name their folder in BAGWISE_DATA"),
    (r"\bvision\b|cv2|onnx|PIL|efficientnet", "the extra vision", "pip install 'bagwise[vision]'"),
    (r"heic|pillow_heif", "the extra heic", "pip install 'bagwise[heic]'"),
    (r"h5py|hdf5", "the extra hdf5", "pip install 'bagwise[hdf5]'"),
    (r"\[review\]|starlette", "the extra review", "pip install 'bagwise[review]'"),
    (r"\[cluster\]|fsspec|dask|distributed", "the extra cluster", "pip install 'bagwise[cluster]'"),
    (r"dev dependencies|pycocotools|moto|s3fs|could not import|no module named", "tools of the tests",
     "pip install --group dev"),
]  # fmt: skip
NOT_MISSING = re.compile(r"there is a card here|this is that process|runs in a process of its own")


def not_tested(reasons: Iterable[str]) -> list[str]:
    """One line for everything that was missing, the commonest first; other reasons as they stand.

    Parameters
    ----------
    reasons : one for each skipped test, as pytest reports it
    """
    missing: Counter[tuple[str, str]] = Counter()
    for reason in reasons:
        text = reason.removeprefix("Skipped: ")
        if NOT_MISSING.search(text):
            continue
        for pattern, name, way in WAYS:
            if re.search(pattern, text, re.IGNORECASE):
                missing[f"without {name}", way] += 1
                break
        else:
            missing[text, ""] += 1
    return [
        f"{count} {'test' if count == 1 else 'tests'} {what}" + (f": {way}" if way else "")
        for (what, way), count in missing.most_common()
    ]
