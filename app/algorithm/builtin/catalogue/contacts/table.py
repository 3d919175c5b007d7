"""Converts the fixed-column output of gemmi contact to contacts.csv, residues.csv and
metrics.json."""
import csv
import json
import pathlib
import sys

source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def atom(text):
    """An atom in PDB columns: name, alternate location, residue, chain, number."""
    return [text[0:4].strip(), text[5:8].strip(), text[8:10].strip(), text[10:15].strip()]


rows, pairs = [], {}
for line in source.read_text(encoding="utf-8", errors="replace").splitlines():
    if len(line) < 60:
        continue
    first, second, distance = atom(line[12:]), atom(line[42:]), float(line.split()[-1])
    rows.append([*first, *second, distance])
    pair = tuple(first[1:] + second[1:])
    shortest, count = pairs.get(pair, (distance, 0))
    pairs[pair] = min(distance, shortest), count + 1

ends = [f"{name}_{k}" for k in (1, 2) for name in ("atom", "residue", "chain", "number")]
with open(out / "contacts.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([[*ends, "distance_A"], *rows])
ends = [f"{name}_{k}" for k in (1, 2) for name in ("residue", "chain", "number")]
with open(out / "residues.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([[*ends, "contacts", "shortest_A"], *([*pair, count, shortest] for pair, (shortest, count) in pairs.items())])
metrics = {"contacts": len(rows), "residue_pairs": len(pairs)}
if rows:
    metrics["shortest_A"] = min(row[-1] for row in rows)
(out / "metrics.json").write_text(json.dumps(metrics))
