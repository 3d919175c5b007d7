# Summarizes an alignment (FASTA) in metrics.json and columns.tsv. Warns about sequences that hardly overlap, and
# about DNA or RNA on the opposite strand.
/^>/ { names[++n] = substr($1, 2, 60); next }
{ gsub(/[ \t\r]/, ""); rows[n] = rows[n] toupper($0) }

# others names the sequences that share more words with the opposite strand of the first sequence than with the first.
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
	for (i = rest = 0; i <= longest; i++) { # whole: columns in common if the shorter of each pair were aligned end to end
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
		printf "molrun:warning The sequences hardly overlap: pairs share %.0f %% of the columns that they could share, so no mean identity is reported.\n", 100 * allPairs / whole
	else if (allPairs) printf ", \"identity\": %.4f", 100 * allEqual / allPairs > metrics
	print "}" > metrics
	if (!protein && (list = others()))
		printf "molrun:warning These sequences seem to be on the opposite strand from %s: %s. Reverse-complement them; MAFFT can do this.\n", names[1], substr(list, 1, 300)
}
