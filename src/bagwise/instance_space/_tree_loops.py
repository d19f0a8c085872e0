"""The inner loop of evaluating trees, compiled. Imported on first use."""

from bagwise._utils.compiled import loop


@loop
def add_leaf_values(x, root, left, right, feature, threshold, value, total):
    """Add to total[i] the value of the leaf of each tree that row x[i] falls into."""
    for i in range(x.shape[0]):
        for tree in range(len(root)):
            node = root[tree]
            while left[node] >= 0:
                node = left[node] if x[i, feature[node]] <= threshold[node] else right[node]
            total[i] += value[node]
