// Package base is the parent of the packages shared by all others: error codes and fields
// (fault), text of sizes and times (unit), names and file references (naming), sortable
// IDs (sortid), exact JSON (strictjson) and TOML (tomltree), text files of all systems
// and program output (plaintext), structures (atoms), tables, digests, atomic files
// (durable), limits of concurrent work (limit) and events.
//
// A package here imports no package of the module outside this folder.
package base
