package cli

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestEveryCombinationOfFilters(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{
		config:     "[runner]\ncpus = 2\n",
		algorithms: map[string]string{"shell.toml": shellFile, "words.toml": wordsFile},
	})
	ann, bob := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	eve := s.user("other", "ann@lab.example")
	eve.submit("ann-good", "shell", script("true"))
	for _, u := range []struct {
		user
		name string
	}{{ann, "ann"}, {bob, "bob"}} {
		u.submit(u.name+"-good", "shell", script("true"))
		u.submit(u.name+"-bad", "shell", script("false"))
		u.submit(u.name+"-words", "words", "{}")
	}
	for _, name := range []string{"ann-good", "ann-bad", "ann-words", "bob-good", "bob-bad", "bob-words"} {
		ann.finished(name)
	}
	open := s.blockCPU("block")
	ann.submit("ann-runs", "shell", script(open.wait()))
	ann.running("ann-runs")
	bob.submit("bob-waits", "words", "{}")
	batch := ann.batch("screen", "words", `{"text":"1"}`, `{"text":"2"}`)

	all := ann.list(url.Values{"organization": {"true"}, "includeSubjobs": {"true"}, "limit": {"100"}}).Jobs
	if len(all) != 9 {
		t.Fatalf("%d jobs, want 9: %v", len(all), jobNames(all))
	}
	rows := all[0].Subjobs
	if len(rows) != 2 {
		t.Fatalf("%d rows of the newest job, want 2", len(rows))
	}
	check := func(query url.Values) {
		t.Helper()
		p := ann.list(query)
		same(t, query.Encode(), jobNames(p.Jobs), expected(all, rows, query))
		if p.StartKey != "" {
			t.Errorf("%s: a startKey on the last page", query.Encode())
		}
	}
	for _, who := range []url.Values{{}, {"organization": {"true"}}, {"jobEmail": {"bob@lab.example"}}, {"jobEmail": {"ann@lab.example"}, "organization": {"1"}}} {
		for _, status := range []string{"", "QUEUED", "RUNNING", "COMPLETED", "FAILED"} {
			for _, algorithm := range []string{"", "shell", "words"} {
				for _, name := range []string{"", "ann-good", "screen", "screen-2"} {
					for _, b := range []string{"", "screen", batch.JobID} {
						check(filters(who, status, algorithm, name, b))
					}
				}
			}
		}
		// Values that nearly match find nothing.
		check(filters(who, "", "word", "", ""))
		for _, b := range []string{"", "ann-good", "screen-1"} {
			for _, name := range []string{"ann-good", "ann-goo", "ANN-GOOD", "screen-1"} {
				check(filters(who, "", "", name, b))
			}
		}
	}
}

// filters makes a query from the values that are not empty.
func filters(who url.Values, status, algorithm, name, batch string) url.Values {
	query := maps.Clone(who)
	for k, v := range map[string]string{"status": status, "algorithm": algorithm, "jobName": name, "batch": batch} {
		if v != "" {
			query.Set(k, v)
		}
	}
	return query
}

// expected returns the names that a listing by ann must have.
func expected(all, rows []record, query url.Values) (names []string) {
	from := all
	switch b := query.Get("batch"); {
	case b != "" && b != "screen" && b != rows[0].Batch && b != all[0].JobID:
		return nil
	case b != "":
		from = rows
	case query.Get("jobName") != "": // also finds rows
		from = slices.Concat(all, rows)
	}
	from = slices.SortedFunc(slices.Values(from), func(a, b record) int { return cmp.Compare(b.JobID, a.JobID) })
	email := query.Get("jobEmail")
	if email == "" && !query.Has("organization") {
		email = "ann@lab.example"
	}
	for _, j := range from {
		for _, f := range [][2]string{{email, j.JobEmail}, {query.Get("status"), j.Status}, {query.Get("algorithm"), j.Type}, {query.Get("jobName"), j.JobName}} {
			if f[0] != "" && f[0] != f[1] {
				j.JobName = ""
			}
		}
		if j.JobName != "" {
			names = append(names, j.JobName)
		}
	}
	return names
}

