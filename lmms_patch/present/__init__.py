"""Everything that people look at: sheets, terminal tables, the report, the board."""
