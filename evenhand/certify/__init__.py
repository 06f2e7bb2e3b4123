"""Bounds on R(h) from both sides, as a statement with a confidence."""
