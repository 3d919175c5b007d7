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

// ownNames are patterns of what the service and its commands keep in a data directory.
var ownNames = []string{
	host.Database, host.Database + ".*", host.Algorithms, host.Socket, "command.sock",
	"jobs", "kept", "pilots", "uploads", "trash", "secret", ".secret*", "audit.log*", "tls", "set-aside", "restoring", "demo.log", "test.log", "lost+found",
}

// recordID matches an ID in the text of a problem, with the word before it.
var recordID = regexp.MustCompile(`((?:sub)?job |batch |upload )?\b([0-9A-Z]{26})\b`)

// withNames puts the names of jobs and uploads in the place of their IDs, as far as their
// records can be read.
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

// remedy says what to do about a missing or damaged file.
func remedy(f blobs.File) string {
	switch {
	case strings.HasPrefix(f.What, "upload "):
		return "; copy it from a backup, or delete the upload and send the file again"
	case strings.HasPrefix(f.What, "job "):
		return "; copy it from a backup, or run the job again and delete this one"
	case strings.HasPrefix(f.Path, "tls/"), strings.HasPrefix(f.Path, "audit.log"):
		return ""
	}
	return "; copy it from a backup"
}
