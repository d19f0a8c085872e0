"""What a person would write in half an hour with NumPy and scikit-learn."""

import measuring
import numpy as np
import sklearn
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC


def fit_single_instance(tables, y):
    """Every instance gets the label of its bag; a bag is as positive as its best instance."""
    scaler = StandardScaler().fit(np.concatenate(tables))
    model = LinearSVC().fit(scaler.transform(np.concatenate(tables)), np.repeat(y, [len(table) for table in tables]))
    return lambda bags: [int(model.decision_function(scaler.transform(bag)).max() > 0) for bag in bags]


def fit_mi_svm(tables, y, rounds=50):
    """MI-SVM by choosing the best instance of each positive bag and training anew until the choice stands."""
    scaler = StandardScaler().fit(np.concatenate(tables))
    positive = [scaler.transform(table) for table, label in zip(tables, y) if label]
    negative = scaler.transform(np.concatenate([table for table, label in zip(tables, y) if not label]))
    chosen = np.array([table.mean(axis=0) for table in positive])
    labels = np.arange(len(positive) + len(negative)) < len(positive)
    for _ in range(rounds):
        model = LinearSVC(class_weight="balanced").fit(np.concatenate([chosen, negative]), labels)
        best = np.array([table[model.decision_function(table).argmax()] for table in positive])
        if np.array_equal(best, chosen):
            break
        chosen = best
    return lambda bags: [int(model.decision_function(scaler.transform(bag)).max() > 0) for bag in bags]


def fit_mi_svm_of_instances(tables, y, rounds=50):
    """mi-SVM: the instances of positive bags get the labels that the last model gives them, at least one a bag."""
    scaler = StandardScaler().fit(np.concatenate(tables))
    x, of = scaler.transform(np.concatenate(tables)), np.repeat(np.arange(len(tables)), [len(t) for t in tables])
    first = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
    labels = np.asarray(y)[of] == 1
    for _ in range(rounds):
        model = LinearSVC(class_weight="balanced").fit(x, labels)
        scores = model.decision_function(x)
        new = (scores > 0) & (np.asarray(y)[of] == 1)
        for bag in np.flatnonzero(y):
            new[first[bag] + scores[first[bag] : first[bag + 1]].argmax()] = True
        if np.array_equal(new, labels):
            break
        labels = new
    return lambda bags: [int(model.decision_function(scaler.transform(bag)).max() > 0) for bag in bags]


def fit_rmi_svm(tables, y, lam=3e-4, beta=5.0, margin=1.0, epochs=100):
    """RMI-SVM as its authors' release does it, vectorised over the instances of a bag."""
    scaler = StandardScaler().fit(np.concatenate(tables))

    def ready(table):
        scaled = scaler.transform(table)
        scaled /= np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-12)
        return np.hstack([scaled, np.ones((len(table), 1))])

    bags = [ready(table) for table in tables]
    w, t, rng = np.zeros(bags[0].shape[1]), 0, np.random.RandomState(0)
    for _ in range(epochs):
        for i in rng.permutation(len(bags)):
            t += 1
            z = bags[i] @ w
            p = 1 / (1 + np.exp(-z))
            pull = p / np.expm1(np.logaddexp(0, z).sum()) if y[i] else -p
            sign = np.where(z >= 0, 1.0, -1.0)
            step = beta * pull + np.where(sign * z < margin, sign, 0.0) / len(z)
            w = (1 - 1 / t) * w + step @ bags[i] / (lam * t)
            w *= min(1.0, 1 / np.sqrt(lam * (w @ w)))
    return lambda bags: [int(np.logaddexp(0, ready(bag) @ w).sum() > np.log(2)) for bag in bags]


METHODS = {
    "SIL, LinearSVC": fit_single_instance,
    "MI-SVM, LinearSVC loop": fit_mi_svm,
    "mi-SVM, LinearSVC loop": fit_mi_svm_of_instances,
    "RMI-SVM, NumPy": fit_rmi_svm,
}

if __name__ == "__main__":
    measuring.main(METHODS, lambda: f"scikit-learn {sklearn.__version__}")
