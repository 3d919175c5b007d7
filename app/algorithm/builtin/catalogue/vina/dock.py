"""Docks all ligands one by one and ranks them.

Writes poses/NNNNN_NAME.sdf, ranked.csv, best.sdf and metrics.json."""
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys

import docking

receptor, box, ligands, out, exhaustiveness, modes, seed, cpus = sys.argv[1:]
ligands, out = pathlib.Path(ligands), pathlib.Path(out)
(out / "poses").mkdir()


def run(*command, tell=None):
    """Runs a program; returns whether it succeeded, and the lines that it printed."""
    printed = b""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:
        while piece := program.stdout.read1():
            printed += piece
            if tell:
                tell(printed)
    lines = [line.strip() for line in printed.decode(errors="replace").splitlines() if line.strip()]
    return program.returncode == 0, lines


def dock(row, tell):
    """Docks one ligand: returns the affinities and the file of its poses, or None and the reason."""
    name = docking.prepared(row)
    prepared, poses = ligands / f"{name}.pdbqt", ligands / f"{name}_out.pdbqt"
    ok, lines = run("obabel", str(ligands / f"{name}.sdf"), "-O", str(prepared))
    if not ok or not prepared.exists() or prepared.stat().st_size == 0:
        return None, "Open Babel could not prepare it"
    ok, lines = run("vina", "--receptor", receptor, "--ligand", str(prepared), "--config", box, "--exhaustiveness", exhaustiveness,
                    "--num_modes", modes, "--seed", seed, "--cpu", cpus, "--out", str(poses),
                    tell=lambda printed: tell(min(printed.count(b"*"), 51) / 51))  # it prints 51 stars
    if not ok or not poses.exists():
        unknown = re.search(r"Atom type (\S+) is not a valid", "\n".join(lines))
        if unknown:
            return None, f"Vina has no parameters for the element {unknown[1]}"
        return None, "Vina failed: " + next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it printed nothing")
    affinities = [float(line.split()[3]) for line in poses.read_text().splitlines() if line.startswith("REMARK VINA RESULT:")]
    if not affinities:
        return None, "Vina found no pose: the box may be too small"
    file = docking.poses(out, row)
    ok, lines = run("obabel", str(poses), "-O", str(file))
    if not ok or not file.exists() or file.stat().st_size == 0:
        return None, "Open Babel could not write the poses"
    return affinities, file


docked, failed = docking.dock_all(ligands, dock)
ranked = [[row["name"], affinities[0], affinities[0] / int(row["heavy_atoms"]), len(affinities), row["smiles"], file] for row, affinities, file in docked]
ranked.sort(key=lambda r: r[1])
with open(out / "ranked.csv", "w", newline="", encoding="utf-8") as f:
    table = csv.writer(f)
    table.writerow(["rank", "name", "affinity_kcal_mol", "efficiency_kcal_mol", "poses", "smiles", "file", "note"])
    for k, (name, affinity, efficiency, count, smiles, file) in enumerate(ranked, 1):
        table.writerow([k, name, f"{affinity:.3f}", f"{efficiency:.4f}", count, smiles, f"poses/{file.name}", "" if affinity < 0 else "does not bind"])
    for name, smiles, reason in failed:
        table.writerow(["", name, "", "", "", smiles, "", reason])
shutil.copyfile(ranked[0][-1], out / "best.sdf")
metrics = {"ligands": len(ranked), "failed": len(failed)}
if ranked[0][1] < 0:
    metrics |= {"affinity": ranked[0][1], "efficiency": round(ranked[0][2], 4)}
else:
    print(f"molrun:warning No ligand binds: the best affinity is {ranked[0][1]:g} kcal/mol, so no affinity is reported. The pocket may be too narrow or occupied, or the box in the wrong place.")
(out / "metrics.json").write_text(json.dumps(metrics))
