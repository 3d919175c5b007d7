package through

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"molrun/app/cli/doctor"
)

// jobSettings make a job that runs longer than the examination.
const jobSettings = `{"sequences": ["DSHAKRHHGYKRKFHEKHHSHRGY"], "steps": 2000000000}`

// waiting runs a job for a while: its changes have to arrive at once in a stream of events,
// and a request that waits for one must not be cut off.
func (p *probe) waiting() {
	const check = "events"
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	lines, refused := p.listen(ctx)
	if refused != "" {
		p.blame(check, answerBuffering, "no stream of events begins within %s: %s", prompt, refused)
		return
	}
	name := fmt.Sprintf("through-%d", time.Now().UnixNano())
	if err := p.call(http.MethodPost, "/submit-job", fmt.Sprintf(`{"jobName":%q,"type":"cg-idp","settings":%s}`, name, jobSettings), nil); err != nil {
		p.say(doctor.Warning, check, "no job can be submitted, so events and long requests are not examined: %v", err)
		return
	}
	defer p.end(name)
	if told(lines, name) {
		p.say(doctor.OK, check, "events arrive as they happen")
	} else {
		p.blame(check, answerBuffering, "an event does not arrive within %s: the proxy keeps answers back", prompt)
	}
	cancel()
	p.wait(name)
}

// listen opens a stream of events, which may be compressed, as for a browser.
func (p *probe) listen(ctx context.Context) (lines <-chan string, refused string) {
	r, err := p.request(ctx, http.MethodGet, "/events", nil, "Accept", "text/event-stream")
	if err != nil {
		return nil, err.Error()
	}
	type begun struct {
		response *http.Response
		err      error
	}
	begins, found := make(chan begun, 1), make(chan string, 100)
	go func() { // ends with ctx
		defer close(found)
		transport := &http.Transport{ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		response, err := transport.RoundTrip(r)
		begins <- begun{response, err}
		if err != nil {
			return
		}
		defer response.Body.Close()
		for text := bufio.NewScanner(response.Body); text.Scan(); {
			select {
			case found <- text.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	select {
	case b := <-begins:
		if b.err != nil {
			return nil, b.err.Error()
		}
		if b.response.StatusCode != http.StatusOK {
			return nil, (&answer{b.response, nil}).String()
		}
		return found, ""
	case <-time.After(prompt):
		return nil, "no answer"
	}
}

// told reports whether an event names the job soon.
func told(lines <-chan string, name string) bool {
	over := time.After(prompt)
	for {
		select {
		case line, more := <-lines:
			if strings.Contains(line, name) {
				return true
			}
			if !more {
				return false
			}
		case <-over:
			return false
		}
	}
}

// wait asks for the next change of the job until an answer takes its whole time.
func (p *probe) wait(name string) {
	const check = "long requests"
	for range 10 { // the changes that a job has before it runs are fewer
		begin := time.Now()
		a, err := p.ask(http.MethodGet, fmt.Sprintf("/jobs/%s?wait=%s", name, p.options.Wait), nil)
		took := time.Since(begin).Round(time.Second)
		switch {
		case err != nil || !a.ours():
			p.blame(check, waitTime, "a request that waits for %s is cut off after %s: %s", p.options.Wait, took, failure(a, err))
			return
		case a.StatusCode != http.StatusOK:
			p.say(doctor.Problem, check, "%s", a)
			return
		case took >= p.options.Wait:
			p.say(doctor.OK, check, "a request can wait for %s", took)
			return
		}
	}
	p.say(doctor.Warning, check, "the job changed too often to examine a request that waits")
}

// end cancels the job and deletes it.
func (p *probe) end(name string) {
	if err := p.call(http.MethodPost, "/jobs/"+name+"/cancel", "", nil); err != nil {
		p.say(doctor.Warning, "tidy", "the job %s can't be cancelled: %v", name, err)
		return
	}
	var err error
	for end := time.Now().Add(timeout); time.Now().Before(end) && p.ctx.Err() == nil; {
		if err = p.call(http.MethodGet, "/jobs/"+name+"?wait=5s", "", nil); err != nil {
			break
		}
		if err = p.call(http.MethodDelete, "/jobs/"+name, "", nil); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	p.say(doctor.Warning, "tidy", "the job %s can't be deleted: %v", name, err)
}
