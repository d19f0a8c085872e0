"""Parameters and known exceptions of the common tests."""

# Parameters with which a method is quick enough to be fitted hundreds of times.
QUICK: dict[str, dict] = {
    "RMISVC": {"epochs": 30, "lam": 0.01},  # a λ that 30 passes are enough for
    "PPMMKernelSVC": {"n_components": 8},
    # Solved to the end, so that nothing but the problem decides the result.
    "MiSVC": {"tol": 1e-11},
    "MISVC": {"tol": 1e-11, "n_init": 8},  # one start alone ends in another valley when sums are rounded otherwise
    "MILES": {"tol": 1e-5},
    # Searches that end early end elsewhere when sums are rounded otherwise, so these are run to their end; and in
    # EM-DD's poorer searches a rounding error may choose another instance, so only the best one is kept.
    "DiverseDensity": {"tol": 1e-9, "max_iter": 500},
    "EMDD": {"combine": "best", "tol": 1e-9, "max_iter": 500},
    "MILBoost": {"n_estimators": 12, "learning_rate": 0.5},
    "MIForest": {"n_estimators": 12, "n_rounds": 1},
    "AttentionMIL": {"hidden": (16,), "epochs": 30, "n_members": 2, "learning_rate": 0.02, "batch_size": 64},
    "MiNet": {"hidden": (16,), "epochs": 30, "n_members": 2, "learning_rate": 0.02, "batch_size": 64},
    "MINet": {"hidden": (16,), "epochs": 30, "n_members": 2, "learning_rate": 0.02, "batch_size": 64},
    "RMINet": {"hidden": (16,), "epochs": 30, "n_members": 2, "learning_rate": 0.02, "batch_size": 64},
}

# Methods whose result depends on the order of the bags in training through their random numbers.
ORDER_OF_BAGS_MATTERS = {"RMISVC", "MILBoost", "MIForest", "MultiFoldSVC", "AttentionMIL", "MiNet", "MINet", "RMINet"}

STOCHASTIC = "visits the bags in random order: a bag of weight two is not the same as the bag twice"

DRAWS_BAGS = "draws bags at random: a bag of weight two is not the same as the bag twice"

FOLDS_OF_BAGS = "puts bags into folds at random: a bag of weight two is not the same as the bag twice"

UNWEIGHTED_SCALING = "columns are scaled by the deviation of all instances, whatever the weight of their bags"

STOPS_EARLY = "LIBSVM stops at a tolerance, so equal problems in other words give scores equal to a few digits only"

COVERS_ALL = "the rectangle holds every positive bag, so classes that overlap are not told apart on the training data"

# scikit-learn's checks that a method is known to fail, and why.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "RMISVC": {
        "check_sample_weight_equivalence_on_dense_data": STOCHASTIC,
        "check_sample_weight_equivalence_on_sparse_data": STOCHASTIC,
    },
    "MiSVC": {
        "check_sample_weight_equivalence_on_dense_data": UNWEIGHTED_SCALING,
    },
    "MISVC": {
        "check_sample_weight_equivalence_on_dense_data": UNWEIGHTED_SCALING,
    },
    "MILES": {
        "check_sample_weight_equivalence_on_dense_data": UNWEIGHTED_SCALING,
        "check_sample_weight_equivalence_on_sparse_data": UNWEIGHTED_SCALING,
    },
    "CitationKNN": {
        "check_sample_weight_equivalence_on_dense_data": UNWEIGHTED_SCALING,
    },
    "APR": {
        "check_sample_weight_equivalence_on_dense_data": UNWEIGHTED_SCALING,
        "check_classifiers_train": COVERS_ALL,
    },
    "MultiFoldSVC": {
        "check_sample_weight_equivalence_on_dense_data": FOLDS_OF_BAGS,
    },
    "SingleInstance": {
        "check_sample_weight_equivalence_on_dense_data": UNWEIGHTED_SCALING,
        "check_sample_weight_equivalence_on_sparse_data": UNWEIGHTED_SCALING,
    },
    "DiverseDensity": {
        "check_sample_weight_equivalence_on_dense_data": UNWEIGHTED_SCALING,
        "check_sample_weight_equivalence_on_sparse_data": UNWEIGHTED_SCALING,
    },
    "EMDD": {
        "check_sample_weight_equivalence_on_dense_data": UNWEIGHTED_SCALING,
        "check_sample_weight_equivalence_on_sparse_data": UNWEIGHTED_SCALING,
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": STOPS_EARLY,
            "check_sample_weight_equivalence_on_sparse_data": STOPS_EARLY,
        }
        for name in ("MIKernelSVC", "MiGraphSVC", "MIGraphSVC")
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": UNWEIGHTED_SCALING,
            "check_sample_weight_equivalence_on_sparse_data": UNWEIGHTED_SCALING,
        }
        for name in ("PPMMKernelSVC", "MiFV", "MiVLAD")
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": DRAWS_BAGS,
            "check_sample_weight_equivalence_on_sparse_data": DRAWS_BAGS,
        }
        for name in ("MILBoost", "MIForest")
    },
    **{
        name: {"check_sample_weight_equivalence_on_dense_data": STOCHASTIC}
        for name in ("AttentionMIL", "MiNet", "MINet", "RMINet")
    },
}
