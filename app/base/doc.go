// Package base is the room of what all rooms share: error codes and fields (fault), text of
// sizes and times (unit), names (naming, nearest), sortable IDs (sortid), signed positions in
// listings (cursor), exact JSON (strictjson) and TOML (tomltree), text files of all systems
// (plaintext), lines of programs (oneline), structures (atoms), tables, digests, atomic files
// (durable), limits of concurrent work (gate), events, how settings name files (reference),
// cycles of dependencies (circle), and what the service and its tasks write for one another
// (protocol).
//
// A package here imports nothing of the module outside this room.
package base
