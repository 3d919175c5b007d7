package doctor

import (
	"context"
	"time"

	"molrun/app/server/backup"
)

// checkBackups checks the service's scheduled backups.
func checkBackups(_ context.Context, in *installation) []Finding {
	b := in.config.Backup
	if b.To == "" {
		return finding(OK, "there are no scheduled backups, because backup.to is not set; run molrun backup DIR to take one")
	}
	dir := backup.Dir(b.To)
	marked, err := dir.Marked()
	if err != nil {
		return finding(Problem, "%v; give the service's user access", err)
	}
	if !marked {
		return finding(Problem, "%s has no backups; mount its disk, or run molrun backup %[1]s once", dir)
	}
	newest, err := dir.Newest()
	switch {
	case err != nil:
		return finding(Problem, "%v; run molrun backup", err)
	case newest == nil:
		return finding(Warning, "%s has no complete backup yet", dir)
	}
	found := finding(OK, "the newest is from %s", newest.TakenAt.Local().Format(time.DateTime))
	switch age := time.Since(newest.TakenAt); {
	case age > 2*time.Duration(b.Every):
		found = finding(Problem, "the newest is from %s, although one is due every %s; see the service's log for the reason, and run molrun backup to take one now",
			newest.TakenAt.Local().Format(time.DateTime), time.Duration(b.Every))
	case age < -time.Hour:
		found = finding(Warning, "the newest is from %s, which is in the future; check the clock", newest.TakenAt.Local().Format(time.DateTime))
	}
	if len(newest.Problems) > 0 {
		found = append(found, finding(Problem, "the newest is incomplete, because the data directory was: %s; run molrun check", newest.Problems[0])...)
	}
	tried, err := dir.LastTest()
	switch {
	case err != nil:
		return append(found, finding(Problem, "%v; run molrun restore %s --try to write it again", err, dir)...)
	case tried != nil && len(tried.Problems) > 0:
		return append(found, finding(Problem, "the test restore of backup %s failed: %s", tried.Backup, tried.Problems[0])...)
	}
	return found
}
