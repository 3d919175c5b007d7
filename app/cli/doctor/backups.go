package doctor

import (
	"context"
	"time"

	"molrun/app/server/backup"
)

// checkBackups looks at the backups that the service takes itself.
func checkBackups(_ context.Context, in *installation) []Finding {
	b := in.config.Backup
	if b.To == "" {
		return finding(OK, "the service takes none itself: backup.to is not set; molrun backup DIR takes one")
	}
	dir := backup.Dir(b.To)
	marked, err := dir.Marked()
	if err != nil {
		return finding(Problem, "%v; give the service's user access to it", err)
	}
	if !marked {
		return finding(Problem, "%s has no backups; mount its disk, or run molrun backup %[1]s once", dir)
	}
	newest, err := dir.Newest()
	switch {
	case err != nil:
		return finding(Problem, "%v; run molrun backup", err)
	case newest == nil:
		return finding(Warning, "%s has no finished backup yet", dir)
	}
	found := finding(OK, "the newest is of %s", newest.TakenAt.Local().Format(time.DateTime))
	switch age := time.Since(newest.TakenAt); {
	case age > 2*time.Duration(b.Every):
		found = finding(Problem, "the newest is of %s, though one is due every %s; the log of the service says why, and molrun backup takes one now",
			newest.TakenAt.Local().Format(time.DateTime), time.Duration(b.Every))
	case age < -time.Hour:
		found = finding(Warning, "the newest is of %s, which is to come; look at the clock", newest.TakenAt.Local().Format(time.DateTime))
	}
	if len(newest.Problems) > 0 {
		found = append(found, finding(Problem, "the newest lacks something that the data directory lacked already: %s; run molrun check", newest.Problems[0])...)
	}
	tried, err := dir.Tried()
	switch {
	case err != nil:
		return append(found, finding(Problem, "%v; molrun restore %s --try makes it anew", err, dir)...)
	case tried != nil && len(tried.Problems) > 0:
		return append(found, finding(Problem, "backup %s could not be restored on trial: %s", tried.Backup, tried.Problems[0])...)
	}
	return found
}
