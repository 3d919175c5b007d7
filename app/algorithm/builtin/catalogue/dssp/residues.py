"""Tabulates a DSSP file, which has fixed columns.

Writes residues.csv, assignment.txt and metrics.json."""
import csv
import json
import pathlib
import sys

source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
first = next(k for k, line in enumerate(lines) if line.startswith("  #  RESIDUE AA"))


def angle(text):
    return "" if float(text) == 360.0 else text.strip()  # no neighbor


rows = []
for line in lines[first + 1:]:
    if line[13] == "!":  # chain break
        continue
    rows.append({
        "index": len(rows) + 1, "chain": line[11].strip(), "number": line[5:11].strip(), "residue": "C" if line[13].islower() else line[13],  # lowercase letters mark cysteines in disulfide bonds
        "structure": line[16].strip() or "-", "surface_A2": int(line[34:38]), "phi": angle(line[103:109]), "psi": angle(line[109:115]),
    })
if not rows:
    sys.exit("no residue has a whole backbone")

with open(out / "residues.csv", "w", newline="", encoding="utf-8") as f:
    table = csv.DictWriter(f, rows[0])
    table.writeheader()
    table.writerows(rows)

with open(out / "assignment.txt", "w", encoding="utf-8") as f:
    for chain in dict.fromkeys(row["chain"] for row in rows):
        these = [row for row in rows if row["chain"] == chain]
        f.write(f"Chain {chain or '(no name)'}, {len(these)} residues; H helix, G 3-10 helix, I pi helix, P polyproline helix, E strand, B bridge, T turn, S bend\n\n")
        for k in range(0, len(these), 60):
            part = these[k:k + 60]
            f.write(f"{part[0]['number']:>6} " + "".join(row["residue"] for row in part) + "\n")
            f.write("       " + "".join(row["structure"] for row in part) + "\n\n")


def percent(kinds):
    return round(100 * sum(row["structure"] in kinds for row in rows) / len(rows), 2)


bonds = next(line for line in lines if "HYDROGEN BONDS OF TYPE O(I)-->H-N(J)" in line)
metrics = {
    "residues": len(rows), "helix_percent": percent("HGI"), "strand_percent": percent("EB"),
    "surface_A2": sum(row["surface_A2"] for row in rows), "hydrogen_bonds": int(bonds[:5]),
}
(out / "metrics.json").write_text(json.dumps(metrics))
