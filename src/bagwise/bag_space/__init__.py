"""Methods that compare whole bags: kernels between bags, and nearest neighbours."""

from bagwise.bag_space.graph import MIGraphSVC, MiGraphSVC
from bagwise.bag_space.neighbors import CitationKNN
from bagwise.bag_space.ppmm import PPMMKernelSVC
from bagwise.bag_space.svm import MIKernelSVC

__all__ = ["CitationKNN", "MIGraphSVC", "MIKernelSVC", "MiGraphSVC", "PPMMKernelSVC"]
