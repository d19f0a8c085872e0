"""Ending work at a random or a chosen moment, as a power cut or `kill -9` would.

The work runs in a forked child, which costs milliseconds, because all imports are done before. Random moments find
what nobody thought of; chosen ones (just before and after every call by which files change) leave no gap between them.
"""

import os
import random
import signal
import time

CHANGES = ("replace", "rename", "fsync", "unlink", "mkdir", "chmod")


def in_child(work, kill_after=None, kill_at_change=None):
    """Run work in a child process; give its exit code, negative when a signal ended it.

    ``kill_after`` is in seconds; ``kill_at_change`` ends the child at its n-th change of the file system.
    """
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            if kill_at_change is not None:
                _count_changes(kill_at_change)
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if kill_after is not None:
        end = time.monotonic() + kill_after
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _count_changes(last):
    """From now on, end this process without warning at the n-th call that changes files: before or after it."""
    count = 0

    def counted(function):
        def call(*args, **kwargs):
            nonlocal count
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*args, **kwargs)
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in CHANGES:
        setattr(os, name, counted(getattr(os, name)))


def random_kills(work, times, seconds, seed=0):
    """Start work again and again, ending it after random times of up to ``seconds``; give the number of kills."""
    rng = random.Random(seed)
    return sum(in_child(work, kill_after=rng.uniform(0, seconds)) == -signal.SIGKILL for _ in range(times))


def kills_at_every_change(work, most=60):
    """End work at its first change of files, at its second, and so on until it gets to its end; give the number."""
    for at in range(1, most + 1):
        code = in_child(work, kill_at_change=at)
        if code == 0:
            return at - 1
        if code != -signal.SIGKILL:
            raise AssertionError(f"the work failed with exit code {code}")
    return most
