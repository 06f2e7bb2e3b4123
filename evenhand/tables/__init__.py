"""From a file to a typed frame."""
