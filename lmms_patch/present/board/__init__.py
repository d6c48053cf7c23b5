"""The board of many finished runs: who stands where, among which comparable runs. From results files alone."""
