// Package audit is the log of who changed what.
package audit

import "molrun/app/base/unit"

// Entry is a line of the audit log: who changed what, or tried to. It
// holds names and ids, never what a request carried.
type Entry struct {
	Time         unit.Time `json:"time"`
	Request      string    `json:"request,omitempty"` // id, as in the log and in X-Request-Id
	Key          string    `json:"key,omitempty"`     // id of the API key that asked
	Organization string    `json:"organization,omitempty"`
	Action       string    `json:"action"`           // such as job.submit or key.create
	Object       string    `json:"object,omitempty"` // name of a job, id of a file or key
	Result       string    `json:"result"`           // ok, or the error's code
	Remote       string    `json:"remote,omitempty"` // address, "control socket" or "command"
}
