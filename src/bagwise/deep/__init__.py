"""Neural networks over bags. Importing this is light; fitting and predicting need torch (``bagwise[deep]``)."""

from bagwise.deep.classifiers import AttentionMIL, MINet, MiNet, RMINet

__all__ = ["AttentionMIL", "MINet", "MiNet", "RMINet"]
