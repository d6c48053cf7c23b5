"""TsT, the Test-set Stress-Test: how much of a benchmark can be answered without the image, and a benchmark without those docs."""
