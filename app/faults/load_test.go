package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"molrun/web/client"
)

// load is clients at work on one life of a server.
type load struct {
	client  *client.Client
	ledger  *ledger
	life    string // begins the names of its jobs
	clients int
	jobs    int // that each client may submit; other requests have no end
	note    int // letters in the settings of each job
	seed    uint64
}

// run works until stop is closed. Requests are not cut short then, since what
// they ask for could happen after the service was compared with the ledger; ctx
// bounds them.
func (o load) run(ctx context.Context, stop <-chan struct{}) {
	var all sync.WaitGroup
	for n := range o.clients {
		w := &worker{load: o, ctx: ctx, stop: stop, number: n, rand: rand.New(rand.NewPCG(o.seed, uint64(n)))}
		all.Go(w.run)
	}
	all.Wait()
}

// worker is one client; it does one thing after the other.
type worker struct {
	load
	ctx      context.Context
	stop     <-chan struct{}
	number   int
	rand     *rand.Rand
	jobsMade int
	files    int
}

func (w *worker) run() {
	steps := []struct {
		weight int
		step   func() error
	}{
		{6, w.submit},
		{1, w.submitAgain},
		{1, w.submitOther},
		{3, w.upload},
		{1, w.cancel},
		{1, w.remove},
		{1, w.removeFile},
		{3, w.look},
		{1, w.fetchResult},
	}
	var deck []func() error
	for _, s := range steps {
		deck = append(deck, slices.Repeat([]func() error{s.step}, s.weight)...)
	}
	for w.ctx.Err() == nil && !w.stopped() {
		err := deck[w.rand.IntN(len(deck))]()
		if err != nil {
			w.failed(err)
		}
	}
}

func (w *worker) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// failed notes an answer without success. Where there was no answer the server
// is gone, or a connection failed; the client tries other things soon.
func (w *worker) failed(err error) {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		w.ledger.refused(refused)
	}
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-w.stop:
	case <-timer.C:
	}
}

// submit makes a job of a new name.
func (w *worker) submit() error {
	if w.jobsMade >= w.jobs {
		return w.look()
	}
	w.jobsMade++
	name := fmt.Sprintf("%s-%d-%d", w.life, w.number, w.jobsMade)
	s := diaryJob(name, float64(w.rand.IntN(300))/1000, int64(w.rand.IntN(20_000)))
	s = withNote(s, w.note)
	w.ledger.note(func() { w.ledger.jobs[name] = &jobFact{submission: s} })
	return w.send(s)
}

// send submits, as often as one likes: the name has one job for ever.
func (w *worker) send(s client.Submission) error {
	job, err := w.client.Submit(w.ctx, s)
	if err != nil {
		return err
	}
	w.ledger.acknowledge(func() {
		fact := w.ledger.jobs[s.Name]
		if fact.id == "" {
			fact.id = job.ID
		}
		if fact.id != job.ID || !sameSettings(job, s) {
			w.ledger.faults = append(w.ledger.faults, fmt.Sprintf("job %s was %s and is now %s", s.Name, fact.id, job.ID))
		}
	})
	return nil
}

// submitAgain repeats a submission, answered before or not.
func (w *worker) submitAgain() error {
	fact, release, ok := w.ledger.hold(w.rand, func(jobFact) bool { return true })
	if !ok {
		return nil
	}
	defer release()
	return w.send(fact.submission)
}

// submitOther wants other work under a name that is taken.
func (w *worker) submitOther() error {
	fact, release, ok := w.ledger.hold(w.rand, func(f jobFact) bool { return f.id != "" })
	if !ok {
		return nil
	}
	defer release()
	other := diaryJob("another", 1, 1)
	other.Name = fact.submission.Name
	job, err := w.client.Submit(w.ctx, other)
	if err == nil {
		w.ledger.faultf("job %s of %s was given for other work", job.ID, other.Name)
	}
	return except(err, "JOB_ALREADY_EXISTS")
}

// deletedMeanwhile reports whether somebody wants a job gone since fact was
// read.
func (w *worker) deletedMeanwhile(fact jobFact) (deleting bool) {
	w.ledger.note(func() { deleting = w.ledger.jobs[fact.submission.Name].deleting })
	return deleting
}

// except forgets an answer that is as it should be.
func except(err error, codes ...string) error {
	if refused, ok := errors.AsType[*client.Error](err); ok && slices.Contains(codes, refused.Code) {
		return nil
	}
	return err
}

