// Package backup takes backups of a data directory and restores them.
//
// A backup directory, as written by molrun backup and read by molrun restore, contains
//
//	molrun-backups.json    identifies the database
//	20261121T034000Z/      a backup, named after its time; can be deleted individually
//	  backup.json          its description, with the digest of SHA256SUMS
//	  SHA256SUMS           of every file in it, also for sha256sum --check
//	  data/                the data directory: jobs.db, secret, uploads/, jobs/ ...
//	partial/               an unfinished backup; the next one continues it
//	trial/                 a backup during a test restore
//	trial.json             the result of the last test restore
//
// A file that the previous backup also contains is a hard link to it, since stored files
// never change: each backup is complete and costs only the space of new files. Damage to
// such a file in place affects all backups that share it; molrun backup --deep detects it
// and fixes it from that backup on. Nothing is ever linked to the live data. Package
// snapshot explains how a backup captures a single point in time. Schedule takes the
// backups of a running service.
package backup
