"""Small multiple-instance problems with known answers, for tests."""

from bagwise.testing import concept_problem

__all__ = ["concept_problem"]
