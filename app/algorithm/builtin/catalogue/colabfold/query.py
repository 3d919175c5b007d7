"""Writes the query of ColabFold: one record with chains separated by colons, since it treats each
record as a separate protein. An alignment is only checked, since ColabFold reads it as is:
colabfold/input.py and unserialize_msa of colabfold/batch.py, release 1.6.2."""
import re

import assembly
import fasta


def check(a):
    if a.files.get("sequence"):
        check_sequence(a)
    if a.files.get("alignment"):  # along with the sequence, if a search made it
        check_alignment(a)


def chains(a):
    return [part.removesuffix("*") for _, text in fasta.records(a.files["sequence"][0], bare=True) for part in text.upper().split(":")]


def check_sequence(a):
    parts = chains(a)
    if not parts or not all(parts):
        a.fault("is not a protein FASTA file: it has no record, or a chain without a sequence", "sequence")
    for k, text in enumerate(parts, 1):
        if odd := next((c for c in text if c not in "ACDEFGHIKLMNPQRSTVWYX"), None):
            a.fault(f"has {odd!r} in chain {k}, which is not one of the 20 amino acids: write X for an unknown one", "sequence")
        elif len(text) >= 20 and set(text) <= set("ACGTN") and set(text) >= set("ACGT"):
            a.fault(f"has DNA as chain {k}; ColabFold accepts only proteins", "sequence")


def check_alignment(a):
    rows = fasta.records(a.files["alignment"][0])
    widths = [sum(not c.islower() and c != "." for c in sequence) for _, sequence in rows]
    if not rows:
        a.fault("is not an A3M file: it has no record", "alignment")
        return
    if odd := next((k for k, width in enumerate(widths) if width != widths[0]), None):
        a.fault(f"is not an A3M file: record {odd + 1} has {widths[odd]} columns and the first has {widths[0]}; insertions must be lowercase", "alignment")
    if bad := next((c for c in rows[0][1] if c not in "ACDEFGHIKLMNPQRSTVWYX"), None):
        a.fault(f"starts with a sequence that is not a protein chain, since it contains {bad!r}; the first record must be the sequence to predict, without gaps", "alignment")
    first = next(filter(None, fasta.lines(a.files["alignment"][0])), "")
    if first.startswith("#") and (said := re.fullmatch(r"#([0-9,]+)\t([0-9,]+)", first)):
        lengths = [int(n) for n in said[1].split(",") if n]
        if sum(lengths) != widths[0]:
            a.fault(f"gives its chains {sum(lengths)} residues, but its first record has {widths[0]}", "alignment")


def write(a, target):
    if not a.files.get("sequence"):
        return
    head = fasta.records(a.files["sequence"][0], bare=True)[0][0].split()
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", head[0] if head else "")[:60].lstrip(".-") or "complex"
    target.write_text(f">{name}\n{':'.join(chains(a))}\n", encoding="utf-8")


assembly.run(check, write)
