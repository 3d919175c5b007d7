// Package base is the room of what all rooms share: error codes and fields (fault), text of
// sizes and times (unit), names and references to files (naming), sortable IDs (sortid), exact
// JSON (strictjson) and TOML (tomltree), text files of all systems and lines of programs
// (plaintext), structures (atoms), tables, digests, atomic files (durable), limits of
// concurrent work (limit) and events.
//
// A package here imports nothing of the module outside this room.
package base
