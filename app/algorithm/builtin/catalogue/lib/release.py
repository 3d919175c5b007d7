"""Prints the version checked out in a repository, without git: the tag of the commit, or the newest
tag and the first digits of the commit."""
import pathlib
import re
import sys

git = pathlib.Path(sys.argv[1], ".git")
if not (git / "HEAD").is_file():
    sys.exit(f"{sys.argv[1]} is not a git clone.")
commits, name = {}, ""
if (git / "packed-refs").is_file():
    for line in (git / "packed-refs").read_text().splitlines():
        if line.startswith("^"):  # the commit of the annotated tag above
            commits[name] = line[1:]
        elif not line.startswith("#"):
            commit, name = line.split(" ", 1)
            commits[name] = commit
for file in (git / "refs").rglob("*"):
    if file.is_file():
        commits[str(file.relative_to(git))] = file.read_text().strip()
head = (git / "HEAD").read_text().strip()
head = commits[head[5:]] if head.startswith("ref: ") else head
tags = {name[10:].lstrip("v"): commit for name, commit in commits.items() if name.startswith("refs/tags/")}
newest = sorted(tags, key=lambda tag: [int(n) for n in re.findall(r"\d+", tag)])
print(next((tag for tag in reversed(newest) if tags[tag] == head), ".".join([*newest[-1:], head[:7]])))
