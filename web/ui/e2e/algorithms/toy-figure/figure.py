"""Writes two metrics of a number."""

import os
import sys

value, needs, out = float(sys.argv[1]), sys.argv[2], sys.argv[3]
if not os.path.exists(needs):
    sys.exit("error: nothing at " + needs)
score, spread = (value - 30) ** 2 / 100 - 7, value % 7
with open(out + "/figures.txt", "w") as f:
    f.write(f"score {score}\nspread {spread}\n")
with open(out + "/metrics.json", "w") as f:
    f.write(f'{{"score": {score}, "spread": {spread}}}')
