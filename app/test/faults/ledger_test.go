package faults

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"

	"molrun/app/client"
)

// ledger records what the clients know for certain. A client records each change before
// it sends the request, because the change can take effect even if the response is lost,
// and again after the response, because the change must have taken effect by then.
type ledger struct {
	mu       sync.Mutex
	jobs     map[string]*jobFact // by name
	files    map[string]*fileFact
	acks     int
	refusals map[string]int // error responses by code
	faults   []string       // wrong responses
	excused  []string       // error codes that the current fault explains
	onAck    func(acks int) // called after each acknowledgement, without mu
}

// jobFact is what the clients know about one job. A batch is a job with rows.
type jobFact struct {
	submission client.Submission
	rows       []string // names of a batch's jobs
	isRow      bool
	after      []string // names of the jobs that a job of a pipeline waits for
	id         string   // "" until the submission was acknowledged
	final      string   // final status that a client has seen, which must not change
	cancelling bool     // a cancel request was sent
	stopping   bool     // the cancel request was acknowledged before the job was finished
	retrying   bool     // a retry request was sent, so the final status can change
	retried    bool     // the retry request was acknowledged
	attempts   int      // number of attempts when the job was canceled or retried
	pinned     bool     // the pin was acknowledged
	deleting   bool     // a delete request was sent
	deleted    bool     // the delete request was acknowledged
	kept       bool     // clients must not cancel or delete it
	compared   bool     // its result was correct after a power failure
	reserved   int      // number of clients submitting under this name; if the job were deleted now, they would create a new one
}

// fileFact is what the clients know about one upload.
type fileFact struct {
	id        string
	text      string
	link      string // path and query of its downloadUrl
	sent      bool   // its bytes were acknowledged
	completed bool   // its completion was acknowledged
	deleting  bool
	deleted   bool
	fetched   bool   // content verified since it was sent
	parts     *parts // nil if it is not sent in parts
}

func (f *fileFact) sha256() string {
	sum := sha256.Sum256([]byte(f.text))
	return hex.EncodeToString(sum[:])
}

func newLedger() *ledger {
	return &ledger{jobs: map[string]*jobFact{}, files: map[string]*fileFact{}, refusals: map[string]int{}}
}

// note updates the ledger before a request is sent.
func (l *ledger) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// acknowledge updates the ledger after a successful response.
func (l *ledger) acknowledge(change func()) {
	l.mu.Lock()
	l.acks++
	acks, tell := l.acks, l.onAck
	change()
	l.mu.Unlock()
	if tell != nil {
		tell(acks)
	}
}

// refused counts an error response. The service may be unable to handle a request, but
// must not report it as invalid.
func (l *ledger) refused(err *client.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusals[err.Code]++
	if err.Status < http.StatusInternalServerError && !slices.Contains(l.excused, err.Code) {
		l.faults = append(l.faults, fmt.Sprintf("status %d, %s: %v", err.Status, err.Code, err))
	}
}

// faultf records a response that no fault can excuse.
func (l *ledger) faultf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

// job returns a random job for which fn returns true.
func (l *ledger) job(r *rand.Rand, fn func(jobFact) bool) (jobFact, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pick(r, l.jobs, fn)
}

// reserve returns a random job for which fn returns true and that is not being deleted.
// No client deletes the job until release is called.
func (l *ledger) reserve(r *rand.Rand, fn func(jobFact) bool) (fact jobFact, release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fact, ok = pick(r, l.jobs, func(f jobFact) bool { return !f.deleting && fn(f) })
	if !ok {
		return fact, nil, false
	}
	picked := l.jobs[fact.submission.Name]
	picked.reserved++
	return fact, func() { l.note(func() { picked.reserved-- }) }, true
}

// file returns a random file for which fn returns true.
func (l *ledger) file(r *rand.Rand, fn func(fileFact) bool) (fileFact, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pick(r, l.files, fn)
}

// pick returns the first entry, from a random position on, for which fn returns true.
func pick[T any](r *rand.Rand, from map[string]*T, fn func(T) bool) (found T, ok bool) {
	keys := slices.Sorted(maps.Keys(from)) // sorted, so that a seed always gives the same picks
	if len(keys) == 0 {
		return found, false
	}
	at := r.IntN(len(keys))
	for _, k := range slices.Concat(keys[at:], keys[:at]) {
		if fn(*from[k]) {
			return *from[k], true
		}
	}
	return found, false
}
