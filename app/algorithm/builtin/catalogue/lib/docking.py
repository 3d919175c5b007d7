"""Docks the ligands prepared by ligands.py, one by one."""
import csv
import re
import sys


def dock_all(ligands, dock):
    """Calls dock(row, tell) with each row of ligands.csv, where tell(share) reports progress on the ligand.
    dock returns the figures and the pose file, or None and the reason for failure. Returns (row, figures,
    file) for docked ligands and (name, SMILES, reason) for the others; if no ligand is docked, the job
    fails with the first reason."""
    with open(ligands / "ligands.csv", newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    docked, failed = [], []
    for k, row in enumerate(rows):
        def tell(share, k=k):
            print(f"molrun:progress {(k + share) / len(rows):.4f} ligand {k + 1} of {len(rows)}", flush=True)

        tell(0)
        if row["reason"]:
            failed.append([row["name"], row["smiles"], row["reason"]])
            continue
        figures, result = dock(row, tell)
        if figures is None:
            failed.append([row["name"], row["smiles"], result])
            print(f"{row['name']}: {result}", flush=True)
            continue
        docked.append((row, figures, result))
    if not docked:
        sys.exit(f"molrun: No ligand could be docked. {failed[0][0]}: {failed[0][2]}.")
    return docked, failed


def prepared(row):
    """The base name of a ligand's files."""
    return f"{int(row['number']):05d}"


def poses(out, row):
    """The pose file of a ligand."""
    return out / "poses" / f"{prepared(row)}_{re.sub(r'[^A-Za-z0-9._-]+', '_', row['name'])[:60]}.sdf"
