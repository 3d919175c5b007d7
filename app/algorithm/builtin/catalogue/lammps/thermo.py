"""Writes the thermodynamic output of a LAMMPS log to thermo.csv: the columns common to all
runs, one run after another."""
import csv
import math
import pathlib
import sys

log, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
blocks, head = [], None
for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
    words = line.split()
    if words and words[0] == "Step" and len(words) > 1:
        head = words
        blocks.append((head, []))
    elif line.startswith("Loop time"):
        head = None
    elif head and len(words) == len(head):
        try:
            blocks[-1][1].append([float(word) for word in words])
        except ValueError:
            head = None
blocks = [(names, rows) for names, rows in blocks if rows]
if not blocks:
    sys.exit("no thermodynamic output")
for names, rows in blocks:
    for row in rows:
        for name, value in zip(names, row):
            if not math.isfinite(value):
                sys.exit(f"molrun: The simulation failed: {name} is not a number at step {row[0]:.0f}. Atoms overlap, or the time step is too long.")
common = [name for name in blocks[0][0] if all(name in names for names, _ in blocks)]
with open(out / "thermo.csv", "w", newline="", encoding="utf-8") as f:
    table = csv.writer(f)
    table.writerow(common)
    for names, rows in blocks:
        table.writerows([f"{row[names.index(name)]:.10g}" for name in common] for row in rows)
