"""R(h) of a set of candidates: one linear programme in lam, and what may be said about a population from a sample."""
