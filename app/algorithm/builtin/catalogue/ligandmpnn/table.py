"""Tabulates the output of LigandMPNN (designs.csv, designs.fasta and metrics.json) and moves the
structures to the result."""
import csv
import json
import math
import pathlib
import re
import shutil
import sys

folder, model, asked, out = pathlib.Path(sys.argv[1]), sys.argv[2], int(pathlib.Path(sys.argv[3]).read_text()), pathlib.Path(sys.argv[4])
text = (folder / "seqs" / "structure.fa").read_text(encoding="utf-8")
records = re.findall(r"^>([^\n]*)\n([^\n]*)", text, re.MULTILINE)
head = dict(re.findall(r"(\w+)=([^,\s]+)", records[0][0]))
if int(head["num_res"]) != asked:
    sys.exit(f"molrun: LigandMPNN designed {head['num_res']} residues instead of the {asked} requested.")
# If no designed residue is near a ligand, the confidence there is 1, computed from no residue.
near = int(float(head["num_ligand_res"])) if model == "ligand" else 0
if model == "ligand" and not near:
    print("Warning: no residue to design is within 8 Å of a ligand.")
packed = sorted((folder / "packed").glob("*.pdb"))
names = {}
for file in packed or sorted((folder / "backbones").glob("*.pdb")):
    number = re.fullmatch(r"structure_packed_(\d+)_1|structure_(\d+)", file.stem)
    if number:
        names[int(number[1] or number[2])] = file
rows = []
for line, sequence in records[1:]:
    value = dict(re.findall(r"(\w+)=([^,\s]+)", line))
    figures = [float(value[word]) for word in ("overall_confidence", "ligand_confidence", "seq_rec")]
    if not all(map(math.isfinite, figures)):
        sys.exit("molrun: LigandMPNN reported no confidence for these residues.")
    rows.append([int(value["id"]), figures[0], figures[1] if near else "", figures[2], sequence.strip()])
if not rows:
    sys.exit("molrun: LigandMPNN proposed no sequence.")
rows.sort(key=lambda row: -row[1])
chains = sorted({line[21] for line in (folder.parent / "structure.pdb").read_text(encoding="utf-8").splitlines() if line.startswith("ATOM") and line[12:16] == " CA " and line[17:20] != "UNL"})
with open(out / "designs.csv", "w", newline="", encoding="utf-8") as table, open(out / "designs.fasta", "w", encoding="utf-8") as fasta:
    write = csv.writer(table)
    write.writerow(["sample", "confidence", "ligand_confidence", "recovery", "sequence", "file"])
    for sample, confidence, ligand, recovery, sequence in rows:
        parts = sequence.split(":")
        if len(parts) != len(chains):
            sys.exit(f"molrun: LigandMPNN wrote {len(parts)} chains, but the structure has {len(chains)}.")
        for chain, letters in zip(chains, parts):
            fasta.write(f">design_{sample}" + (f"_{chain}" if len(chains) > 1 else "") + f" confidence={confidence}\n{letters}\n")
        name = f"design_{sample}.pdb"
        shutil.copyfile(names[sample], out / name)
        write.writerow([sample, confidence, ligand, recovery, sequence, name])
figures = {
    "confidence": rows[0][1], "recovery": round(sum(row[3] for row in rows) / len(rows), 4), "designed_residues": asked,
    "designs": len(rows), "different": len({row[4] for row in rows}),
}
if near:
    figures |= {"ligand_confidence": rows[0][2], "ligand_residues": near}
(out / "metrics.json").write_text(json.dumps(figures))
