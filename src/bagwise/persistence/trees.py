"""Decision trees of scikit-learn in model files: their arrays, checked before compiled code follows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bagwise._utils.sklearn_private import tree_and_node_type


class NotATree(ValueError):
    """The arrays do not describe a tree."""


def is_tree(value: Any) -> bool:
    """Whether this is the compiled part of a decision tree."""
    return type(value).__module__ == "sklearn.tree._tree" and type(value).__name__ == "Tree"


def tree_parts(tree: Any) -> dict[str, Any]:
    """What makes up a tree."""
    state = tree.__getstate__()
    return {
        "n_features": int(tree.n_features),
        "n_outputs": int(tree.n_outputs),
        "max_depth": int(state["max_depth"]),
        "n_classes": np.asarray(tree.n_classes),
        # Field by field: between them lie bytes that nobody has set, and the same tree must make the same file.
        "nodes": {name: np.ascontiguousarray(state["nodes"][name]) for name in state["nodes"].dtype.names},
        "values": state["values"],
    }


def tree_of(parts: dict[str, Any]) -> Any:
    """The tree of these parts. Its nodes are followed without a look at their numbers, so these are checked here."""
    tree_type, node_type = tree_and_node_type()
    n_features, values = int(parts["n_features"]), parts["values"]
    nodes = np.zeros(len(parts["nodes"]["left_child"]), dtype=node_type)
    for name in node_type.names:
        nodes[name] = parts["nodes"][name]
    n_classes, n_outputs = np.asarray(parts["n_classes"], dtype=np.intp), int(parts["n_outputs"])
    if len(nodes) == 0 or n_classes.shape != (n_outputs,) or n_outputs < 1 or n_classes.min() < 1:
        raise NotATree("the arrays of a tree have the wrong shape")
    if values.dtype != np.float64 or values.shape != (len(nodes), n_outputs, n_classes.max()):
        raise NotATree("the values of a tree have the wrong shape")
    inner = nodes[nodes["left_child"] != -1]
    numbers = np.arange(len(nodes))[nodes["left_child"] != -1]
    for side in ("left_child", "right_child"):
        # Children come after their parents, so that no path runs in a circle.
        if np.any(inner[side] <= numbers) or np.any(inner[side] >= len(nodes)):
            raise NotATree("a node of a tree has a child that is none")
    if np.any(inner["feature"] < 0) or np.any(inner["feature"] >= n_features):
        raise NotATree("a node of a tree asks for a feature that is none")
    tree = tree_type(n_features, n_classes, n_outputs)
    tree.__setstate__(
        {
            "max_depth": int(parts["max_depth"]),
            "node_count": len(nodes),
            "nodes": nodes,
            "values": np.ascontiguousarray(values),
        }
    )
    return tree
