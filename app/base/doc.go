// Package base is the room of what molrun would need if it ran anything else: error codes
// and fields (fault), text of sizes and times (unit), names (naming), sortable IDs
// (sortid), exact JSON (strictjson) and TOML (tomltree), text files of all systems
// (plaintext), structures (atoms), tables, digests, atomic files (durable), limits of
// concurrent work (gate), events, and what the service and its tasks write for one another
// (protocol).
//
// A package here imports nothing of the module outside this room.
package base
