"""Parameters and known exceptions of the common tests."""

# Parameters with which a method is quick enough to be fitted hundreds of times.
QUICK: dict[str, dict] = {
    "RMISVC": {"epochs": 30},
    "PPMMKernelSVC": {"n_components": 8},
    # Solved to the end, so that nothing but the problem decides the result; and from many starts, because one alone
    # ends in another valley when sums are rounded otherwise.
    "MiSVC": {"C": 1.0, "tol": 1e-11, "n_init": 12, "scaling": "standard"},
    "MISVC": {"tol": 1e-11, "n_init": 24, "scaling": "standard"},
    "MILES": {"tol": 1e-10},
    # Searches that end early end elsewhere when sums are rounded otherwise, so these are run to their end; and in
    # EM-DD's poorer searches a rounding error may choose another instance, so only the best one is kept. The searches
    # of the folds, which calibrate, would each have to end at the same place.
    "DiverseDensity": {"tol": 1e-9, "max_iter": 500, "calibrate": False},
    "DDSVC": {"n_init": 4, "tol": 1e-9, "max_iter": 500},
    "EMDD": {"combine": "best", "tol": 1e-9, "max_steps": 500, "calibrate": False},
    "MILBoost": {"n_estimators": 12, "learning_rate": 0.5},
    "MIForest": {"n_estimators": 12, "max_iter": 1},
    "AttentionMIL": {"hidden": (16,), "epochs": 30, "n_estimators": 2, "learning_rate": 0.02, "batch_size": 64},
    "MiNet": {"hidden": (16,), "epochs": 30, "n_estimators": 2, "learning_rate": 0.02, "batch_size": 64},
    "MINet": {"hidden": (16,), "epochs": 30, "n_estimators": 2, "learning_rate": 0.02, "batch_size": 64},
    "RMINet": {"hidden": (16,), "epochs": 30, "n_estimators": 2, "learning_rate": 0.02, "batch_size": 64},
}

# Methods whose result depends on the order of the bags in training through their random numbers.
ORDER_OF_BAGS_MATTERS = {
    "RMISVC",
    "MISVC",
    "MiSVC",
    "MILBoost",
    "MIForest",
    "MultiFoldSVC",
    "AttentionMIL",
    "MiNet",
    "MINet",
    "RMINet",
}

STOCHASTIC = "visits the bags in random order: a bag of weight two is not the same as the bag twice"

DRAWS_BAGS = "draws bags at random: a bag of weight two is not the same as the bag twice"

FOLDS_OF_BAGS = "puts bags into folds at random: a bag of weight two is not the same as the bag twice"

SEARCHES = "a search that is not convex: sums in another order lead it to a slightly other end"

IGNORES_CLASS_WEIGHT = "weights have less say than the check of class weights wants"
WITHIN_TOLERANCE = (
    "its solver stops within a tolerance: on some processors one score of 45 differs by 6e-9, allowed are 1e-9"
)

# scikit-learn's checks that a method is known to fail, and why.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "RMISVC": {
        "check_sample_weight_equivalence_on_dense_data": STOCHASTIC,
        "check_sample_weight_equivalence_on_sparse_data": STOCHASTIC,
    },
    "MISVC": {
        "check_sample_weight_equivalence_on_dense_data": WITHIN_TOLERANCE,
        "check_sample_weight_equivalence_on_sparse_data": WITHIN_TOLERANCE,
    },
    "MultiFoldSVC": {
        "check_sample_weight_equivalence_on_dense_data": FOLDS_OF_BAGS,
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": SEARCHES,
            "check_sample_weight_equivalence_on_sparse_data": SEARCHES,
        }
        for name in ("DiverseDensity", "EMDD", "DDSVC")
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": DRAWS_BAGS,
            "check_sample_weight_equivalence_on_sparse_data": DRAWS_BAGS,
            **({"check_class_weight_classifiers": IGNORES_CLASS_WEIGHT} if name == "MIForest" else {}),
        }
        for name in ("MILBoost", "MIForest")
    },
    **{
        name: {"check_sample_weight_equivalence_on_dense_data": STOCHASTIC}
        for name in ("AttentionMIL", "MiNet", "MINet", "RMINet")
    },
}
