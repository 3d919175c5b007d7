package naming

import (
	"crypto/sha256"
	"strings"
)

// Reference refers to a file in a job's result, to a file with a given digest, or to an
// upload.
type Reference struct {
	OfJob  bool
	Job    string // the job whose result contains the file
	Path   string // in that result; "" if Output is set
	Output string // an output declared by the job's algorithm: one file or many

	Digest   string // SHA-256 in lower-case hex
	Filename string // the name that the program sees

	Upload string // a fileId, or folder/filename
}

// ParseReference parses a reference: job:<jobName>/<path>, job:<jobName>/@<output>,
// sha256:<digest>/<filename>, or anything else, which becomes Upload. Names are converted
// to NFC.
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

// OfDigest returns a reference to an upload with this digest, which the program sees
// under this name.
func OfDigest(digest, filename string) string { return "sha256:" + digest + "/" + filename }
