"""Small multiple-instance problems with known answers, for tests."""

import numpy as np

from bagwise import Bags


def concept_problem(n_bags: int = 40, n_features: int = 5, seed: int = 0, n_classes: int = 2):
    """Bags of 2 to 6 standard normal instances; one instance of each bag of class c > 0 is moved along column c."""
    rng = np.random.RandomState(seed)
    y = np.arange(n_bags) % n_classes
    rng.shuffle(y)
    tables = [rng.randn(rng.randint(2, 7), n_features) for _ in range(n_bags)]
    for table, label in zip(tables, y):
        if label:
            table[rng.randint(len(table)), label - 1] += 6
    return Bags(tables), y
