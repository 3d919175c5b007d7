"""Writes one chain of each structure as a PDB file for TM-align, and records which chains.

  chains.py MOLRUN FOLDER METRICS mobile FILE CHAIN target FILE CHAIN

An empty CHAIN means the first one with three alpha carbons."""
import json
import re
import subprocess
import sys

molrun, folder, metrics, *structures = sys.argv[1:]
LEAST = 3  # minimum number of alpha carbons for TM-align
SHORT = 30  # residues; shorter pieces of unrelated proteins reach 0.5 (measured: 0.49 for 25, 0.53 for 10)


def refuse(sentence):
    sys.exit("molrun: " + sentence)


figures, names_of = {}, {"mobile": "structure to move", "target": "structure to compare with"}
for role, file, wanted in zip(*[iter(structures)] * 3):
    path = f"{folder}/{role}-read.pdb"
    done = subprocess.run([molrun, "engine", "pdb", "--structure", file, "--standard", "--out", path], capture_output=True, text=True, check=False)
    print(role + ":", done.stdout + done.stderr, flush=True)
    if done.returncode:
        refuse(f"The {names_of[role]} " + done.stderr.strip().splitlines()[-1].split("the structure ")[-1] + ".")
    given = {letter: name for name, letter in re.findall(r"(?m)^Chain (.+) was renamed (\S+)\.$", done.stdout)}
    chains, carbons = {}, {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("ATOM"):
                chain = given.get(line[21], line[21])
                chains.setdefault(chain, []).append(line)
                if line[12:16] == " CA ":
                    carbons.setdefault(chain, set()).add(line[22:27])
    carbons = {chain: len(residues) for chain, residues in carbons.items() if len(residues) >= LEAST}
    names = ", ".join(carbons)
    if not carbons:
        refuse(f"The {names_of[role]} has no chain with at least {LEAST} alpha carbons.")
    if wanted and wanted not in carbons:
        refuse(f"The {names_of[role]} has no chain {wanted} with at least {LEAST} alpha carbons: the chains that do are {names}.")
    chain = wanted or next(iter(carbons))
    print(f"{role}: comparing chain {chain} of {names}, with {carbons[chain]} residues.")
    if carbons[chain] < SHORT:
        print(f"molrun:warning Chain {chain} of the {names_of[role]} has {carbons[chain]} residues. TM-scores are meant for whole folds: pieces of fewer than {SHORT} residues can reach 0.5 by chance.")
    with open(f"{folder}/{role}.pdb", "w", encoding="utf-8") as out:
        out.writelines([*chains[chain], "TER\nEND\n"])
    figures[role + "_chain"] = chain
with open(metrics, "w", encoding="utf-8") as out:
    json.dump(figures, out)
