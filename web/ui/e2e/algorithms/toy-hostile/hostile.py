"""Writes markup, scripts, bidirectional control characters and long lines into everything that is displayed."""

import sys

megabytes, fail, out = int(sys.argv[1]), sys.argv[2] == "true", sys.argv[3]
MARKUP = ['<img src=x onerror=hurt()>', '<script>hurt()</script>', '"><svg onload=hurt()>', "javascript:hurt()", "{{hurt()}}", "\u202egnp.exe\u202c", "\u2066\u2067mixed", "\x1b[31mred\x1b[0m", "\x1b]8;;javascript:hurt()\x07link\x1b]8;;\x07"]
LONG = "<b>" + "A" * (megabytes << 20)


def write(name, text):
    with open(f"{out}/{name}", "w", encoding="utf-8", newline="") as f:
        f.write(text)


for text in MARKUP:
    print(text)
    print("molrun:progress 0.5 " + text.replace("\n", " "), flush=True)
print(LONG)
print("last line", flush=True)
if fail:
    sys.exit("error: " + MARKUP[0] + MARKUP[1] + MARKUP[5])

pdb = [f"HEADER    {MARKUP[0]}", f"TITLE     {MARKUP[1]}"] + [f"REMARK 999 {text}" for text in MARKUP] + ["REMARK 999 " + "R" * 200_000]
for i, (chain, residue) in enumerate([("<", "<b>"), ("<", "SCR"), ('"', "ALA"), ('"', "ALA"), ("&", "GLY")], 1):
    for k, name in enumerate(["N", "CA", "C", "O"]):
        pdb.append(f"ATOM  {4 * i + k:5d}  {name:<3s} {residue:3s} {chain}{i:4d}    {3.8 * i:8.3f}{1.2 * k:8.3f}{0.5 * k:8.3f}  1.00 50.00           {name[0]}")
write("<img src=x onerror=hurt()>.pdb", "\n".join(pdb) + "\nEND\n")

cells = ['"' + text.replace('"', '""') + '"' for text in MARKUP]
write("table.csv", "name,<b>column</b>," + cells[0] + "\n" + "".join(f"{c},{i},{c}\n" for i, c in enumerate(cells)) + f"long,1,{LONG[:20000]}\n=cmd|' /C calc'!A0,2,+1\n")
write("wide.csv", f"name,value\nlong,{LONG}\n")
write("series.csv", "time,<img src=x onerror=hurt()>," + cells[2] + "\n" + "".join(f"{i},{i * i % 7},{i}\n" for i in range(50)))
write("alignment.fasta", "".join(f">{text}\nMKTAYIAKQR<b>\n" for text in MARKUP))
write("tree.nwk", "(" + ",".join("'" + text.replace("'", "''") + "':1" for text in MARKUP) + ");\n")
write("image.svg", '<svg xmlns="http://www.w3.org/2000/svg" width="50" height="50" onload="hurt()"><script>parent.hurt()</script><rect width="50" height="50" fill="red"/><foreignObject><img src="x" onerror="hurt()"/></foreignObject></svg>')
write("long.txt", "\n".join(MARKUP) + "\n" + LONG)
write("page.html", "<script>parent.hurt(); top.hurt()</script>")
write("\u202egnp.<b>.txt", MARKUP[0])
write("metrics.json", '{"figure": 1.5, "other": "<img src=x onerror=hurt()>"}')
