package check

import (
	"regexp"
	"strings"

	"molrun/app"
	"molrun/app/server/host"
	"molrun/app/server/snapshot"
	"molrun/blobs"
	"molrun/storage"
)

// ownNames lists patterns for the names that the service and its commands use in a data
// directory.
var ownNames = []string{
	host.Database, host.Database + ".*", host.Algorithms, host.Socket, "command.sock",
	"jobs", "kept", "workers", "uploads", "trash", "secret", ".secret*", "audit.log*", "tls", "set-aside", "restoring", "demo.log", "test.log", "lost+found",
}

// recordID matches an ID in the text of a problem, together with the preceding word.
var recordID = regexp.MustCompile(`((?:sub)?job |batch |upload )?\b([0-9A-Z]{26})\b`)

// withNames replaces the IDs of jobs and uploads with their names where the records can
// be read.
func withNames(records *storage.ReadOnly, text string) string {
	return recordID.ReplaceAllStringFunc(text, func(found string) string {
		id := found[len(found)-26:]
		if j, err := records.Job(app.JobID(id)); err == nil {
			return snapshot.JobName(j)
		}
		if u, err := records.Upload(app.UploadID(id)); err == nil {
			return snapshot.UploadName(u)
		}
		return found
	})
}

// remedy returns the advice for a missing or damaged file.
func remedy(f blobs.File) string {
	switch {
	case strings.HasPrefix(f.Owner, "upload "):
		return "; copy it from a backup, or delete the upload and send the file again"
	case strings.HasPrefix(f.Owner, "job "):
		return "; copy it from a backup, or run the job again and delete this one"
	case strings.HasPrefix(f.Path, "tls/"), strings.HasPrefix(f.Path, "audit.log"):
		return ""
	}
	return "; copy it from a backup"
}
