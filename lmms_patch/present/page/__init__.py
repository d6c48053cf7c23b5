"""The page of a report or a board: its rows, tables and figures, and how it is written."""
