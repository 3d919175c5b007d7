# Reads an alignment (FASTA); writes what it is like to metrics.json and columns.tsv.
/^>/ { n++; next }
{ gsub(/[ \t\r]/, ""); rows[n] = rows[n] toupper($0) }
END {
	len = length(rows[1])
	print "column\toccupancy\tidentity" > columns
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
	if (allPairs) printf ", \"identity\": %.4f", 100 * allEqual / allPairs > metrics
	print "}" > metrics
}
