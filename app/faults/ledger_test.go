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

	"molrun/web/client"
)

// ledger is what clients know for sure. Whatever can change the service is
// noted before it is asked for, since it may happen though the answer is lost;
// and again once it is answered, since then it must have happened.
type ledger struct {
	mu       sync.Mutex
	jobs     map[string]*jobFact // by name
	files    map[string]*fileFact
	acks     int
	refusals map[string]int // answers without success, by code
	faults   []string       // answers that no fault excuses
	excused  []string       // codes of answers that a fault excuses
	onAck    func(acks int) // called at each acknowledgement, outside of mu
}

// jobFact is what is known of one job. A batch is a job with rows.
type jobFact struct {
	submission client.Submission
	rows       []string // names of a batch's jobs
	isRow      bool
	id         string // "" until the submission was acknowledged
	final      string // the finished state that was seen, which stays
	cancelling bool   // a cancellation was sent
	stopping   bool   // and acknowledged, before the job was finished
	retrying   bool   // a retry was sent: what was final may no longer be
	retried    bool   // and acknowledged
	attempts   int    // by then, or when it was to stop
	pinned     bool   // acknowledged
	deleting   bool   // a deletion was sent
	deleted    bool   // and acknowledged
	kept       bool   // clients neither cancel nor delete it
	held       int    // clients that submit under this name: it must not be deleted, or they would make it anew
}

// fileFact is what is known of one upload.
type fileFact struct {
	id        string
	text      string
	link      string // path and query of its downloadUrl
	sent      bool   // its bytes were acknowledged
	completed bool   // that, too
	deleting  bool
	deleted   bool
	fetched   bool // by a verification, after the last fault
}

func (f *fileFact) sha256() string {
	sum := sha256.Sum256([]byte(f.text))
	return hex.EncodeToString(sum[:])
}

func newLedger() *ledger {
	return &ledger{jobs: map[string]*jobFact{}, files: map[string]*fileFact{}, refusals: map[string]int{}}
}

// note changes a fact before a request is sent.
func (l *ledger) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// acknowledge changes a fact as an answer says.
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

// refused counts an answer without success. The service may be unable to do
// something, but has no reason to find the request wrong.
func (l *ledger) refused(err *client.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusals[err.Code]++
	if err.Status < http.StatusInternalServerError && !slices.Contains(l.excused, err.Code) {
		l.faults = append(l.faults, fmt.Sprintf("status %d, %s: %v", err.Status, err.Code, err))
	}
}

// faultf notes an answer that must not be, whatever happened.
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

// job picks a job that fn likes and gives what is known of it now.
func (l *ledger) job(r *rand.Rand, fn func(jobFact) bool) (jobFact, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pick(r, l.jobs, fn)
}

// hold picks a job that fn likes and is not being deleted, and keeps it from
// that until release is called.
func (l *ledger) hold(r *rand.Rand, fn func(jobFact) bool) (fact jobFact, release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fact, ok = pick(r, l.jobs, func(f jobFact) bool { return !f.deleting && fn(f) })
	if !ok {
		return fact, nil, false
	}
	held := l.jobs[fact.submission.Name]
	held.held++
	return fact, func() { l.note(func() { held.held-- }) }, true
}

// file picks a file that fn likes and gives what is known of it now.
func (l *ledger) file(r *rand.Rand, fn func(fileFact) bool) (fileFact, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pick(r, l.files, fn)
}

// pick takes the first that fn likes after a random one.
func pick[T any](r *rand.Rand, from map[string]*T, fn func(T) bool) (found T, ok bool) {
	keys := slices.Sorted(maps.Keys(from)) // so that a seed picks the same
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