// upload sends a file and confirms it.
func (w *worker) upload() error {
	w.files++
	name := fmt.Sprintf("%s-%d-%d.txt", w.life, w.number, w.files)
	u, err := w.client.CreateUpload(w.ctx, "", name)
	if err != nil {
		return err
	}
	text := strings.Repeat(name+"\n", 1+w.rand.IntN(4000))
	link := "/" + strings.SplitN(u.DownloadURL, "/", 4)[3]
	w.ledger.note(func() { w.ledger.files[u.FileID] = &fileFact{id: u.FileID, text: text, link: link} })
	size := int64(len(text))
	if w.rand.IntN(3) == 0 {
		size = -1 // chunked
	}
	if err := w.client.Send(w.ctx, u, strings.NewReader(text), size); err != nil {
		return err
	}
	file, err := w.client.CompleteUpload(w.ctx, u.FileID, int64(len(text)))
	if err != nil {
		return err
	}
	w.ledger.acknowledge(func() {
		fact := w.ledger.files[u.FileID]
		fact.completed = true
		if file.SHA256 != fact.sha256() {
			w.ledger.faults = append(w.ledger.faults, fmt.Sprintf("file %s has another SHA-256 than what was sent", file.ID))
		}
	})
	return nil
}

// cancel stops a job that is not known to be finished.
func (w *worker) cancel() error {
	fact, ok := w.ledger.job(w.rand, func(f jobFact) bool {
		return f.id != "" && f.final == "" && !f.cancelling && !f.deleting
	})
	if !ok {
		return nil
	}
	name := fact.submission.Name
	w.ledger.note(func() { w.ledger.jobs[name].cancelling = true })
	job, err := w.client.Cancel(w.ctx, name)
	if err != nil {
		return w.unlessDeleted(fact, err)
	}
	w.ledger.acknowledge(func() { w.saw(job) })
	return nil
}

// saw notes a finished state, which is for ever. The ledger is locked.
func (w *worker) saw(job *client.Job) {
	fact := w.ledger.jobs[job.Name]
	switch {
	case fact.final == "" && job.Finished():
		fact.final = job.Status
	case fact.final != "" && fact.final != job.Status && !fact.deleting:
		w.ledger.faults = append(w.ledger.faults, fmt.Sprintf("job %s was %s and is %s", job.Name, fact.final, job.Status))
	}
}

// unlessDeleted forgets that a job is not there where somebody deletes it.
func (w *worker) unlessDeleted(fact jobFact, err error) error {
	if w.deletedMeanwhile(fact) {
		return except(err, "NOT_FOUND")
	}
	return err
}

// remove deletes a finished job.
func (w *worker) remove() error {
	fact, ok := w.ledger.job(w.rand, func(f jobFact) bool { return f.final != "" && !f.deleting && f.held == 0 })
	if !ok {
		return nil
	}
	name, mine := fact.submission.Name, false
	w.ledger.note(func() {
		if now := w.ledger.jobs[name]; !now.deleting && now.held == 0 {
			now.deleting, mine = true, true
		}
	})
	if !mine {
		return nil // another client was faster
	}
	if err := w.client.Delete(w.ctx, name); err != nil {
		return err
	}
	w.ledger.acknowledge(func() { w.ledger.jobs[name].deleted = true })
	return nil
}

// removeFile deletes a file.
func (w *worker) removeFile() error {
	fact, ok := w.ledger.file(w.rand, func(f fileFact) bool { return f.completed && !f.deleting })
	if !ok {
		return nil
	}
	first := false
	w.ledger.note(func() {
		first = !w.ledger.files[fact.id].deleting
		w.ledger.files[fact.id].deleting = true
	})
	if !first {
		return nil
	}
	if err := w.client.DeleteFile(w.ctx, fact.id); err != nil {
		return err
	}
	w.ledger.acknowledge(func() { w.ledger.files[fact.id].deleted = true })
	return nil
}

// look reads a job.
func (w *worker) look() error {
	fact, ok := w.ledger.job(w.rand, func(f jobFact) bool { return f.id != "" && !f.deleting })
	if !ok {
		return nil
	}
	job, err := w.client.Job(w.ctx, fact.submission.Name)
	if err != nil {
		return w.unlessDeleted(fact, err)
	}
	w.ledger.note(func() { w.saw(job) })
	return nil
}

// fetchResult downloads what a job has made.
func (w *worker) fetchResult() error {
	fact, ok := w.ledger.job(w.rand, func(f jobFact) bool { return f.final == "COMPLETED" && !f.deleting })
	if !ok {
		return nil
	}
	name := fact.submission.Name
	link, err := w.client.Result(w.ctx, client.ResultRequest{Job: name, File: "result.txt"})
	if err != nil {
		return w.unlessDeleted(fact, err)
	}
	text, err := get(w.ctx, link.DownloadURL)
	if err != nil {
		return w.unlessDeleted(fact, err)
	}
	if text != diaryResult(name) {
		w.ledger.faultf("the result of %s is %q", name, text)
	}
	return nil
}

// get reads a link.
func get(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() // only read from
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = &client.Error{Status: response.StatusCode, Code: errorCode(text), Message: string(text)}
	}
	return string(text), err
}

// errorCode reads the code out of an error's body.
func errorCode(text []byte) string {
	var body struct{ Error struct{ Code string } }
	if err := json.Unmarshal(text, &body); err != nil {
		return "UNREADABLE"
	}
	return body.Error.Code
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }
