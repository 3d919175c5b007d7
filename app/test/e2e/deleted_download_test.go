package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"molrun/app/test/must"
)

// slowDownload is a download that has begun and whose rest the test reads later.
type slowDownload struct {
	name string
	want []byte // what is still to come
	res  *http.Response
}

// Write compares what has come.
func (d *slowDownload) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(d.want, p) {
		return 0, errors.New("these are other bytes")
	}
	d.want = d.want[len(p):]
	return len(p), nil
}

// begin starts a download on a connection of its own and reads its first bytes.
// The server cannot send a large file ahead: it waits for the buffers of the
// connection.
func (u user) begin(name, link, ranges string, want []byte) *slowDownload {
	u.t.Helper()
	r, err := http.NewRequestWithContext(u.t.Context(), "GET", link, nil)
	must.OK(u.t, err)
	if ranges != "" {
		r.Header.Set("Range", ranges)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	u.t.Cleanup(transport.CloseIdleConnections)
	d := &slowDownload{name: name, want: want}
	d.res, err = transport.RoundTrip(r)
	must.OK(u.t, err)
	u.t.Cleanup(func() { d.res.Body.Close() })
	_, err = io.CopyN(d, d.res.Body, 1000)
	if err != nil || d.res.StatusCode != 200 && d.res.StatusCode != 206 {
		u.t.Fatalf("%s: status %d, %v", name, d.res.StatusCode, err)
	}
	return d
}

// finish reads the rest.
func (d *slowDownload) finish(t *testing.T) {
	if _, err := io.Copy(d, d.res.Body); err != nil || len(d.want) > 0 {
		t.Errorf("%s: %d bytes are missing, err %v", d.name, len(d.want), err)
	}
}

// A download that has begun ends as if nothing had happened, whoever deletes its
// job meanwhile. One that begins later is told that the result is gone.
func TestDownloadsOutliveTheirJob(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 8\nmemory = \"8GiB\"\n")
	for organization, remove := range map[string]func(u user){
		"delete": func(u user) { u.do("DELETE", "/jobs/b", nil).want(204) },
		"prune": func(u user) {
			if p := u.prune("--older-than", "0s", "--yes"); len(p.Jobs) == 0 {
				u.t.Errorf("pruned %+v, want the batch", p)
			}
		},
		"delete-rows": func(u user) {
			for row := range 3 {
				u.do("DELETE", fmt.Sprintf("/jobs/b-%d", row+1), nil).want(204)
			}
		},
	} {
		t.Run(organization, func(t *testing.T) {
			one := *s
			one.t = t
			one.user(organization, "ann@lab.example").downloadsOutlive(t, remove)
		})
	}
}

func (u user) downloadsOutlive(t *testing.T, remove func(user)) {
	rows := make([]string, 3)
	for i := range rows {
		rows[i] = script(fmt.Sprintf("yes %d | head -c 16000000 > out/big.txt; echo small > out/small.txt", i))
	}
	u.batch("b", "shell", rows...)
	u.finished("b")
	links := map[string]string{}
	for name, body := range map[string]string{
		"archive": `{"jobName":"b"}`, "archive of a row": `{"jobName":"b-2"}`, "file": `{"jobName":"b","fileName":"b-3/big.txt"}`,
	} {
		links[name] = u.linkTo(body).DownloadURL
	}
	whole := map[string][]byte{}
	for name, link := range links {
		whole[name] = u.do("GET", link, nil).want(200).body
	}
	var running []*slowDownload
	for name, link := range links {
		for n := range 3 {
			running = append(running, u.begin(fmt.Sprint(name, " ", n), link, "", whole[name]))
			from := 1000 + n
			running = append(running, u.begin(fmt.Sprint("rest of ", name, " ", n), link, fmt.Sprintf("bytes=%d-", from), whole[name][from:]))
		}
	}
	remove(u)
	if u.do("GET", "/jobs/b", nil).status == 200 { // only its rows are gone
		delete(links, "archive")
	}
	for name, link := range links {
		u.do("GET", link, nil).code(404, "NOT_FOUND")
		if a := u.do("GET", link, nil, "Range", "bytes=5000-"); a.status != 404 {
			t.Errorf("a range of %s after the deletion: status %d", name, a.status)
		}
	}
	var all sync.WaitGroup
	for _, d := range running {
		all.Go(func() { d.finish(t) })
	}
	all.Wait()
	u.eventually("the disk is free", func() bool {
		jobs, err := filepath.Glob(filepath.Join(u.data(), "jobs", "*", "result"))
		must.OK(t, err)
		trash, err := os.ReadDir(filepath.Join(u.data(), "trash"))
		must.OK(t, err)
		return len(jobs)+len(trash) == 0
	})
}
