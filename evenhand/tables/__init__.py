"""Tables as people have them: from a file to a typed frame."""

from evenhand.tables.read import TableError, read_sql, read_table

__all__ = ["TableError", "read_sql", "read_table"]
