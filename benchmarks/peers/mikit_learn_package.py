"""mikit-learn 1.0.6 (import milearn): attention, an instance network, and the wrapper of any classifier."""

import measuring


def fit_network(name, tables, y):
    import torch
    from milearn.network import classifier

    torch.set_num_threads(1)
    model = getattr(classifier, name)()
    model.fit(tables, list(y))
    return lambda bags: model.predict(bags) > 0.5


def fit_wrapper(tables, y):
    from milearn.wrapper import InstanceWrapper  # as its own tests import it
    from sklearn.linear_model import LogisticRegression

    return InstanceWrapper(LogisticRegression(), pool="max").fit(tables, y).predict


METHODS = {
    "AdditiveAttention": lambda tables, y: fit_network("AdditiveAttentionNetworkClassifier", tables, y),
    "InstanceNetwork": lambda tables, y: fit_network("InstanceNetworkClassifier", tables, y),
    "InstanceWrapper": fit_wrapper,
}

if __name__ == "__main__":
    from importlib.metadata import version

    measuring.main(METHODS, lambda: version("mikit-learn"))
