"""Tree ensembles as arrays: read from any library, evaluated, and searched for worst cases."""
