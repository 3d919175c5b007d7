package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"molrun/app"
)

// header returns the header line that authenticates a request.
func (s *server) header() string { return "X-Api-Key: " + s.key + "\r\n" }

// get, del and post return the bytes of a request to the API.
func (s *server) get(path string) []byte { return requestHead("GET", path, s.header(), 0) }
func (s *server) del(path string) []byte { return requestHead("DELETE", path, s.header(), 0) }

func (s *server) post(path string, body []byte) []byte {
	head := requestHead("POST", path, s.header()+"Content-Type: application/json\r\n", int64(len(body)))
	return append(head, body...)
}

// call makes one request and decodes the response, unless into is nil.
func (s *server) call(request []byte, into any) error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.close()
	body, err := c.do(request)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// calling returns a client that sends the requests in turn.
func (s *server) calling(requests ...[]byte) client {
	return connected(s.address, func(c *conn, n int) func() error {
		next := n
		return func() error {
			next++
			_, err := c.do(requests[next%len(requests)])
			return err
		}
	})
}

// note pads the settings of a job to the length of seeded settings.
var note = strings.Repeat("molecule ", seedSettings/9)

// submitting returns a client that submits jobs with new names, each with a few hundred
// bytes of settings.
func (s *server) submitting() client {
	s.series++
	series := s.series
	return connected(s.address, func(c *conn, n int) func() error {
		number := 0
		return func() error {
			number++
			name := fmt.Sprintf("s%d-%d-%d", series, n, number)
			answer, err := c.do(s.submission(name, "nothing", `{"note":"`+note+`"}`))
			if err == nil && !bytes.Contains(answer, []byte(`"created":true`)) {
				err = fmt.Errorf("the job is not new: %s", answer)
			}
			return err
		}
	})
}

func (s *server) submission(name, typ, settings string) []byte {
	return s.post("/submit-job", fmt.Appendf(nil, `{"jobName":%q,"type":%q,"settings":%s}`, name, typ, settings))
}

// complete submits a job, unless it exists, and waits until the job has completed.
func (s *server) complete(name, typ, settings string) error {
	if err := s.call(s.submission(name, typ, settings), nil); err != nil {
		return err
	}
	status, failure, err := s.awaitJob(name)
	if err == nil && status == app.Failed {
		err = fmt.Errorf("job %s failed: %s", name, failure)
	}
	return err
}

// block submits a job that keeps all later jobs queued.
func (s *server) block() error {
	err := s.call(s.submission("blocker", "sleep", `{"seconds":3600}`), nil)
	s.blocked = err == nil
	return err
}

// unblock cancels the blocking job, so that the job's process does not outlive the
// server.
func (s *server) unblock() error {
	if err := s.call(s.post("/jobs/blocker/cancel", nil), nil); err != nil {
		return err
	}
	s.blocked = false
	_, _, err := s.awaitJob("blocker")
	return err
}

// awaitJob waits until a job is finished.
func (s *server) awaitJob(name string) (status app.Status, failure json.RawMessage, err error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var j struct {
			Status  app.Status
			Failure json.RawMessage
		}
		if err := s.call(s.get("/jobs/"+name+"?wait=10s"), &j); err != nil {
			return "", nil, err
		}
		if j.Status.Finished() {
			return j.Status, j.Failure, nil
		}
	}
	return "", nil, fmt.Errorf("job %s did not finish within %s", name, patience)
}

// resultLink returns the path to download a job's result, or one file of it.
func (s *server) resultLink(job, file string) (string, error) {
	body := fmt.Appendf(nil, `{"jobName":%q}`, job)
	if file != "" {
		body = fmt.Appendf(nil, `{"jobName":%q,"fileName":%q}`, job, file)
	}
	var link struct{ DownloadURL string }
	err := s.call(s.post("/result", body), &link)
	return linkPath(link.DownloadURL), err
}

// linkPath returns the path and query of a link.
func linkPath(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.RequestURI()
}
