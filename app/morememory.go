package app

import (
	"fmt"

	"molrun/app/algorithm"
	"molrun/app/algorithm/routing"
	"molrun/app/base/plaintext"
	"molrun/app/base/unit"
)

// PastAttempt is an attempt that ran out of memory and after which the job was rerun with
// more.
type PastAttempt struct {
	Attempt     int         `json:"attempt"`
	Code        FailureCode `json:"code"`
	Message     string      `json:"message"`
	MemoryBytes int64       `json:"memoryBytes"` // memory reserved for it
	MaxRSSBytes int64       `json:"maxRssBytes"`
	RunSeconds  float64     `json:"runSeconds"`
}

// MoreMemory returns the memory for rerunning a job that has run out of memory, according
// to [retry] of its algorithm file. If it is 0, why explains the reason to the user; why
// is "" if the file has no [retry].
func (s *Runs) MoreMemory(a *algorithm.File, j *Job) (bytes int64, why string) {
	r, had := a.Retry, j.Private.Needs.MemoryBytes
	switch {
	case r == nil || had == 0:
		return 0, ""
	case len(j.PastAttempts) >= r.Attempts:
		return 0, fmt.Sprintf("Its memory was raised %s, the maximum for %s.", times(len(j.PastAttempts)), a.Type)
	}
	needs := j.Private.Needs
	if needs.MemoryBytes = r.More(had); needs.MemoryBytes == had {
		return 0, fmt.Sprintf("It had %s; the maximum for %s is %s.", unit.Bytes(had), a.Type, unit.Bytes(r.MostBytes))
	}
	by := routing.User{Organization: j.Organization, Email: j.Email}
	if bytes = s.router.MemoryFor(a, j.Executor, by, needs, j.MaxRuntime); bytes <= had {
		return 0, fmt.Sprintf("It had %s, and no suitable machine has more.", unit.Bytes(had))
	}
	return bytes, ""
}

// times returns n as once, twice, or "<n> times".
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// maxPastMessage limits the message of a past attempt, which is part of the job's
// summary.
const maxPastMessage = 300

// retryWithMore requeues a job that ran out of memory, with more memory.
func (j *Job) retryWithMore(e Ending) {
	past := PastAttempt{
		Attempt: j.Attempts, Code: e.Failure.Code, Message: plaintext.Cut(e.Failure.Message, maxPastMessage), MemoryBytes: j.Private.Needs.MemoryBytes,
	}
	if m := j.Metrics; m != nil {
		past.MaxRSSBytes, past.RunSeconds = m.MaxRSSBytes, m.RunSeconds
	}
	j.PastAttempts = append(j.PastAttempts, past)
	j.MemoryBytes, j.Private.Needs.MemoryBytes = e.MoreMemory, e.MoreMemory
	j.requeueAttempt(fmt.Sprintf("attempt %d ran out of its %s of memory; waiting for the next, with %s", past.Attempt, unit.Bytes(past.MemoryBytes), unit.Bytes(e.MoreMemory)))
}
