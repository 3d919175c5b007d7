"""Writes the input of AlphaFold 3 (docs/input.md of google-deepmind/alphafold3, 3.0.4). Missing
alignments and templates are written as empty, so no database is searched."""
import json

import assembly


def check(a):
    assembly.strange_letters(a, "AlphaFold 3")
    a.bonds()


def write(a, target):
    sequences = []
    for letter, kind, text in a.chains:
        if kind in ("smiles", "ccd"):
            sequences.append({"ligand": {"id": letter, **({"smiles": text} if kind == "smiles" else {"ccdCodes": [text]})}})
            continue
        chain, changed = {"id": letter, "sequence": text}, sorted(a.modifications.get(letter, {}).items())
        if kind == "protein":
            chain |= {"unpairedMsa": a.a3m(text) if text in a.alignments else "", "pairedMsa": "", "templates": []}
            chain["modifications"] = [{"ptmType": code, "ptmPosition": k} for k, code in changed]
        else:
            chain["modifications"] = [{"modificationType": code, "basePosition": k} for k, code in changed]
        if kind == "rna":
            chain["unpairedMsa"] = ""
        sequences.append({kind: chain})
    seeds = [a.settings["seed"] + k for k in range(a.settings["seeds"])]
    document = {"name": "complex", "modelSeeds": seeds, "sequences": sequences, "dialect": "alphafold3", "version": 1}
    if bonds := a.bonds():
        document["bondedAtomPairs"] = bonds
    with open(target, "w", encoding="utf-8") as out:
        json.dump(document, out, indent=1)


assembly.run(check, write)
