// Package base is the parent of the packages that all others share: error codes and
// fields (fault), text forms of sizes and times (unit), names and file references
// (naming), sortable IDs (sortid), exact JSON (strictjson) and TOML (tomltree), text
// files from any system and program output (plaintext), sequences (fasta), structures,
// tables, digests, atomic file replacement (durable), limits on concurrent work (limit)
// and events.
//
// Packages in this folder import no package of the module outside it.
package base
