"""Checks which residues LigandMPNN can design, and writes its input: structure.pdb, and options.json
with the options that name residues. It reads only complete backbones; every residue to design is
named, so that no other is designed."""
import json
import pathlib
import sys

import residues

settings, work = json.load(open(sys.argv[1], encoding="utf-8")), pathlib.Path(sys.argv[3])
STANDARD = set("ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split())
# Further residues that ProDy counts as protein; LigandMPNN reads them as X.
OTHER = set("ASX CSO GLX HIP HSD HSE HSP MSE PTR SEC SEP TPO XAA XLE".split())
WATER = {"HOH", "DOD", "WAT"}
BACKBONE = {"N", "CA", "C", "O"}


def stop(text):
    sys.exit("molrun: " + text)


def named(residue):
    chain, (number, code), _ = residue
    return f"{chain}{number}{code}"


lines = open(sys.argv[2], encoding="utf-8").read().splitlines()
key = lambda line: (line[21], (int(line[22:26]), line[26].strip()), line[17:20])
atoms, free, context = {}, set(), 0  # chain residues with their atoms, amino acids that are ligands
for line in lines:
    if line.startswith(("ATOM", "HETATM")):
        name = line[17:20].strip()
        if line.startswith("HETATM") and name in STANDARD | OTHER:
            free.add(key(line))
        elif name in STANDARD | OTHER:
            atoms.setdefault(key(line), set()).add(line[12:16].strip())
        if line.startswith("HETATM") or name not in STANDARD | OTHER:
            context += name not in WATER and line[76:78].strip() not in ("H", "D")
chains = sorted({residue[0] for residue in atoms})
if not chains:
    stop("The structure has no amino acids in chains.")
if " " in chains:
    stop("A chain of the structure has no letter: assign one.")
cut = {residue for residue, have in atoms.items() if not BACKBONE <= have}
if cut == set(atoms):
    stop("No residue of the structure has a complete backbone (N, CA, C, O).")
if cut:
    print(f"These residues lack backbone atoms and are left out: {', '.join(map(named, sorted(cut)))}.")

given = (settings.get("chains") or " ".join(chains)).split()
for chain in given:
    if chain not in chains:
        stop(f"The structure has no chain {chain}: its chains are {', '.join(chains)}.")
places = {chain: {residue[1] for residue in atoms if residue[0] == chain} for chain in chains}
everything = {residue for residue in atoms if residue not in cut and residue[0] in given and residue[2] in STANDARD}
designed = everything
if settings.get("fixed"):
    kept = residues.choose(settings["fixed"], places)
    designed = {residue for residue in everything if residue[:2] not in kept}
if settings.get("redesign"):
    chosen = residues.choose(settings["redesign"], places)
    designed = {residue for residue in atoms if residue[:2] in chosen}
    for residue in sorted(designed - everything):
        why = "its chain is not among the chains to design" if residue[0] not in given else "it lacks backbone atoms" if residue in cut else f"it is {residue[2]}, which is not one of the 20 amino acids"
        stop(f"{named(residue)} can't be designed: {why}.")
if not designed:
    stop("No residue is left to design.")

options = ["--redesigned_residues", " ".join(map(named, sorted(designed)))]
if settings.get("tied"):
    if len(given) < 2:
        stop("Identical chains need at least two chains to design.")
    own = {chain: {residue[1] for residue in designed if residue[0] == chain} for chain in given}
    for chain in given[1:]:
        if odd := sorted(own[chain] ^ own[given[0]]):
            stop(f"Chains {given[0]} and {chain} can't get the same sequence: only one of them has residue {odd[0][0]}{odd[0][1]} to design.")
    groups = [[f"{chain}{number}{code}" for chain in given] for number, code in sorted(own[given[0]])]
    options += ["--symmetry_residues", "|".join(map(",".join, groups))]
    options += ["--symmetry_weights", "|".join([",".join([f"{1 / len(given):.6f}"] * len(given))] * len(groups))]
if settings.get("bias"):
    options += ["--bias_AA", ",".join(word.replace("=", ":") for word in settings["bias"].split())]
if settings["model"] == "ligand" and not context:
    print("Warning: the structure has no ligand, metal or nucleic acid.")
with open(work / "structure.pdb", "w", encoding="utf-8") as out:
    for line in lines:
        if line.startswith(("ATOM", "HETATM")):
            if key(line) in cut:
                continue
            if key(line) in free:  # ProDy would count it as part of the chain
                line = line[:17] + "UNL" + line[20:]
        out.write(line + "\n")
(work / "options.json").write_text(json.dumps(options))
(work / "designed").write_text(str(len(designed)))
