"""Methods that turn a bag into one vector."""

from bagwise.embedded_space.fisher import MiFV, MiFVTransformer
from bagwise.embedded_space.miles import MILES, MILESTransformer
from bagwise.embedded_space.vlad import MiVLAD, MiVLADTransformer

__all__ = ["MILES", "MILESTransformer", "MiFV", "MiFVTransformer", "MiVLAD", "MiVLADTransformer"]
