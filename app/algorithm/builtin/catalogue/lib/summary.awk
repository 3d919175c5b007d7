# Reads an alignment (FASTA); writes what it is like to metrics.json and columns.tsv. Sequences that hardly
# overlap, and DNA or RNA of the other strand, get a warning.
/^>/ { names[++n] = substr($1, 2, 60); next }
{ gsub(/[ \t\r]/, ""); rows[n] = rows[n] toupper($0) }

# others names the sequences that have more words of the first one's other strand than of its own.
function others(   k, i, word, row, back, ours, theirs, same, turned, list) {
	for (k = 1; k <= n; k++) {
		row = rows[k]; same = turned = 0
		gsub(/[-.]/, "", row); gsub(/U/, "T", row)
		if (k == 1) for (i = length(row); i; i--) back = back substr("TGCA-", index("ACGT", substr(row, i, 1)), 1)
		for (i = 1; i <= length(row) - 11; i++) {
			word = substr(row, i, 12)
			if (k == 1) { ours[word]; theirs[substr(back, i, 12)] }
			same += (word in ours); turned += (word in theirs)
		}
		if (k > 1 && turned > same + 4) list = list (list ? ", " : "") names[k]
	}
	return list
}
END {
	len = length(rows[1])
	print "column\toccupancy\tidentity" > columns
	for (k = 1; k <= n; k++) {
		row = rows[k]
		if (row ~ /[^ACGTURYSWKMBDHVN.-]/) protein = 1
		gsub(/[-.X]/, "", row)
		lengths[length(row)]++
		if (length(row) > longest) longest = length(row)
	}
	for (i = rest = 0; i <= longest; i++) { # where the shorter one of a pair lies beside the other from end to end
		rest += lengths[i]
		whole += i * lengths[i] * (n - rest + (lengths[i] - 1) / 2)
	}
	for (i = 1; i <= len; i++) {
		split("", seen)
		there = known = 0
		for (k = 1; k <= n; k++) {
			c = substr(rows[k], i, 1)
			if (c == "-" || c == ".") continue
			there++
			if (c != "X") { known++; seen[c]++ }
		}
		equal = 0
		for (c in seen) equal += seen[c] * (seen[c] - 1) / 2
		pairs = known * (known - 1) / 2
		letters += there; allEqual += equal; allPairs += pairs
		printf "%d\t%.4g\t%s\n", i, 100 * there / n, pairs ? sprintf("%.4g", 100 * equal / pairs) : "" > columns
	}
	printf "{\"sequences\": %d, \"columns\": %d, \"gaps\": %.4f", n, len, 100 * (1 - letters / (n * len)) > metrics
	if (allPairs < whole / 2)
		printf "molrun:warning The sequences hardly overlap: pairs of them have %.0f %% of the columns in common that they could have. So there is no mean identity.\n", 100 * allPairs / whole
	else if (allPairs) printf ", \"identity\": %.4f", 100 * allEqual / allPairs > metrics
	print "}" > metrics
	if (!protein && (list = others()))
		printf "molrun:warning These sequences look like the other strand of %s: %s. Turn them around, as MAFFT does where it is asked to.\n", names[1], substr(list, 1, 300)
}
