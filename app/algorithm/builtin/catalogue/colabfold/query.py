"""Writes the query of ColabFold: a record whose chains are separated by colons, since it takes
each record for a protein of its own. An alignment is checked, which ColabFold reads as it is:
colabfold/input.py and unserialize_msa of colabfold/batch.py, release 1.6.2."""
import re

import assembly
import fasta


def check(a):
    if a.files.get("sequence"):
        check_sequence(a)
    if a.files.get("alignment"):  # beside the sequence, if it was searched for
        check_alignment(a)


def chains(a):
    return [part.removesuffix("*") for _, text in fasta.records(a.files["sequence"][0], bare=True) for part in text.upper().split(":")]


def check_sequence(a):
    parts = chains(a)
    if not parts or not all(parts):
        a.fault("is no FASTA file of proteins: it has no record, or a chain without a sequence", "sequence")
    for k, text in enumerate(parts, 1):
        if odd := next((c for c in text if c not in "ACDEFGHIKLMNPQRSTVWYX"), None):
            a.fault(f"has {odd!r} in chain {k}, which is none of the 20 amino acids: write X for one that is unknown", "sequence")
        elif len(text) >= 20 and set(text) <= set("ACGTN") and set(text) >= set("ACGT"):
            a.fault(f"has DNA as chain {k}; ColabFold takes proteins alone", "sequence")


def check_alignment(a):
    rows = fasta.records(a.files["alignment"][0])
    widths = [sum(not c.islower() and c != "." for c in sequence) for _, sequence in rows]
    if not rows:
        a.fault("is no A3M file: it has no record", "alignment")
        return
    if odd := next((k for k, width in enumerate(widths) if width != widths[0]), None):
        a.fault(f"is no A3M file: its record {odd + 1} has {widths[odd]} columns, and the first one {widths[0]}; insertions are small letters", "alignment")
    if bad := next((c for c in rows[0][1] if c not in "ACDEFGHIKLMNPQRSTVWYX"), None):
        a.fault(f"begins with a sequence that is no protein chain: it has {bad!r}; the first record must be what is predicted, without gaps", "alignment")
    first = next(filter(None, fasta.lines(a.files["alignment"][0])), "")
    if first.startswith("#") and (said := re.fullmatch(r"#([0-9,]+)\t([0-9,]+)", first)):
        lengths = [int(n) for n in said[1].split(",") if n]
        if sum(lengths) != widths[0]:
            a.fault(f"says that its chains have {sum(lengths)} residues, and its first record has {widths[0]}", "alignment")


def write(a, target):
    if not a.files.get("sequence"):
        return
    head = fasta.records(a.files["sequence"][0], bare=True)[0][0].split()
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", head[0] if head else "")[:60].lstrip(".-") or "complex"
    target.write_text(f">{name}\n{':'.join(chains(a))}\n", encoding="utf-8")


assembly.run(check, write)
