package app

import (
	"encoding/json"
	"fmt"

	"molrun/app/algorithm"
	"molrun/app/base/naming"
	"molrun/app/base/strictjson"
)

// JobOrigin identifies where jobs run. It adds to the record in a job's result everything
// needed to repeat the work, here or on another server.
type JobOrigin struct {
	Version string // of molrun
	Host    string
}

// recordedSubmission is the body of a POST /submit-job request for the same work. Files
// are named by their digests. Anything not part of the work is left out: dependencies,
// which have finished, and a high priority that only admins can request.
type recordedSubmission struct {
	Name       string            `json:"jobName"`
	Type       string            `json:"type"`
	Version    string            `json:"version"`
	Settings   json.RawMessage   `json:"settings"`
	Priority   int               `json:"priority,omitempty"`
	MaxRuntime int64             `json:"maxRuntimeSeconds,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	Note       string            `json:"note,omitempty"`
}

// recordedAlgorithm is the algorithm file that the job was validated against.
type recordedAlgorithm struct {
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
}

// Describe appends the job's submission, its algorithm file a unless that is nil, and the
// place where it ran to the record.
func (o JobOrigin) Describe(record Record, j *Job, a *algorithm.File) (Record, error) {
	submission, err := recordSubmission(j)
	if err != nil {
		return nil, err
	}
	record = strictjson.Append(record, "submission", submission)
	if a != nil {
		record = strictjson.Append(record, "algorithmFile", recordedAlgorithm{a.Digest, string(a.Source)})
	}
	record = strictjson.Append(record, "molrunVersion", o.Version)
	return strictjson.Append(record, "host", o.Host), nil
}

// recordSubmission returns a submission that repeats a job.
func recordSubmission(j *Job) (*recordedSubmission, error) {
	settings, err := portableSettings(j)
	if err != nil {
		return nil, fmt.Errorf("settings of job %s: %w", j.ID, err)
	}
	s := &recordedSubmission{
		Name: j.Name, Type: j.Type, Version: j.Version, Settings: settings,
		Priority: min(j.Priority, 0), Tags: j.Tags, Note: j.Note,
	}
	if j.Private.SetsMaxRuntime {
		s.MaxRuntime = j.MaxRuntime
	}
	return s, nil
}

// portableSettings returns a job's settings with input references replaced by digests.
func portableSettings(j *Job) (json.RawMessage, error) {
	v, err := strictjson.Parse(j.Settings)
	if err != nil {
		return nil, err
	}
	refs := map[string][]string{}
	for _, in := range j.Inputs {
		refs[in.Setting] = append(refs[in.Setting], naming.OfDigest(in.SHA256, in.Filename))
	}
	text := []byte{'{'}
	for i, m := range v.Members {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(strictjson.AppendQuoted(text, m.Name), ':')
		switch files := refs[m.Name]; {
		case len(files) == 0:
			text = append(text, m.Value.Raw...)
		case m.Value.Kind == strictjson.Array:
			text = append(text, '[')
			for k, ref := range files {
				text = append(text, ","[:min(k, 1)]...)
				text = strictjson.AppendQuoted(text, ref)
			}
			text = append(text, ']')
		default:
			text = strictjson.AppendQuoted(text, files[0])
		}
	}
	return append(text, '}'), nil
}
