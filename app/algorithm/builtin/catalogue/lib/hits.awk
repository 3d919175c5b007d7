# Reads the queries of a search (FASTA, optionally gzipped) and its table of hits; warns about queries without hits, and
# writes their number and the identity of the best hit to metrics.json. The best hit has the most bits, since a short
# one can have an identity of 100 %.
BEGIN {
	FS = "\t"
	gsub(/'/, "'\\\\''", queries)
	unpack = "gzip -dcf '" queries "'"
	while ((unpack | getline line) > 0)
		if (line ~ /^>/) { sub(/^>/, "", line); sub(/[ \t\r].*/, "", line); names[++n] = line }
	close(unpack)
}
FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
{
	found[$1]
	if (!hits++ || $column["bits"] + 0 > best) { best = $column["bits"] + 0; identity = $column["identity"] }
}

# is_found reports whether a query has hits; MMseqs2 names queries by the accession in the name.
function is_found(name,   parts, i) {
	for (i = split(name, parts, "|"); i; i--) if (parts[i] in found) return 1
	return name in found
}
END {
	for (i = 1; i <= n; i++)
		if (!is_found(names[i]) && ++without <= 8) list = list (list ? ", " : "") names[i]
	if (without)
		printf "molrun:warning No hits were found for %d of %d queries: %s%s.\n", without, n, list, (without > 8 ? " and " without - 8 " more" : "")
	printf "{\"without_hits\": %d%s}\n", without, (hits ? ", \"best_identity\": " identity : "") > metrics
}
