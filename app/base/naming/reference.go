package naming

import (
	"crypto/sha256"
	"strings"
)

// Reference is the name of a file: of a job's result, by its digest, or otherwise of an
// upload.
type Reference struct {
	OfJob  bool
	Job    string // whose result has it
	Path   string // in that result; "" if Output names it
	Output string // an output that the job's algorithm declares: one file or many

	Digest   string // SHA-256 in hex, lower case
	Filename string // that the program sees of it

	Upload string // a fileId, or folder/filename
}

// ParseReference reads a reference: job:<jobName>/<path>, job:<jobName>/@<output>,
// sha256:<digest>/<filename>, and what else there is, which is Upload. Its names become NFC.
func ParseReference(text string) Reference {
	text = Composed(text)
	if result, ok := strings.CutPrefix(text, "job:"); ok {
		job, path, _ := strings.Cut(result, "/")
		if output, ok := strings.CutPrefix(path, "@"); ok && output != "" {
			return Reference{OfJob: true, Job: job, Output: output}
		}
		return Reference{OfJob: true, Job: job, Path: path}
	}
	if rest, ok := strings.CutPrefix(text, "sha256:"); ok {
		digest, filename, _ := strings.Cut(rest, "/")
		if len(digest) == 2*sha256.Size && filename != "" && !strings.Contains(filename, "/") {
			return Reference{Digest: strings.ToLower(digest), Filename: filename}
		}
	}
	return Reference{Upload: text}
}

// OfDigest refers to an upload with these bytes, whose program sees it under this name.
func OfDigest(digest, filename string) string { return "sha256:" + digest + "/" + filename }