func TestListingHasFiftyJobsByDefaultAndContinuesAtTheCursor(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u := s.user("lab", "ann@lab.example")
	var want []string
	for i := range 120 {
		name := fmt.Sprintf("j%03d", i)
		u.submit(name, "words", "{}")
		want = append([]string{name}, want...) // newest first
	}
	if p := u.list(url.Values{}); len(p.Jobs) != 50 || p.StartKey == "" {
		t.Errorf("without a limit: %d jobs and cursor %q, want 50 and a cursor", len(p.Jobs), p.StartKey)
	}
	if p := u.list(url.Values{"limit": {"100"}}); len(p.Jobs) != 100 {
		t.Errorf("with limit 100: %d jobs", len(p.Jobs))
	}
	for _, limit := range []string{"1", "7", "40", "60", "100"} { // 40 and 60 end with a full page
		same(t, "limit "+limit, u.names(url.Values{"limit": {limit}}), want)
	}
	// The cursor stays valid while jobs come and go, even those at its position.
	p := u.list(url.Values{"limit": {"10"}})
	u.do("POST", "/jobs/j110/cancel", nil).want(200)
	u.do("DELETE", "/jobs/j110", nil).want(204)
	u.do("POST", "/jobs/j105/cancel", nil).want(200)
	u.do("DELETE", "/jobs/j105", nil).want(204)
	u.submit("newer", "words", "{}")
	rest := u.names(url.Values{"limit": {"10"}, "startKey": {p.StartKey}})
	same(t, "after changes", rest, slices.DeleteFunc(slices.Clone(want[10:]), func(n string) bool { return n == "j105" }))
	for _, limit := range []string{"0", "101", "ten", "-1", ""} {
		u.do("GET", "/jobs?limit="+limit, nil).detail("query.limit")
	}
}

func TestSubjobsAreShownOnRequestUpToAThousand(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u := s.user("lab", "ann@lab.example")
	u.batch("large", "words", slices.Repeat([]string{"{}"}, 1001)...)
	u.batch("small", "words", "{}", "{}")
	u.submit("plain", "words", "{}")
	type shown struct {
		JobName          string
		Subjobs          []struct{ JobName, Batch string }
		SubjobsTruncated *bool
		SubjobCounts     map[string]int
	}
	var plain, with struct{ Jobs []shown }
	u.do("GET", "/jobs", nil).want(200).into(&plain)
	for _, j := range plain.Jobs {
		if j.Subjobs != nil || j.SubjobsTruncated != nil {
			t.Errorf("%s shows rows without a request for them", j.JobName)
		}
	}
	if len(plain.Jobs) != 3 {
		t.Errorf("%d jobs, want 3, without rows", len(plain.Jobs))
	}
	u.do("GET", "/jobs?includeSubjobs=true", nil).want(200).into(&with)
	for i, want := range []struct {
		name      string
		rows      int
		truncated bool
	}{{"plain", 0, false}, {"small", 2, false}, {"large", 1000, true}} {
		j := with.Jobs[i]
		truncated := j.SubjobsTruncated != nil && *j.SubjobsTruncated
		if j.JobName != want.name || len(j.Subjobs) != want.rows || truncated != want.truncated {
			t.Errorf("%s: %d rows, truncated %v; want %+v", j.JobName, len(j.Subjobs), truncated, want)
		}
		if (j.SubjobCounts != nil) != (want.rows > 0) {
			t.Errorf("%s: counts %v", j.JobName, j.SubjobCounts)
		}
		if want.rows > 0 && (j.Subjobs[0].JobName != want.name+"-1" || j.Subjobs[0].Batch != want.name) {
			t.Errorf("first row of %s: %+v", want.name, j.Subjobs[0])
		}
	}
	if rows := u.names(url.Values{"batch": {"large"}, "limit": {"100"}}); len(rows) != 1001 {
		t.Errorf("the listing of the batch has %d rows, want 1001", len(rows))
	}
}

func TestCursorIsOpaqueAndTamperProof(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u := s.user("lab", "ann@lab.example")
	for _, name := range []string{"a", "b", "c"} {
		u.submit(name, "words", "{}")
	}
	u.upload("1.txt", "1")
	u.upload("2.txt", "2")
	key := u.list(url.Values{"limit": {"1"}}).StartKey
	for i := range key {
		altered := []byte(key)
		altered[i] = "AB"[(strings.IndexByte("AB", altered[i])+1)%2]
		u.do("GET", "/jobs?limit=1&startKey="+string(altered), nil).detail("query.startKey")
	}
	u.do("GET", "/jobs?limit=0&startKey=garbage&nothing=1", nil).detail("query.limit", "query.startKey", "query.nothing")
	u.do("GET", "/files?limit=0&startKey=garbage", nil).detail("query.limit", "query.startKey")
	for _, filter := range []string{"organization=true", "jobEmail=bob@lab.example", "algorithm=words", "status=QUEUED", "jobName=a", "batch=a"} {
		u.do("GET", "/jobs?"+filter+"&startKey="+key, nil).detail("query.startKey")
	}
	u.do("GET", "/files?startKey="+key, nil).detail("query.startKey") // a cursor of another list
	for _, same := range []string{"limit=2", "includeSubjobs=true", "limit=100&includeSubjobs=1"} {
		u.do("GET", "/jobs?"+same+"&startKey="+key, nil).want(200)
	}
}
