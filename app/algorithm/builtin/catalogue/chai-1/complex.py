"""Writes the FASTA file of Chai-1, whose headers give the type of each sequence, plus restraints.csv
and a folder such as msa/A for each chain with an alignment. Formats are those of
chai_lab 0.6.1: data/dataset/inference_dataset.py, data/parsing/restraints.py and
data/parsing/msas/aligned_pqt.py."""
import csv

import assembly

TOKENS = 2048  # AVAILABLE_MODEL_SIZES of chai_lab/data/collate/utils.py


def check(a):
    assembly.strange_letters(a, "Chai-1")
    residues = sum(len(text) for _, _, text in a.of("protein", "dna", "rna"))
    tokens = residues + sum(assembly.heavy(text) for _, _, text in a.of("smiles"))
    if tokens > TOKENS:
        a.fault(f"and ligands have {tokens} residues and ligand atoms; Chai-1 accepts at most {TOKENS}", "proteins")
    proteins = {letter: text for letter, _, text in a.of("protein")}
    for letter, text in proteins.items():
        if letter in a.modifications and text in a.alignments:
            a.fault(f"are in chain {letter}, which also has an alignment that Chai-1 would then not find: remove one of the two", "modifications")
    if a.settings.get("pocket") and not a.of("smiles"):
        a.fault("needs a ligand to bind there", "pocket")
    for setting in ("pocket", "contacts"):
        for k, text in enumerate(a.settings.get(setting) or []):
            places = [a.residue(residue, setting, k) for residue in text.split("-")]
            for chain, number in filter(None, places):
                if chain not in proteins or number in a.modifications.get(chain, {}):
                    a.fault(f"names {chain}:{number}, which is not one of the 20 amino acids: Chai-1 can restrain only those", setting, k)
            if None not in places and len(places) == 2 and places[0][0] == places[1][0]:
                a.fault("is within one chain; Chai-1 accepts only contacts between two chains", setting, k)


def write(a, target):
    with open(target, "w", encoding="utf-8") as out:
        for k, (letter, kind, text) in enumerate(a.chains, 1):
            changed = a.modifications.get(letter, {})
            if kind == "smiles":
                k -= len(a.chains) - len(a.of("smiles"))
                out.write(f">ligand|name=ligand_{k}\n{text}\n")
            else:
                out.write(f">{kind}|name=chain_{k}\n{''.join(f'({changed[n]})' if n in changed else c for n, c in enumerate(text, 1))}\n")
    proteins = {letter: text for letter, _, text in a.of("protein")}
    for text, letter in {text: letter for letter, text in reversed(proteins.items())}.items(): # identical chains share one
        if text in a.alignments:
            folder = target.with_name("msa") / letter
            folder.mkdir(parents=True)
            (folder / "hits_uniref90.a3m").write_text(a.a3m(text), encoding="utf-8")
    named = lambda chain, number: (chain, f"{proteins[chain][number - 1]}{number}")
    rows = []
    for text in a.settings.get("pocket") or []:
        rows.append([a.of("smiles")[0][0], "", *named(*a.residue(text)), "pocket"])
    for text in a.settings.get("contacts") or []:
        one, other = map(a.residue, text.split("-"))
        rows.append([*named(*one), *named(*other), "contact"])
    if rows:
        with open(target.with_name("restraints.csv"), "w", newline="", encoding="utf-8") as out:
            table = csv.writer(out)
            table.writerow("restraint_id chainA res_idxA chainB res_idxB connection_type confidence min_distance_angstrom max_distance_angstrom comment".split())
            table.writerows([f"restraint{k}", *row, 1.0, 0.0, float(a.settings["distance"]), "molrun"] for k, row in enumerate(rows))


assembly.run(check, write)
