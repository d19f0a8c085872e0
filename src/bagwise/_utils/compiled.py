"""How inner loops are compiled: one place for what all of them need.

Imported on first use, because importing numba takes longer than most fits.
"""

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

# Sums may be reordered (that is what lets them run on vector units); NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}

# A loop that calls another takes it in whole. Otherwise there are two machine codes of the inner one, compiled alone
# and as a part, with sums in different orders: numba calls the first in the process that compiles and the second in
# those that read the cache, and the same seed would not give the same bits on the first day and on the second.
_ALWAYS: dict[str, Any] = {"cache": True, "nogil": True, "forceinline": True}


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first use, kept on disk; the interpreter's lock is released while it runs."""
    return njit(**_ALWAYS)(function)


def fast_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same as `loop`, with sums in any order."""
    return njit(fastmath=FAST, **_ALWAYS)(function)


def fused_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same as `loop`, but a product and a sum may be one instruction; nothing is reordered."""
    return njit(fastmath={"contract"}, **_ALWAYS)(function)


def part_of_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """A piece of a loop, put into it before anything is compiled: arrays that it is given are not counted anew."""
    return njit(inline="always")(function)


def _lent(_typing: Any, array: Any) -> Any:
    """The same array without its count of owners, for inner loops.

    Numba counts owners wherever an array is passed on, by atomic steps that cost more than a few reads. Lend only what
    the function got as an argument: its caller keeps that alive, while what it made itself is freed after the last use
    of the name that owns it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = make_array(signature.args[0])(context, builder, value=arguments[0])
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()

    return array(array), generate


lent: Any = intrinsic(_lent)

# For operations that numba's `overload` puts into loops.
FAST_PART: Any = {"fastmath": FAST, "forceinline": True}
