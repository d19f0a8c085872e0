"""Parameters and known exceptions of the common tests."""

# Parameters with which a method is quick enough to be fitted hundreds of times.
QUICK: dict[str, dict] = {
    "RMISVC": {"epochs": 30},
}

# Methods whose result depends on the order of the bags in training through their random numbers.
ORDER_OF_BAGS_MATTERS = {"RMISVC"}

STOCHASTIC = "visits the bags in random order: a bag of weight two is not the same as the bag twice"

# scikit-learn's checks that a method is known to fail, and why.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "RMISVC": {
        "check_sample_weight_equivalence_on_dense_data": STOCHASTIC,
        "check_sample_weight_equivalence_on_sparse_data": STOCHASTIC,
    },
}
