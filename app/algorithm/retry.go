package algorithm

import (
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// Retry describes how a job that ran out of memory is restarted with more.
type Retry struct {
	On        []string `json:"on"`                  // failure codes
	Factor    float64  `json:"memory"`              // growth factor of the memory per attempt
	MostBytes int64    `json:"mostBytes,omitempty"` // 0 means as much as a machine has
	Attempts  int      `json:"attempts"`            // additional attempts
}

// Defaults of [retry].
const (
	defaultFactor  = 2
	defaultRetries = 3
)

// readRetry reads [retry], or nil if there is none.
func readRetry(r *tomltree.Reader, memory resource) *Retry {
	t := r.Table(r.Root, "retry")
	if t == nil {
		return nil
	}
	retry := &Retry{On: r.Texts(t, "on"), Factor: defaultFactor, Attempts: defaultRetries}
	if n := t.Member("on"); n != nil && len(retry.On) == 0 {
		r.Errorf(n.Line, `on in [retry] names no code: write ["OUT_OF_MEMORY"]`)
	}
	if n := t.Member("memory"); n != nil {
		retry.Factor = n.Float()
	}
	if n := t.Member("attempts"); n != nil {
		retry.Attempts = int(n.Int())
	}
	if n := t.Member("most"); n != nil && n.Kind == strictjson.String {
		size, ok := parseBytes(n.Text)
		if !ok || size == 0 {
			r.Errorf(n.Line, `most %q in [retry] is not a size: write it like "64GiB"`, n.Text)
		}
		retry.MostBytes = size
	}
	if fixed := memory.setting == "" && memory.formula == nil; fixed {
		switch {
		case memory.amount == 0:
			r.Errorf(t.Line, "[retry] gives a job more memory, but memory under [resources] is 0, which reserves none")
		case retry.MostBytes > 0 && retry.MostBytes <= memory.amount:
			r.Errorf(t.Member("most").Line, "most in [retry] must be more than memory under [resources]")
		}
	}
	return retry
}

// More returns the memory for the next attempt of a job that ran out of this amount. It
// returns the same amount if that is already the maximum.
func (r *Retry) More(bytes int64) int64 {
	more := int64(min(float64(bytes)*r.Factor, maxMemory))
	if r.MostBytes > 0 {
		more = min(more, r.MostBytes)
	}
	return max(more, bytes)
}
