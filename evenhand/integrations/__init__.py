"""FairRegularizer where people train: one file for each of Hugging Face, Lightning, skorch and optuna.

Each imports its library when it is imported itself, and nothing here is imported by ``import evenhand``.
"""
