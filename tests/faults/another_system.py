"""A pytest plugin that takes from Python what Windows does not have, and forbids what it forbids.

    pytest -p tests.faults.another_system ...

No fcntl, resource, fork or folders that can be flushed; links need rights that nobody has; a file that is open or
mapped can be neither replaced, renamed nor deleted; files have no rights to set.
"""

import os
import sys
from pathlib import Path

MISSING_MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty")
MISSING_NAMES = ("O_DIRECTORY", "fork", "fchmod", "chown")

for module in MISSING_MODULES:
    sys.modules[module] = None
for name in MISSING_NAMES:
    delattr(os, name)


def _refuse_links(*args, **kwargs):
    raise OSError(1314, "A required privilege is not held by the client")


def _in_use(path) -> bool:
    """Whether this process holds the file, or one inside the folder, open or mapped."""
    place = os.path.realpath(path)
    held = set()
    for handle in os.listdir("/proc/self/fd"):
        try:
            held.add(os.readlink(f"/proc/self/fd/{handle}"))
        except OSError:
            continue  # closed meanwhile
    with open("/proc/self/maps") as maps:
        held |= {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.count("/") > 1}
    return any(other == place or other.startswith(place + os.sep) for other in held)


def _guarded(function, both_ends):
    def call(path, *args, **kwargs):
        if kwargs.get("dir_fd") is None:  # shutil.rmtree goes by handles, which Windows does not have
            ends = (path, args[0]) if both_ends else (path,)
            if any(_in_use(end) for end in ends):
                raise PermissionError(13, "The process cannot access the file because it is being used", str(path))
        return function(path, *args, **kwargs)

    return call


os.symlink = os.link = _refuse_links
for name in ("replace", "rename"):
    setattr(os, name, _guarded(getattr(os, name), both_ends=True))
for name in ("unlink", "remove"):
    setattr(os, name, _guarded(getattr(os, name), both_ends=False))
Path.symlink_to = _refuse_links
