"""Runs ImmuneBuilder for the given chains and tabulates its predicted errors:
structure.pdb, models/, residues.csv, chains.csv and metrics.json.

  predict.py SETTINGS FOLDER_OF_PROGRAMS OUT CPUS"""
import csv
import json
import pathlib
import shutil
import subprocess
import sys

settings, programs, out, cpus = json.load(open(sys.argv[1], encoding="utf-8")), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
given = {chain: "".join(settings[name].split()).upper() for chain, name in (("H", "heavy"), ("L", "light"), ("A", "alpha"), ("B", "beta")) if settings.get(name)}
program = {"HL": "ABodyBuilder2", "H": "NanoBodyBuilder2", "AB": "TCRBuilder2"}["".join(given)]
# One line per sequence: the programs' reader uses only the first line of wrapped sequences.
pathlib.Path("chains.fasta").write_text("".join(f">{chain}\n{letters}\n" for chain, letters in given.items()))
command = [str(programs / program), "--fasta_file", "chains.fasta", "--output", "models", "--to_directory", "--numbering_scheme", settings["numbering"], "--n_threads", cpus, "--verbose"]
done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
print(done.stdout, flush=True)
if done.returncode != 0:
    sys.exit(done.returncode if done.returncode > 0 else 1)
if not pathlib.Path("models/final_model.pdb").exists():
    sys.exit("molrun: The structure could not be refined.")

residues, place = [], None
for line in pathlib.Path("models/final_model.pdb").read_text(encoding="utf-8").splitlines():
    if line.startswith("ATOM") and (line[21], line[22:27]) != place:
        place = (line[21], line[22:27])
        residues.append([line[21], line[22:27].strip(), line[17:20], float(line[60:66])])
built = {chain: [r for r in residues if r[0] == chain] for chain in given}
for chain, rows in built.items():
    if not rows:
        sys.exit(f"molrun: {program} did not build chain {chain}.")
    if len(rows) > len(given[chain]):
        sys.exit(f"molrun: {program} built {len(rows)} residues of chain {chain}, which has {len(given[chain])}.")
shutil.copyfile("models/final_model.pdb", out / "structure.pdb")
(out / "models").mkdir()
for file in sorted(pathlib.Path("models").glob("rank*_unrefined.pdb")):
    shutil.copyfile(file, out / "models" / file.name)


def write(name, rows):
    with open(out / name, "w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows(rows)


mean = lambda rows: round(sum(r[3] for r in rows) / len(rows), 3)
write("residues.csv", [["residue", "chain", "number", "name", "error_A"], *([k, *r[:3], f"{r[3]:.2f}"] for k, r in enumerate(residues, 1))])
write("chains.csv", [["chain", "given", "built", "error_A", "note"], *(
    [chain, len(given[chain]), len(rows), mean(rows), "" if len(rows) == len(given[chain]) else "only the variable domain was built"] for chain, rows in built.items())])
metrics = {"error_A": mean(residues), "largest_error_A": max(r[3] for r in residues), "residues": len(residues), "left_out": sum(map(len, given.values())) - len(residues), "program": program}
# IMGT numbers of the third loop, which binds and is hardest to predict.
loop = [r for r in residues if r[0] in "HB" and 105 <= int("".join(filter(str.isdigit, r[1]))) <= 117] if settings["numbering"] == "imgt" else []
if loop:
    metrics["loop_error_A"] = mean(loop)
(out / "metrics.json").write_text(json.dumps(metrics))
