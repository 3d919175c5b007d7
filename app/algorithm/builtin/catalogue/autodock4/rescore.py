"""Scores poses with AutoDock 4: scores.csv, best.sdf and metrics.json.

Charges are Gasteiger charges. Open Babel computes those of ions only if the file already has the hydrogens, so
receptor and poses go through MOL2.

  rescore.py RECEPTOR POSES OUT pH"""
import csv
import json
import math
import pathlib
import re
import subprocess
import sys

from poses import check_places, refuse, split

receptor, poses, out, pH = sys.argv[1:]
out = pathlib.Path(out)
SPACING, POINTS = 0.375, 126  # Å, and the maximum number of points along an edge in AutoGrid
MARGIN = 8.0  # Å around the poses, the range over which energies are summed
NEAR = 5.0  # Å
POLAR = {"HD", "HS"}


def warn(sentence):
    print("molrun:warning " + sentence)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return done.returncode == 0, done.stdout


def prepared(source, target, *options):
    """Writes a PDBQT file with the charges of the molecule at the pH, and returns its atoms."""
    middle = pathlib.Path(target).with_suffix(".mol2")
    run("obabel", str(source), "-p", pH, "-O", str(middle))
    ok, said = run("obabel", str(middle), *options, "--partialcharge", "gasteiger", "-O", target)
    lines = pathlib.Path(target).read_text(encoding="utf-8").splitlines() if pathlib.Path(target).exists() else []
    atoms = [(line.split()[-1], float(line[66:76]), tuple(float(line[k:k + 8]) for k in (30, 38, 46))) for line in lines if line.startswith(("ATOM", "HETATM"))]
    if not ok or not atoms:
        refuse(f"Open Babel could not prepare {source} for AutoDock, perhaps because an element has no parameters: {said.strip().splitlines()[-1] if said.strip() else 'it printed nothing'}")
    return atoms


def types(atoms):
    return sorted({atom[0] for atom in atoms})


def fails(log):
    found = re.findall(r"(?:ERROR|FATAL)[^\n]*", pathlib.Path(log).read_text(encoding="utf-8", errors="replace") if pathlib.Path(log).exists() else "")
    return found[-1][:200] if found else "it broke off"


def value(title, text):
    found = re.findall(re.escape(title) + r"\s*=\s*([-+][\d.]+)", text)
    return float(found[-1]) if found else None


def score(k, atoms):
    """The energies that AutoDock reports for a pose, or None and the reason for failure."""
    lines = ["autodock_parameter_version 4.2", "outlev 1", "intelec", "ligand_types " + " ".join(types(atoms)), "fld receptor.maps.fld"]
    lines += [f"map receptor.{kind}.map" for kind in types(atoms)] + ["elecmap receptor.e.map", "desolvmap receptor.d.map", f"move pose{k}.pdbqt", "about 0 0 0", "epdb"]
    pathlib.Path(f"pose{k}.dpf").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ok, _ = run("autodock4", "-p", f"pose{k}.dpf", "-l", f"pose{k}.dlg")
    if not ok:
        return None, "AutoDock failed: " + fails(f"pose{k}.dlg")
    text = pathlib.Path(f"pose{k}.dlg").read_text(encoding="utf-8", errors="replace")
    titles = ("Estimated Free Energy of Binding", "(1) Final Intermolecular Energy", "vdW + Hbond + desolv Energy", "    Electrostatic Energy", "(2) Final Total Internal Energy", "(3) Torsional Free Energy")
    energies = [value(title, text) for title in titles]
    return (energies, "") if None not in energies else (None, "AutoDock gave no energy")


files = split(poses)
protein = prepared(receptor, "receptor.pdbqt", "-xr")
ligands = []
for k, file in enumerate(files, 1):
    atoms = prepared(file, f"pose{k}.pdbqt")
    places = [place for _, _, place in atoms]
    check_places(k, places)
    if not any(math.dist(p, q[2]) < NEAR for p in places for q in protein):
        refuse(f"No atom of pose {k} lies within {NEAR} Å of the receptor: provide the receptor that it was docked into, in the same coordinates.")
    ligands.append(atoms)
low, high = ([pick(place[axis] for atoms in ligands for _, _, place in atoms) for axis in range(3)] for pick in (min, max))
points = [2 * math.ceil((high[k] - low[k] + 2 * MARGIN) / SPACING / 2) for k in range(3)]
if max(points) > POINTS:
    refuse(f"The poses span {max(high[k] - low[k] for k in range(3)):.0f} Å, but AutoDock's grid covers at most {POINTS * SPACING - 2 * MARGIN:.0f} Å: provide poses from a single binding site.")

kinds = types([atom for atoms in ligands for atom in atoms])
lines = [f"npts {' '.join(map(str, points))}", "gridfld receptor.maps.fld", f"spacing {SPACING}", "receptor_types " + " ".join(types(protein)), "ligand_types " + " ".join(kinds),
         "receptor receptor.pdbqt", "gridcenter " + " ".join(f"{(low[k] + high[k]) / 2:.3f}" for k in range(3)), "smooth 0.5",
         *(f"map receptor.{kind}.map" for kind in kinds), "elecmap receptor.e.map", "dsolvmap receptor.d.map", "dielectric -0.1465"]
pathlib.Path("grid.gpf").write_text("\n".join(lines) + "\n", encoding="utf-8")
print("molrun:progress 0.1 computing maps", flush=True)
ok, _ = run("autogrid4", "-p", "grid.gpf", "-l", "grid.glg")
if not ok:
    refuse(f"AutoGrid failed, perhaps because an element has no parameters ({', '.join(types(protein))} and {', '.join(kinds)}): {fails('grid.glg')}")

rows, failed = [], []
for k, atoms in enumerate(ligands, 1):
    print(f"molrun:progress {0.5 + 0.5 * (k - 1) / len(ligands):.3f} pose {k} of {len(ligands)}", flush=True)
    energies, reason = score(k, atoms)
    heavy = sum(atom[0] not in POLAR and atom[0] != "H" for atom in atoms)
    charge = round(sum(atom[1] for atom in atoms))
    if energies is None:
        failed.append([k, reason])
    else:
        rows.append([k, *energies, round(energies[0] / heavy, 3), charge, "" if energies[0] < 0 else "does not bind"])
if not rows:
    refuse(f"No pose could be scored. {failed[0][1]}")
rows.sort(key=lambda row: row[1])
with open(out / "scores.csv", "w", newline="", encoding="utf-8") as target:
    table = csv.writer(target)
    table.writerow(["rank", "pose", "free_energy_kcal_mol", "intermolecular_kcal_mol", "contacts_kcal_mol", "electrostatic_kcal_mol", "internal_kcal_mol", "torsional_kcal_mol", "efficiency_kcal_mol", "charge_e", "note"])
    table.writerows([rank, *row] for rank, row in enumerate(rows, 1))
    table.writerows(["", k, *[""] * 8, reason] for k, reason in failed)
(out / "best.sdf").write_bytes(pathlib.Path(files[rows[0][0] - 1]).read_bytes())
metrics = {"poses": len(rows), "failed": len(failed), "best_pose": rows[0][0]}
if rows[0][1] < 0:
    metrics["free_energy"] = rows[0][1]
else:
    warn(f"No pose binds: the best free energy is {rows[0][1]:g} kcal/mol, so none is reported. The poses may clash with this receptor, or come from another receptor.")
if failed:
    warn(f"{len(failed)} of {len(ligands)} poses could not be scored: {failed[0][1]}")
(out / "metrics.json").write_text(json.dumps(metrics))
