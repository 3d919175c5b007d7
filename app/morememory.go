package app

import (
	"fmt"

	"molrun/app/algorithm"
	"molrun/app/algorithm/routing"
	"molrun/app/base/plaintext"
	"molrun/app/base/unit"
)

// PastAttempt is an attempt that ran out of memory, after which the job was started again
// with more.
type PastAttempt struct {
	Attempt     int         `json:"attempt"`
	Code        FailureCode `json:"code"`
	Message     string      `json:"message"`
	MemoryBytes int64       `json:"memoryBytes"` // that it had
	MaxRSSBytes int64       `json:"maxRssBytes"`
	RunSeconds  float64     `json:"runSeconds"`
}

// MoreMemory returns the memory with which a job is started again that has just run out of
// what it has, by [retry] of its algorithm file. If it is 0, why says so to the job's user; it
// is "" if the file has no [retry].
func (s *Runs) MoreMemory(a *algorithm.File, j *Job) (bytes int64, why string) {
	r, had := a.Retry, j.Private.Needs.MemoryBytes
	switch {
	case r == nil || had == 0:
		return 0, ""
	case len(j.PastAttempts) >= r.Attempts:
		return 0, fmt.Sprintf("Its memory was raised %s, as often as %s allows.", times(len(j.PastAttempts)), a.Type)
	}
	needs := j.Private.Needs
	if needs.MemoryBytes = r.More(had); needs.MemoryBytes == had {
		return 0, fmt.Sprintf("It had %s, and %s raises that to at most %s.", unit.Bytes(had), a.Type, unit.Bytes(r.MostBytes))
	}
	by := routing.User{Organization: j.Organization, Email: j.Email}
	if bytes = s.router.MemoryFor(a, j.Executor, by, needs, j.MaxRuntime); bytes <= had {
		return 0, fmt.Sprintf("It had %s, and no machine for it has more.", unit.Bytes(had))
	}
	return bytes, ""
}

// times says how often something was done.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// maxPastMessage bounds the message of a past attempt, which is part of the job's summary.
const maxPastMessage = 300

// retryWithMore queues a job again that has run out of memory, with more.
func (j *Job) retryWithMore(e Ending) {
	past := PastAttempt{
		Attempt: j.Attempts, Code: e.Failure.Code, Message: plaintext.Cut(e.Failure.Message, maxPastMessage), MemoryBytes: j.Private.Needs.MemoryBytes,
	}
	if m := j.Metrics; m != nil {
		past.MaxRSSBytes, past.RunSeconds = m.MaxRSSBytes, m.RunSeconds
	}
	j.PastAttempts = append(j.PastAttempts, past)
	j.MemoryBytes, j.Private.Needs.MemoryBytes = e.MoreMemory, e.MoreMemory
	j.startAgain(fmt.Sprintf("attempt %d ran out of its %s of memory; waiting for the next, with %s", past.Attempt, unit.Bytes(past.MemoryBytes), unit.Bytes(e.MoreMemory)))
}
