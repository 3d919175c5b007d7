"""Writes an alanine helix with pLDDT from 0 to 1, the error of each pair, a decreasing loss, and a broken link."""

import json
import math
import os
import sys

residues, fail, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
if fail != "no":
    sys.exit({"atoms": "error: no atoms", "memory": "error: too little memory"}[fail])
atoms = []
for i in range(residues):
    for name, radius, turn, rise in (("N", 1.55, -0.49, -0.9), ("CA", 2.28, 0, 0), ("C", 1.66, 0.46, 1.1), ("O", 1.9, 0.72, 2.3)):
        a = math.radians(100) * i + turn
        chain = "A" if i < residues - 8 else "B"
        atoms.append((name, chain, i + 1, radius * math.cos(a) + (12 if chain == "B" else 0), radius * math.sin(a), 1.5 * i + rise - (20 if chain == "B" else 0)))
with open(out + "/model.pdb", "w") as f:
    for n, (name, chain, residue, x, y, z) in enumerate(atoms, 1):
        f.write(f"ATOM  {n:5d}  {name:<3s} ALA {chain}{residue:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00{(95 - residue % 50) / 100:6.2f}          {name[0]:>2s}\n")
    for k in range(6):
        f.write(f"HETATM{len(atoms) + k + 1:5d}  C{k + 1}  LIG C 500    {4 + 1.4 * math.cos(k * 1.047):8.3f}{4 + 1.4 * math.sin(k * 1.047):8.3f}{10.0:8.3f}  1.00  0.50           C\n")
    f.write("END\n")
os.symlink("nowhere", out + "/gone.pdb")
with open(out + "/pae.json", "w") as f:
    json.dump({"pae": [[min(30, abs(i - j) / 2) for j in range(residues)] for i in range(residues)]}, f)
with open(out + "/loss.csv", "w") as f:
    f.write("step,loss\n" + "".join(f"{s},{100 / (s + 1):.4f}\n" for s in range(50)))
with open(out + "/metrics.json", "w") as f:
    json.dump({"plddt": 95 - residues / 7, "radius": residues * 1.5 / 3.4}, f)
with open(out + "/designs.csv", "w") as f:
    f.write("jobName,residues\n" + "".join(f"designed-{n},{n}\n" for n in (12, 14, 16)))
