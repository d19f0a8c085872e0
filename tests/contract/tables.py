"""Parameters and known exceptions of the common tests."""

# Parameters with which a method is quick enough to be fitted hundreds of times.
QUICK: dict[str, dict] = {
    "RMISVC": {"epochs": 30},
    "PPMMKernelSVC": {"n_components": 8},
    "MiSVC": {"C": 1.0, "scaling": "standard"},
    "MISVC": {"scaling": "standard"},
    "DiverseDensity": {"calibrate": False},
    "DDSVC": {"n_init": 4},
    "EMDD": {"combine": "best", "calibrate": False},
    "MILBoost": {"n_estimators": 12, "learning_rate": 0.5},
    "MIForest": {"n_estimators": 12, "max_iter": 1},
    "AttentionMIL": {"hidden": (16,), "epochs": 30, "n_estimators": 2, "learning_rate": 0.02, "batch_size": 64},
    "MiNet": {"hidden": (16,), "epochs": 30, "n_estimators": 2, "learning_rate": 0.02, "batch_size": 64},
    "MINet": {"hidden": (16,), "epochs": 30, "n_estimators": 2, "learning_rate": 0.02, "batch_size": 64},
    "RMINet": {"hidden": (16,), "epochs": 30, "n_estimators": 2, "learning_rate": 0.02, "batch_size": 64},
}

# What is added where two fits of the same problem in another form are compared.
TO_THE_END: dict[str, dict] = {
    # Solved to the end, so that nothing but the problem decides the result; and from many starts, because one alone
    # ends in another valley when sums are rounded otherwise.
    "MiSVC": {"tol": 1e-11, "n_init": 12},
    "MISVC": {"tol": 1e-11, "n_init": 24},
    "MILES": {"tol": 1e-10},
    # Searches that end early end elsewhere when sums are rounded otherwise, so these are run to their end; and in
    # EM-DD's poorer searches a rounding error may choose another instance, so only the best one is kept. The searches
    # of the folds, which calibrate, would each have to end at the same place.
    "DiverseDensity": {"tol": 1e-9, "max_iter": 500},
    "DDSVC": {"tol": 1e-9, "max_iter": 500},
    "EMDD": {"tol": 1e-9, "max_steps": 500},
}

# The checks that compare such fits.
OF_TWO_FITS = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_order_of_instances",
    "check_order_of_bags",
    "check_dense_equals_csr",
    "check_float32_is_close_to_float64",
    "check_zero_weight_is_absence",
}

# Methods whose result depends on the order of the bags in training through their random numbers.
ORDER_OF_BAGS_MATTERS = {"RMISVC", "AttentionMIL", "MiNet", "MINet", "RMINet"}

STOCHASTIC = "visits the bags in random order: a bag of weight two is not the same as the bag twice"

# scikit-learn's checks that a method is known to fail, and why.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "RMISVC": {
        "check_sample_weight_equivalence_on_dense_data": STOCHASTIC,
        "check_sample_weight_equivalence_on_sparse_data": STOCHASTIC,
    },
    **{
        name: {"check_sample_weight_equivalence_on_dense_data": STOCHASTIC}
        for name in ("AttentionMIL", "MiNet", "MINet", "RMINet")
    },
}
