"""Reads FASTA and A3M files leniently."""


def lines(path):
    """Yields the lines of a text file, stripped of surrounding whitespace."""
    with open(path, "rb") as head:
        encoding = "utf-16" if head.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    with open(path, encoding=encoding, errors="replace") as text:
        yield from map(str.strip, text)


def records(path, bare=False):
    """Header and sequence of each FASTA or A3M record, whose lines can be wrapped; bare also
    accepts a file without headers."""
    found = []
    for line in lines(path):
        if line.startswith(">"):
            found.append([line[1:].strip(), []])
        elif line and line[0] not in "#;":
            if bare and not found:
                found.append(["", []])
            if found:
                found[-1][1].append("".join(line.split()))
    return [(head, "".join(parts)) for head, parts in found]
