"""Renames the potential and writes metrics.json from the output of APBS."""
import json
import pathlib
import re
import sys

out = pathlib.Path(sys.argv[1])
(grid,) = out.glob("potential*.dx")
grid.rename(out / "potential.dx")
text = (out / "apbs.txt").read_text(encoding="utf-8", errors="replace")
energies = re.findall(r"Global net ELEC energy = (\S+) kJ/mol", text)
atoms = [line.split() for line in (out / "molecule.pqr").read_text().splitlines() if line.startswith(("ATOM", "HETATM"))]
metrics = {"atoms": len(atoms), "charge_e": round(sum(float(words[-2]) for words in atoms), 2)}
if energies and energies[-1].lower() not in ("nan", "inf", "-inf"):
    metrics["solvation_kJ_mol"] = round(float(energies[-1]), 1)
(out / "metrics.json").write_text(json.dumps(metrics))
