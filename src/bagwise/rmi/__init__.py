"""RMI-SVM, the relaxed multiple-instance support vector machine: noisy-OR bags, hinge on instances."""

from bagwise.rmi.classifier import RMISVC

__all__ = ["RMISVC"]
