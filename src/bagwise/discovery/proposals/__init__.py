"""Boxes that may hold an object: edges, their groups, the search."""
