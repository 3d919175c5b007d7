// Package audit records who changed what.
package audit

import "molrun/app/base/unit"

// Entry is a line of the audit log: who changed what, or tried to. It contains names and
// IDs, never request data.
type Entry struct {
	Time         unit.Time `json:"time"`
	Request      string    `json:"request,omitempty"` // ID, as in the log and in X-Request-Id
	Key          string    `json:"key,omitempty"`     // ID of the requesting API key
	Organization string    `json:"organization,omitempty"`
	Action       string    `json:"action"`           // such as job.submit or key.create
	Object       string    `json:"object,omitempty"` // name of a job, ID of a file or key
	Result       string    `json:"result"`           // "ok" or the error code
	Remote       string    `json:"remote,omitempty"` // address, "control socket" or "command"
}
