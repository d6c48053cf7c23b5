"""Two results, doc by doc, by whatever method they were made."""
