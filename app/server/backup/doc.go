// Package backup takes backups of a data directory and restores them.
//
// A directory of backups, as molrun backup makes it and molrun restore reads it,
// holds
//
//	molrun-backups.json    whose backups these are
//	20261121T034000Z/      a backup, named after its moment; may be removed alone
//	  backup.json          what it is, and the digest of SHA256SUMS
//	  SHA256SUMS           of every file in it, also for sha256sum --check
//	  data/                the data directory: jobs.db, secret, uploads/, jobs/ ...
//	partial/               an unfinished backup; the next one continues it
//	trial/                 a backup that is being restored on trial
//	trial.json             what came of the last trial
//
// A file that the previous backup has too is a hard link to that one's, since
// stored files never change: each backup is complete and costs only what is new.
// Damage to such a file in place damages it in all of them, which molrun backup
// --deep finds and mends for the backups from then on. Nothing is ever linked to
// the live data. Package snapshot explains why a backup is of one moment. Schedule takes
// the backups of a running service.
package backup
