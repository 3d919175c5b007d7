"""Lists the accepted designs by ipTM, best first, as BindCraft ranks them: designs.csv. Adds the
metrics of the best one to metrics.json. BindCraft itself ranks only once it has accepted enough."""
import csv
import json
import pathlib
import sys

out = pathlib.Path(sys.argv[1])
COLUMNS = {
    "length": "Length", "iptm": "Average_i_pTM", "plddt": "Average_pLDDT", "ipae": "Average_i_pAE", "dG": "Average_dG", "dSASA": "Average_dSASA",
    "shape_complementarity": "Average_ShapeComplementarity", "hotspot_rmsd_A": "Average_Hotspot_RMSD", "binder_rmsd_A": "Average_Binder_RMSD", "sequence": "Sequence",
}
stats = {}
for name in ("final_design_stats.csv", "mpnn_design_stats.csv"):
    if (out / name).exists():
        with open(out / name, newline="", encoding="utf-8") as f:
            stats.update({row["Design"]: row for row in csv.DictReader(f)})
rows = []
for file in out.glob("Accepted/*.pdb"):
    design = file.stem.rsplit("_model", 1)[0]
    row = stats.get(design, {})
    if not row.get("Average_i_pTM"):
        print(f"BindCraft wrote no metrics for {design}, which is listed last.", flush=True)
    rows.append([design, *(row.get(column) or "" for column in COLUMNS.values()), f"Accepted/{file.name}"])
rows.sort(key=lambda row: (-float(row[2] or "-inf"), row[0]))
with open(out / "designs.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["rank", "design", *COLUMNS, "file"], *([k, *row] for k, row in enumerate(rows, 1))])
best = dict(zip(("design", *COLUMNS), rows[0]))
figures = json.loads((out / "metrics.json").read_text())
figures |= {"designs": len(rows)} | {name: float(best[name]) for name in ("iptm", "plddt", "dG") if best[name]}
if "plddt" in figures:
    figures["plddt"] *= 100
(out / "metrics.json").write_text(json.dumps(figures))
