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

	"molrun/app/client"
)

// load describes the clients that use a server between two starts of it.
type load struct {
	client  *client.Client
	base    string // the service's address
	ledger  *ledger
	name    string // unique to this start of the server; prefix of job names
	clients int
	jobs    int // maximum number of jobs per client; other requests are not limited
	note    int // length of the note in each job's settings
	seed    uint64

	kind  func(r *rand.Rand, name string) client.Submission // returns a job; nil means diary jobs
	rows  int                                               // number of jobs per batch; at least 2
	pause time.Duration                                     // between a client's requests
}

// job returns a random job with this name.
func (o load) job(r *rand.Rand, name string) client.Submission {
	if o.kind != nil {
		return o.kind(r, name)
	}
	return withNote(diaryJob(name, float64(r.IntN(300))/1000, int64(r.IntN(20_000))), o.note)
}

// run runs the clients until stop is closed. It waits for their last requests rather than
// canceling them, because a canceled request could take effect after the comparison of
// the service with the ledger. ctx limits the wait.
func (o load) run(ctx context.Context, stop <-chan struct{}) {
	var all sync.WaitGroup
	for n := range o.clients {
		w := &loadClient{load: o, ctx: ctx, stop: stop, number: n, rand: rand.New(rand.NewPCG(o.seed, uint64(n)))}
		all.Go(w.run)
	}
	all.Wait()
}

// loadClient is one client, which sends one request at a time.
type loadClient struct {
	load
	ctx      context.Context
	stop     <-chan struct{}
	number   int
	rand     *rand.Rand
	jobsMade int
	files    int
}

func (w *loadClient) run() {
	steps := []struct {
		weight int
		step   func() error
	}{
		{6, w.submit},
		{1, w.submitBatch},
		{1, w.submitPipeline},
		{1, w.submitAgain},
		{1, w.submitOther},
		{3, w.upload},
		{2, w.sendParts},
		{1, w.cancel},
		{1, w.retry},
		{1, w.pin},
		{1, w.remove},
		{1, w.removeFile},
		{3, w.readJob},
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
		w.rest(w.pause)
	}
}

// rest pauses for d, or until the load ends.
func (w *loadClient) rest(d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.stop:
	case <-timer.C:
	}
}

func (w *loadClient) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// failed records an error response. If there is no response, the server has exited or the
// connection has failed. The client then pauses briefly and tries something else.
func (w *loadClient) failed(err error) {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		w.ledger.refused(refused)
	}
	w.rest(5 * time.Millisecond)
}

// except returns err, or nil if err has one of the expected codes.
func except(err error, codes ...string) error {
	if refused, ok := errors.AsType[*client.Error](err); ok && slices.Contains(codes, refused.Code) {
		return nil
	}
	return err
}

// upload creates an upload, sends its bytes and completes it.
func (w *loadClient) upload() error {
	w.files++
	name := fmt.Sprintf("%s-%d-%d.txt", w.name, w.number, w.files)
	u, err := w.client.CreateUpload(w.ctx, "", name)
	if err != nil {
		return err
	}
	text := strings.Repeat(name+"\n", 1+w.rand.IntN(4000))
	link := "/" + strings.SplitN(u.DownloadURL, "/", 4)[3]
	w.ledger.acknowledge(func() { w.ledger.files[u.FileID] = &fileFact{id: u.FileID, text: text, link: link} })
	size := int64(len(text))
	if w.rand.IntN(3) == 0 {
		size = -1 // chunked
	}
	if err := w.client.SendUpload(w.ctx, u, strings.NewReader(text), size); err != nil {
		return err
	}
	w.ledger.acknowledge(func() { w.ledger.files[u.FileID].sent = true })
	file, err := w.client.CompleteUpload(w.ctx, u.FileID, int64(len(text)))
	if err != nil {
		return err
	}
	w.ledger.acknowledge(func() {
		fact := w.ledger.files[u.FileID]
		fact.completed = true
		if file.SHA256 != fact.sha256() {
			w.ledger.faults = append(w.ledger.faults, fmt.Sprintf("file %s has a different SHA-256 than the bytes sent", file.ID))
		}
	})
	return nil
}

// removeFile deletes a file.
func (w *loadClient) removeFile() error {
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

// fetchResult downloads a job's result.
func (w *loadClient) fetchResult() error {
	fact, ok := w.ledger.job(w.rand, func(f jobFact) bool { return f.final == "COMPLETED" && f.rows == nil && !f.deleting })
	if !ok {
		return nil
	}
	name := fact.submission.Name
	text, err := result(w.ctx, w.client, name, "result.txt")
	if err != nil {
		return w.unlessDeleted(fact, err)
	}
	if text != diaryResult(name) {
		w.ledger.faultf("the result of %s is %q", name, text)
	}
	return nil
}

// result downloads a file of a job's result.
func result(ctx context.Context, c *client.Client, job, file string) (string, error) {
	link, err := c.Result(ctx, client.ResultRequest{Job: job, File: file})
	if err != nil {
		return "", err
	}
	return get(ctx, link.DownloadURL)
}

// get downloads a URL.
func get(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() // only read, so the error does not matter
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = &client.Error{Status: response.StatusCode, Code: errorCode(text), Message: string(text)}
	}
	return string(text), err
}

// errorCode returns the code in the body of an error response.
func errorCode(text []byte) string {
	var body struct{ Error struct{ Code string } }
	if err := json.Unmarshal(text, &body); err != nil {
		return "UNREADABLE"
	}
	return body.Error.Code
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }
