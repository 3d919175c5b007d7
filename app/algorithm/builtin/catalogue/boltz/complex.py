"""Writes the input of Boltz as JSON, which is valid YAML. Keys are from docs/prediction.md
and src/boltz/data/parse/schema.py of jwohlwend/boltz 2.2.0."""
import json
import pathlib
import shutil

import assembly


def check(a):
    settings = a.settings
    smiles, ccd = [text for _, _, text in a.of("smiles")], [text for _, _, text in a.of("ccd")]
    a.bonds()
    for k, text in enumerate(settings.get("pocket") or []):
        a.residue(text, "pocket", k)
    if settings.get("pocket") and not smiles + ccd:
        a.fault("needs a ligand to bind there", "pocket")
    for k, text in enumerate(settings.get("contacts") or []):
        for residue in text.split("-"):
            a.residue(residue, "contacts", k)
    letters = [letter for letter, _, _ in a.of("protein", "dna", "rna")]
    for k, letter in enumerate(settings.get("cyclic") or []):
        if letter not in letters:
            a.fault(f"names chain {letter}; the chains are {', '.join(letters)}", "cyclic", k)
    if settings.get("affinity"):
        # schema.py: "Cannot compute affinity for a ligand that has multiple copies!", and a limit of 128 atoms
        if not smiles + ccd:
            a.fault("needs a ligand", "affinity")
        elif (smiles or ccd).count((smiles or ccd)[0]) > 1:
            a.fault("can't be computed: the complex has several copies of the first ligand", "affinity")
        elif smiles and assembly.heavy(smiles[0]) > 128:
            a.fault(f"can't be computed: the first ligand has {assembly.heavy(smiles[0])} atoms, and 128 is the maximum", "affinity")
    assembly.strange_letters(a, "Boltz")  # prot_letter_to_token of src/boltz/data/const.py
    # schema.py groups chains with the same sequence, and takes modifications and cyclic from the first one.
    for letter, kind, sequence in a.of("protein", "dna", "rna"):
        first = next(other for other, k, s in a.chains if (k, s) == (kind, sequence))
        if a.modifications.get(letter) != a.modifications.get(first):
            a.fault(f"differ between chains {first} and {letter}, which have the same sequence: Boltz would give both the same modifications", "modifications")
        if (letter in (settings.get("cyclic") or [])) != (first in (settings.get("cyclic") or [])):
            a.fault(f"names only one of chains {first} and {letter}, which have the same sequence: Boltz makes both cyclic or neither", "cyclic")


def write(a, target):
    settings, sequences, msas = a.settings, [], {}
    for letter, kind, text in a.chains:
        if kind in ("smiles", "ccd"):
            sequences.append({"ligand": {"id": letter, kind: text}})
            continue
        chain = {"id": letter, "sequence": text}
        if kind == "protein":
            chain["msa"] = msas.get(text, "empty")
            if text in a.alignments and text not in msas:
                path = target.with_name(f"alignment_{letter}.a3m")
                path.write_text(a.a3m(text), encoding="utf-8")
                chain["msa"] = msas[text] = str(path)
        if letter in a.modifications:
            chain["modifications"] = [{"position": k, "ccd": code} for k, code in sorted(a.modifications[letter].items())]
        if letter in (settings.get("cyclic") or []):
            chain["cyclic"] = True
        sequences.append({kind: chain})
    document = {"version": 1, "sequences": sequences}
    constraints, ligand = [], next((letter for letter, _, _ in a.of("smiles", "ccd")), None)
    if settings.get("pocket"):
        constraints.append({"pocket": {"binder": ligand, "contacts": [list(a.residue(text)) for text in settings["pocket"]], "max_distance": settings["distance"]}})
    for text in settings.get("contacts") or []:
        one, other = map(a.residue, text.split("-"))
        constraints.append({"contact": {"token1": list(one), "token2": list(other), "max_distance": settings["distance"]}})
    constraints += [{"bond": {"atom1": list(one), "atom2": list(other)}} for one, other in a.bonds()]
    if constraints:
        document["constraints"] = constraints
    templates = []
    for k, path in enumerate(a.files.get("templates", []), 1):  # a template is named after its file
        kind = "cif" if pathlib.Path(path).suffix.lower() in (".cif", ".mmcif") else "pdb"
        copy = target.with_name(f"template_{k}.{kind}")
        shutil.copyfile(path, copy)
        templates.append({kind: str(copy)})
    if templates:
        document["templates"] = templates
    if settings.get("affinity"):
        document["properties"] = [{"affinity": {"binder": ligand}}]
    with open(target, "w", encoding="utf-8") as out:
        json.dump(document, out, indent=1)


assembly.run(check, write)
