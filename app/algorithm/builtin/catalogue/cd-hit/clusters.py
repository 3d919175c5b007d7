"""Tabulates the clusters of CD-HIT: members.csv, clusters.csv and metrics.json.

  clusters.py CLUSTERS OUT SEQUENCES"""
import csv
import json
import pathlib
import re
import sys

clusters, out, given = sys.argv[1], pathlib.Path(sys.argv[2]), int(float(sys.argv[3]))
MEMBER = re.compile(r"\d+\t(\d+)(?:aa|nt), >(.*)\.\.\. (?:(\*)|at (.*?)/?([\d.]+)%)$")

found = []
with open(clusters, encoding="utf-8", errors="replace") as lines:
    for line in lines:
        line = line.rstrip("\n")
        if line.startswith(">Cluster"):
            found.append([])
            continue
        member = MEMBER.match(line)
        if member is None:
            sys.exit(f"molrun: The cluster list of CD-HIT can't be read at {line[:80]!r}.")
        length, name, first, where, identity = member.groups()
        found[-1].append((name, int(length), bool(first), identity or "100", "-" if (where or "").rsplit("/", 1)[-1] == "-" else "+"))
count = sum(map(len, found))
if count != given:
    sys.exit(f"molrun: CD-HIT clustered {count} of {given} sequences and left out the others: look for sequences of unknown residues.")
found.sort(key=len, reverse=True)
members, sizes = [], []
for cluster in found:
    name = next(member[0] for member in cluster if member[2])
    longest = max(member[1] for member in cluster)
    others = [float(member[3]) for member in cluster if not member[2]]
    sizes.append([name, len(cluster), longest, min(others) if others else ""])
    members += [[name, member[0], member[1], member[3], member[4]] for member in sorted(cluster, key=lambda member: not member[2])]
with open(out / "members.csv", "w", newline="", encoding="utf-8") as target:
    csv.writer(target).writerows([["representative", "member", "length", "identity_percent", "strand"], *members])
with open(out / "clusters.csv", "w", newline="", encoding="utf-8") as target:
    csv.writer(target).writerows([["representative", "members", "length", "least_identity_percent"], *sizes])
(out / "metrics.json").write_text(json.dumps({
    "clusters": len(found), "sequences": count, "largest": len(found[0]), "alone": sum(len(cluster) == 1 for cluster in found), "kept_percent": round(100 * len(found) / count, 2),
}))
