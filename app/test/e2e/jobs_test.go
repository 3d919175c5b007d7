package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// wordsFile is an algorithm other than shell.
const wordsFile = `
format = 1
type = "words"
version = "7"
title = "Print words"
command = ["echo", "{settings.text}"]

[[parameters]]
name = "text"
type = "string"
default = "hello"
`

// blockCPU runs a job that uses a CPU until the returned gate is opened.
func (s *instance) blockCPU(name string) gate {
	s.t.Helper()
	blocker, open := s.user("blockers", "blocker@blockers.example"), s.gate(name)
	blocker.submit(name, "shell", script(open.wait()))
	blocker.running(name)
	return open
}

// page is a response of GET /jobs.
type page struct {
	Jobs     []record
	StartKey string
}

// list returns one page of jobs.
func (u user) list(query url.Values) (p page) {
	u.t.Helper()
	u.do("GET", "/jobs?"+query.Encode(), nil).want(200).into(&p)
	return p
}

// names returns the names of all jobs in a listing, across pages.
func (u user) names(query url.Values) (names []string) {
	u.t.Helper()
	query = maps.Clone(query)
	for {
		p := u.list(query)
		names = append(names, jobNames(p.Jobs)...)
		if p.StartKey == "" {
			return names
		}
		query.Set("startKey", p.StartKey)
	}
}

func jobNames(jobs []record) (names []string) {
	for _, j := range jobs {
		names = append(names, j.JobName)
	}
	return names
}

// members returns the members of a job's JSON record.
func (u user) members(name string) (m map[string]json.RawMessage) {
	u.t.Helper()
	u.do("GET", "/jobs/"+url.PathEscape(name), nil).want(200).into(&m)
	return m
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// batch submits a batch with one job for each element of rows, which are settings.
func (u user) batch(name, typ string, rows ...string) (r record) {
	u.t.Helper()
	u.do("POST", "/submit-batch", batchBody(name, typ, rows...)).want(200).into(&r)
	return r
}

func batchBody(name, typ string, rows ...string) string {
	return fmt.Sprintf(`{"batchName":%q,"type":%q,"settings":[%s]}`, name, typ, strings.Join(rows, ","))
}

// jobBody returns the body of a shell job's submission.
func jobBody(name, settings string, more ...string) string {
	return fmt.Sprintf(`{"jobName":%q,"type":"shell","settings":%s%s}`, name, settings, strings.Join(more, ""))
}

// linkTo requests a link to a result.
func (u user) linkTo(body string) (link struct {
	DownloadURL, FileName, ExpiresAt string
	Size                             int64
},
) {
	u.t.Helper()
	u.do("POST", "/result", body).want(200).into(&link)
	return link
}

// body reads and closes the body of a response.
func body(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must.OK(t, err)
	return string(data)
}
