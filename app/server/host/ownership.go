package host

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/rs/zerolog"

	"molrun/app/base/durable"
	"molrun/app/base/fault"
)

// PrepareData makes the data directory inaccessible to other users. A path that is
// missing, or contains other files, becomes a data directory only if init is set: the
// path might be mistyped, or the disk not mounted. PrepareData rejects a directory that
// is writable by others, since they could have changed it, and one without its database,
// whose files would be removed as orphans.
func PrepareData(data string, init bool, log zerolog.Logger) error {
	what, err := inspectPath(data)
	switch {
	case err != nil:
		return err
	case what == remains:
		return fault.Errorf(fault.Invalid, "%s has files of jobs or uploads, but its database %s is missing; restore a backup into another directory, or move these files elsewhere", data, Database)
	case what == foreign && !init:
		return fault.Errorf(fault.Invalid, "%s is not a data directory and contains other files%s", data, suggestion(data, "to use it all the same, start with --init"))
	case what == absent && !init:
		return fault.Errorf(fault.Invalid, "there is no data directory %s%s", data, suggestion(data, "to make it, start with --init"))
	case what != used:
		log.Info().Str("data", data).Msg("created a data directory")
	}
	if err := durable.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	info, err := os.Stat(data)
	if err != nil {
		return fmt.Errorf("inspect the data directory: %w", err)
	}
	perm := info.Mode().Perm()
	switch {
	case perm&0o022 != 0:
		return fault.Errorf(fault.Invalid, "%s is writable by others (mode %#o): check its content, then run chmod 700 on it", data, perm)
	case perm&0o077 == 0:
		return nil
	}
	if err := os.Chmod(data, 0o700); err != nil {
		return fault.Errorf(fault.Invalid, "%s is accessible to others (mode %#o), and changing that failed: %v; run chmod 700 on it as its owner", data, perm, err)
	}
	log.Warn().Str("data", data).Str("mode", fmt.Sprintf("%#o", perm)).Msg("data directory was accessible to others; changed its mode to 0700")
	return nil
}

// OtherOwner returns the owner of a file and what to do about it, or "" if this user owns
// it.
func OtherOwner(path string, info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return ""
	}
	return fmt.Sprintf("%s belongs to user %d and this is user %d; run molrun as that user, or chown -R it to this one", path, stat.Uid, os.Geteuid())
}
