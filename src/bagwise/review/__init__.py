"""Checking the boxes: a page on this computer, a log of what a person decided, and a refit from it."""
