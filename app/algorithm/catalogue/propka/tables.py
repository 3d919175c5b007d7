"""Makes tables and figures of a report of PROPKA: pka.csv, charge.csv, stability.csv and
metrics.json."""
import csv
import json
import pathlib
import re
import sys

source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
lines = source.read_text(encoding="utf-8", errors="replace").splitlines()


def after(title):
    """The lines behind a title, up to the first that is no data."""
    start = next((k for k, line in enumerate(lines) if title in line), None)
    return [] if start is None else lines[start + 1:]


def write(name, head, rows):
    with open(out / name, "w", newline="", encoding="utf-8") as f:
        table = csv.writer(f)
        table.writerow(head)
        table.writerows(rows)


buried = {}
for line in lines:
    found = re.match(r"^(.{3})\s+(-?\d+)\s+(\S)\s+-?\d+\.\d+\s+(\d+) %", line)
    if found:
        buried[found[1].strip(), found[2], found[3]] = int(found[4])

groups = []
for line in after("SUMMARY OF THIS PREDICTION")[1:]:
    found = re.match(r"^\s+(\S+)\s+(-?\d+) (\S)\s+(-?\d+\.\d+)\s+(-?\d+\.\d+)", line)
    if not found:
        break
    name, number, chain, pka, model = found.groups()
    if float(pka) > 90:  # a cysteine in a disulfide bond
        continue
    groups.append([name, chain, number, float(pka), float(model), round(float(pka) - float(model), 2), buried.get((name, number, chain), "")])
if not groups:
    sys.exit("no group that can be charged")
write("pka.csv", ["group", "chain", "number", "pKa", "model_pKa", "shift", "buried_percent"], groups)


def pairs(title, columns):
    rows = []
    for line in after(title):
        words = line.split()
        if len(words) == columns and all(re.fullmatch(r"-?\d+\.\d+", word) for word in words):
            rows.append(words)
        elif rows:
            break
    return rows


charge, stability = pairs("Protein charge of folded and unfolded state", 3), pairs("Free energy of", 2)
write("charge.csv", ["pH", "unfolded_e", "folded_e"], charge)
write("stability.csv", ["pH", "folding_kcal_mol"], stability)

metrics = {"groups": len(groups), "shifted": sum(abs(row[5]) > 1 for row in groups)}
found = re.search(r"The pI is\s+(\S+) \(folded\) and\s+(\S+) \(unfolded\)", "\n".join(lines))
if found:
    metrics["pI"], metrics["pI_unfolded"] = float(found[1]), float(found[2])
found = re.search(r"The pH of optimum stability is\s+(\S+)", "\n".join(lines))
if found:
    metrics["optimum_pH"] = float(found[1])
(out / "metrics.json").write_text(json.dumps(metrics))
