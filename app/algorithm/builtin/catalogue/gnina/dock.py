"""Docks all ligands one by one and ranks them.

Writes poses/NNNNN_NAME.sdf, ranked.csv, poses.csv, best.sdf and metrics.json."""
import csv
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

import docking

gnina, receptor, box, ligands, out, exhaustiveness, modes, seed, cpus, gpu, *options = sys.argv[1:]
ligands, out = pathlib.Path(ligands), pathlib.Path(out)
(out / "poses").mkdir()
NAMES = ("CNNscore", "CNNaffinity", "CNN_VS", "minimizedAffinity")  # fields of a pose: gninasrc/lib/result_info.cpp


def dock(row, _):
    """Docks one ligand: returns the scores of its poses, best first, and their file; or None and the reason."""
    file = docking.poses(out, row)
    command = [gnina, "--receptor", receptor, "--ligand", str(ligands / f"{docking.prepared(row)}.sdf"), "--config", box, "--exhaustiveness", exhaustiveness, "--num_modes", modes,
               "--seed", seed, "--cpu", cpus, "--out", str(file), *options, *(["--no_gpu"] if gpu == "false" else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    if "WARNING: No GPU detected" in text:
        sys.exit("molrun: GNINA found no GPU on this server and would compute on CPUs. Tell the administrator, or run without a GPU.")
    if "out of memory" in text.lower():
        sys.exit("molrun: The GPU ran out of memory: use the fast networks or a smaller box.")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if done.returncode != 0 or not file.exists():
        return None, "GNINA failed: " + next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it printed nothing")
    poses = []
    for record in file.read_text(encoding="utf-8", errors="replace").split("$$$$\n"):
        fields = dict(re.findall(r"^> *<(\w+)>[^\n]*\n([^\n]*)", record, re.MULTILINE))
        if not record.strip():
            continue
        figures = [float(fields.get(word, "nan")) for word in NAMES]
        if not all(map(math.isfinite, figures)):
            return None, "GNINA wrote a pose without its scores"
        poses.append(figures)
    if not poses:
        return None, "GNINA found no pose: the box may be too small"
    return poses, file


docked, failed = docking.dock_all(ligands, dock)
ranked = [[row["name"], poses, row["smiles"], file] for row, poses, file in docked]
ranked.sort(key=lambda r: -r[1][0][2])
with open(out / "ranked.csv", "w", newline="", encoding="utf-8") as f, open(out / "poses.csv", "w", newline="", encoding="utf-8") as g:
    table, every = csv.writer(f), csv.writer(g)
    table.writerow(["rank", "name", "cnn_vs", "cnn_score", "cnn_affinity_pK", "affinity_kcal_mol", "poses", "smiles", "file", "note"])
    every.writerow(["name", "pose", "cnn_score", "cnn_affinity_pK", "affinity_kcal_mol"])
    for k, (name, poses, smiles, file) in enumerate(ranked, 1):
        score, pK, vs, energy = poses[0]
        note = "" if energy < 0 else "does not bind, by the empirical score"
        table.writerow([k, name, f"{vs:.4f}", f"{score:.4f}", f"{pK:.3f}", f"{energy:.3f}", len(poses), smiles, f"poses/{file.name}", note])
        every.writerows([name, n, f"{pose[0]:.4f}", f"{pose[1]:.3f}", f"{pose[3]:.3f}"] for n, pose in enumerate(poses, 1))
    for name, smiles, reason in failed:
        table.writerow(["", name, "", "", "", "", "", smiles, "", reason])
shutil.copyfile(ranked[0][-1], out / "best.sdf")
score, pK, vs, energy = ranked[0][1][0]
metrics = {"cnn_vs": round(vs, 4), "cnn_score": round(score, 4), "cnn_affinity": round(pK, 3), "affinity": round(energy, 3), "ligands": len(ranked), "failed": len(failed)}
if score < 0.5:
    print(f"molrun:warning The best pose has a CNN score of {score:.2f}: it is more likely than not to be more than 2 Å off the true one.")
(out / "metrics.json").write_text(json.dumps(metrics))
