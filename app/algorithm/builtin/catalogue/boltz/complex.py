"""Writes the input of Boltz, in YAML: JSON is YAML, too. The alignment gets a line for each
sequence, which Boltz takes every line for."""
import json
import pathlib
import sys

fasta, target, task, alignment, *ligands = sys.argv[1:]
NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
chains = []
with open(fasta, encoding="utf-8-sig") as lines:
    for line in lines:
        if line.startswith(">"):
            chains.append("")
        elif line.strip():
            chains[-1] += "".join(line.split()).upper().rstrip("*")
if alignment != "empty" and len(chains) > 1:
    sys.exit("molrun: The alignment is for a complex of one protein chain: leave it out, or give one chain.")
if alignment != "empty":
    unwrapped = []
    with open(alignment, encoding="utf-8", errors="replace") as lines:
        for line in map(str.strip, lines):
            if unwrapped and line[:1] not in (">", "#") and unwrapped[-1][:1] not in (">", "#"):
                unwrapped[-1] += line
            elif line:
                unwrapped.append(line)
    alignment = str(pathlib.Path(target).with_name("alignment.a3m"))
    pathlib.Path(alignment).write_text("\n".join(unwrapped) + "\n", encoding="utf-8")
sequences = [{"protein": {"id": NAMES[k], "sequence": chain, "msa": alignment}} for k, chain in enumerate(chains)]
sequences += [{"ligand": {"id": NAMES[len(chains) + k], "smiles": smiles}} for k, smiles in enumerate(ligands)]
document = {"version": 1, "sequences": sequences}
if task == "affinity":
    document["properties"] = [{"affinity": {"binder": NAMES[len(chains)]}}]
with open(target, "w", encoding="utf-8") as out:
    json.dump(document, out, indent=1)
