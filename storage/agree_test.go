package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
	"molrun/storage/kv"
)

// agree compares the answers of tx with those of the model.
func agree(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	agreeJobs(t, tx, s)
	agreeListings(t, tx, s)
	agreeQueue(t, tx, s)
	agreeUploads(t, tx, s)
	agreeUsage(t, tx, s)
	agreeFinished(t, tx, s)
	agreeAccounts(t, tx, s)
}

// differ describes a difference. It compares first: descriptions are slow.
func differ(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return gocmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}))
}

func agreeJobs(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for _, j := range s.sorted(func(*app.Job) bool { return s.r.IntN(4) == 0 }) {
		got, err := tx.Job(j.ID)
		if diff := differ(j, got); err != nil || diff != "" {
			t.Errorf("job %s: %v\n%s", j.ID, err, diff)
		}
		named, err := tx.JobNamed(j.Organization, j.Name)
		if err != nil || named.ID != j.ID {
			t.Errorf("job named %q: %v, %v", j.Name, named, err)
		}
		want, _ := json.Marshal(j)
		if there, err := tx.HasJob(j.ID); err != nil || !there {
			t.Errorf("there is a job %s: %v, %v", j.ID, there, err)
		}
		if shown, err := tx.JobJSON(j.ID); err != nil || !bytes.Equal(shown, want) {
			t.Errorf("record of %s: %s, %v, want %s", j.ID, shown, err, want)
		}
	}
	absent := app.JobID(s.newID())
	_, e1 := tx.Job(absent)
	_, e2 := tx.JobNamed("lab", "")
	if there, err := tx.HasJob(absent); err != nil || there {
		t.Errorf("there is a job %s: %v, %v", absent, there, err)
	}
	_, e3 := tx.JobJSON(absent)
	if !errors.Is(e1, fault.NotFound) || !errors.Is(e2, fault.NotFound) || !errors.Is(e3, fault.NotFound) {
		t.Errorf("an absent job: %v, %v, %v", e1, e2, e3)
	}
	claimed := s.sorted(func(j *app.Job) bool { return j.Private.Claimed })
	agreeWalk(t, "active", tx.Active(), claimed)
	agreeClaims(t, tx, claimed)
}

func agreeClaims(t *testing.T, tx app.Tx, jobs []*app.Job) {
	t.Helper()
	var want []app.Claimed
	for _, j := range jobs {
		want = append(want, app.Claimed{Job: j.ID, Attempt: j.Attempts, Stop: j.Private.Stop})
	}
	if diff := differ(want, collect(t, tx.Claims())); diff != "" {
		t.Errorf("claims: %s", diff)
	}
}

// collect returns what a walk yields.
func collect[T any](t *testing.T, walk iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for v, err := range walk {
		if err != nil {
			t.Error(err)
		}
		all = append(all, v)
	}
	return all
}

func agreeWalk(t *testing.T, what string, walk iter.Seq2[*app.Job, error], want []*app.Job) {
	t.Helper()
	if diff := differ(want, collect(t, walk)); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func agreeListings(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for range 10 {
		f := app.JobFilter{Organization: pick(s.r, someOrganizations)}
		if s.r.IntN(2) == 0 {
			f.Email = pick(s.r, someEmails)
		}
		if s.r.IntN(2) == 0 {
			f.Type = pick(s.r, someTypes)
		}
		for _, status := range app.Statuses {
			if s.r.IntN(4) == 0 {
				f.Statuses = append(f.Statuses, status)
			}
		}
		labelFilter(s.r, &f)
		if j := s.jobs[anyOf(s.r, s.jobs)]; j != nil {
			switch s.r.IntN(4) {
			case 0:
				f.Name = j.Name
			case 1:
				f.Batch, f.Organization = j.ID, j.Organization
				if j.Private.Batch != "" {
					f.Batch = j.Private.Batch
				}
			case 2:
				f.Name, f.Batch = j.Name, j.Private.Batch
			}
		}
		f.ByCompletion = f.Name == "" && f.Batch == "" && s.r.IntN(3) == 0
		if f.Batch != "" && s.r.IntN(2) == 0 {
			f.Metric = pick(s.r, []string{"e", "f", "é", "absent"})
		}
		agreePages(t, tx, s, f)
	}
	for id, parent := range s.jobs {
		if !parent.IsBatch() || s.r.IntN(3) > 0 {
			continue
		}
		status := pick(s.r, append(app.Statuses[:], ""))
		if got, err := tx.MetricNames(id, 100); err != nil || !slices.Equal(got, s.metricNames(id)) {
			t.Errorf("metrics of %s: %q, %v, want %q", id, got, err, s.metricNames(id))
		}
		agreeWalk(t, "subjobs", tx.Subjobs(id, status), s.sorted(func(j *app.Job) bool {
			return j.Private.Batch == id && (status == "" || j.Status == status)
		}))
	}
}

// labelFilter narrows a filter by what people write on jobs, and by time.
func labelFilter(r *rand.Rand, f *app.JobFilter) {
	for range max(0, r.IntN(4)-1) {
		f.Tags = append(f.Tags, pick(r, someTags))
	}
	if r.IntN(3) == 0 {
		f.Search = pick(r, []string{"x", "a:x", "é", "probe x", "job ", `\"é" `, "xxx"})
	}
	moment := func() time.Time {
		at := testID(r.IntN(60)).Time().Add(time.Duration(r.IntN(3)) * 24 * time.Hour)
		return at.Add(time.Duration(r.IntN(2)) * time.Microsecond)
	}
	if r.IntN(4) == 0 {
		f.From = moment()
	}
	if r.IntN(4) == 0 {
		f.Until = moment()
	}
	f.Ascending = r.IntN(3) == 0
}

// agreePages reads a listing to its end, from its beginning or anywhere.
func agreePages(t *testing.T, tx app.Tx, s *simulation, f app.JobFilter) {
	t.Helper()
	want := s.listed(f)
	if n, more, err := tx.CountJobs(f, len(want)); n != len(want) || more || err != nil {
		t.Errorf("count %+v: %d, %v, %v; want %d", f, n, more, err, len(want))
	}
	if len(want) > 0 {
		if n, more, err := tx.CountJobs(f, len(want)-1); n != len(want)-1 || !more || err != nil {
			t.Errorf("count %+v up to %d: %d, %v, %v", f, len(want)-1, n, more, err)
		}
	}
	var after app.Position
	if f.Metric == "" && s.r.IntN(3) == 0 {
		begin := &app.Job{ID: app.JobID(s.newID()), CompletedAt: unit.At(testID(s.r.IntN(50)).Time())}
		after = positionOf(f, begin)
		want = slices.DeleteFunc(want, func(j *app.Job) bool {
			return positionOf(f, j) == after || positionOf(f, j) < after == f.Ascending
		})
	}
	limit := 1 + s.r.IntN(40)
	for {
		page, err := tx.Jobs(f, after, limit)
		if err != nil {
			t.Errorf("list %+v: %v", f, err)
			return
		}
		head := want[:min(limit, len(want))]
		want = want[len(head):]
		if (page.Next != "") != (len(want) > 0) || len(page.Jobs) != len(head) {
			t.Errorf("list %+v after %x: %d, next %x, want %d, then %d",
				f, after, len(page.Jobs), page.Next, len(head), len(want))
			return
		}
		ids, next, err := tx.JobIDs(f, after, limit)
		if err != nil || next != page.Next || len(ids) != len(head) {
			t.Errorf("IDs of %+v: %v, next %x, %v", f, ids, next, err)
			return
		}
		for i, j := range head {
			if ids[i] != j.ID {
				t.Errorf("IDs of %+v: %s, want %s", f, ids[i], j.ID)
			}
			shown, _ := json.Marshal(j)
			if page.Jobs[i].ID != j.ID || !bytes.Equal(page.Jobs[i].JSON, shown) {
				t.Errorf("list %+v: %s, want %s", f, page.Jobs[i].JSON, shown)
			}
		}
		if after = page.Next; after == "" {
			return
		}
	}
}

// positionOf returns the position behind a job in the listing of a filter.
func positionOf(f app.JobFilter, j *app.Job) app.Position {
	k := kv.Key{}
	if f.ByCompletion {
		k = k.Time(j.CompletedAt.Time)
	}
	return app.Position(k.ID(idOf(j.ID)))
}

// agreeQueue gives random answers to visits and follows them in the model.
func agreeQueue(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for _, executor := range someExecutors {
		want := s.queue(executor)
		agreeLines(t, tx, executor, want)
		err := tx.Queue(executor, func(w app.Waiting) app.Visit {
			if len(want) == 0 {
				t.Errorf("queue of %s: visit of %+v, want the end", executor, w)
				return app.EndVisit
			}
			j := want[0]
			if diff := differ(waitingOf(j), w); diff != "" {
				t.Errorf("queue of %s: %s", executor, diff)
			}
			switch n := s.r.IntN(20); {
			case n == 0:
				want = nil
				return app.EndVisit
			case n < 8:
				want = slices.DeleteFunc(want, func(k *app.Job) bool {
					return k.Priority == j.Priority && k.Organization == j.Organization && k.Email == j.Email
				})
				return app.NextUser
			}
			want = want[1:]
			return app.NextJob
		})
		if err != nil || len(want) > 0 {
			t.Errorf("queue of %s: %v, %d jobs were not visited", executor, err, len(want))
		}
	}
	agreeNeeded(t, tx, s)
}

// agreeLines compares the numbers of waiting jobs with the queue in the order of
// visits.
func agreeLines(t *testing.T, tx app.Tx, executor string, queue []*app.Job) {
	t.Helper()
	var want []app.QueueLine
	for _, j := range queue {
		l := app.QueueLine{Organization: j.Organization, Email: j.Email, Priority: j.Priority}
		if n := len(want) - 1; n >= 0 && want[n].Email == l.Email && want[n].Organization == l.Organization && want[n].Priority == l.Priority {
			want[n].Count++
			continue
		}
		l.Count = 1
		want = append(want, l)
	}
	got, err := tx.QueueLines(executor)
	if diff := differ(want, got); err != nil || diff != "" {
		t.Errorf("lines of %s: %v %s", executor, err, diff)
	}
}

func waitingOf(j *app.Job) app.Waiting {
	return app.Waiting{
		ID:           j.ID,
		Organization: j.Organization,
		Email:        j.Email,
		Priority:     j.Priority,
		Needs:        j.Private.Needs,
		Work:         j.Work(),
	}
}

func agreeNeeded(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for n := range 20 {
		read := testID(n).String()
		unfinished := slices.DeleteFunc(s.readers(read), func(j *app.Job) bool { return j.Status.Finished() })
		got, err := tx.NeededBy(read)
		switch {
		case len(unfinished) == 0 && !errors.Is(err, fault.NotFound):
			t.Errorf("%s is needed by %s, %v, want by none", read, got, err)
		case len(unfinished) > 0 && (err != nil || got != unfinished[0].ID):
			t.Errorf("%s is needed by %s, %v, want by %s", read, got, err, unfinished[0].ID)
		}
	}
}

func agreeUploads(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	f := app.UploadFilter{Organization: pick(s.r, someOrganizations)}
	if s.r.IntN(2) == 0 {
		f.Email = pick(s.r, someEmails)
	}
	if s.r.IntN(2) == 0 {
		f.Folder = pick(s.r, someFolders)
	}
	if s.r.IntN(2) == 0 {
		f.SHA256 = pick(s.r, someDigests)
	}
	want := s.listedUploads(f)
	slices.Reverse(want)
	var got []*app.Upload
	for more, after := true, app.Position(""); more; {
		page, err := tx.Uploads(f, after, 3)
		if err != nil {
			t.Errorf("list files %+v: %v", f, err)
			return
		}
		got = append(got, page.Uploads...)
		after, more = page.Next, page.Next != ""
	}
	if diff := differ(want, got); diff != "" {
		t.Errorf("list files %+v: %s", f, diff)
	}

	organization, email := pick(s.r, someOrganizations), pick(s.r, someEmails)
	folder, filename := pick(s.r, someFolders), pick(s.r, someFilenames)
	named, err := tx.UploadNamed(organization, email, folder, filename)
	var newest *app.Upload
	for _, u := range s.listedUploads(app.UploadFilter{Organization: organization, Email: email, Folder: folder}) {
		if u.Filename == filename && u.Completed() {
			newest = u
		}
	}
	if diff := differ(newest, named); diff != "" || (newest == nil) != errors.Is(err, fault.NotFound) {
		t.Errorf("file %s/%s: %v\n%s", folder, filename, err, diff)
	}
	if newest != nil {
		if u, err := tx.Upload(newest.ID); err != nil || !reflect.DeepEqual(u, newest) {
			t.Errorf("file %s: %+v, %v", newest.ID, u, err)
		}
	}
}

// agreeUsage adds up all records.
func agreeUsage(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	total, ofUser := map[string]app.Usage{}, map[[2]string]app.Usage{}
	shares := map[app.UsageShare]app.Usage{}
	count := func(organization, email, typ string, at unit.Time, u app.Usage) {
		total[organization] = total[organization].Plus(u)
		ofUser[[2]string{organization, email}] = ofUser[[2]string{organization, email}].Plus(u)
		share := app.UsageShare{Organization: organization, Email: email, Type: typ, Day: at.Truncate(24 * time.Hour)}
		shares[share] = shares[share].Plus(u)
	}
	for _, j := range s.jobs {
		if j.IsBatch() {
			continue
		}
		u := app.Usage{Jobs: 1}
		at := j.CreatedAt
		if j.Status.Finished() {
			at = j.CompletedAt
		}
		if j.Status == app.Queued {
			u.Queued = 1
		}
		if j.ResultBytes != nil {
			u.Bytes = *j.ResultBytes
		}
		count(j.Organization, j.Email, j.Type, at, u)
	}
	for _, u := range s.uploads {
		count(u.Organization, u.Email, "", u.CreatedAt, app.Usage{Files: 1, Bytes: u.Size})
	}
	for who, want := range ofUser {
		if got, err := tx.Stored(who[0], who[1]); err != nil || got != want {
			t.Errorf("%q stores %+v, %v, want %+v", who, got, err, want)
		}
	}
	var organizations []string
	for _, organization := range someOrganizations {
		got, err := tx.Stored(organization, "")
		if err != nil || got != total[organization] {
			t.Errorf("%q stores %+v, %v, want %+v", organization, got, err, total[organization])
		}
		ends := func(j *app.Job) bool {
			return j.Organization == organization && j.Status.Finished() && !j.Pinned && j.Private.Batch == ""
		}
		if got != (app.Usage{}) || slices.ContainsFunc(slices.Collect(maps.Values(s.jobs)), ends) {
			organizations = append(organizations, organization)
		}
	}
	agreeStatuses(t, tx, s)
	slices.Sort(organizations)
	if got, err := tx.Organizations(); err != nil || !slices.Equal(got, organizations) {
		t.Errorf("organizations %q, %v, want %q", got, err, organizations)
	}
	got := map[app.UsageShare]app.Usage{}
	for share, err := range tx.Usage() {
		if err != nil {
			t.Error(err)
		}
		of := share
		of.Usage = app.Usage{}
		got[of] = got[of].Plus(share.Usage)
	}
	if diff := differ(shares, got); diff != "" {
		t.Errorf("shares: %s", diff)
	}
}

// agreeStatuses counts all jobs but subjobs.
func agreeStatuses(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for _, organization := range someOrganizations {
		for _, email := range append([]string{""}, someEmails...) {
			var want app.Counts
			for _, j := range s.jobs {
				if j.Organization == organization && (email == "" || j.Email == email) && j.Private.Batch == "" {
					*want.Of(j.Status)++
				}
			}
			if got, err := tx.Statuses(organization, email); err != nil || got != want {
				t.Errorf("%q of %q has %+v, %v, want %+v", email, organization, got, err, want)
			}
			shares := map[app.JobShare]int{}
			for _, j := range s.jobs {
				if j.Organization == organization && (email == "" || j.Email == email) && j.Private.Batch == "" {
					shares[app.JobShare{Email: j.Email, Type: j.Type, Status: j.Status}]++
				}
			}
			for _, share := range collect(t, tx.JobShares(organization, email)) {
				n := share.Jobs
				share.Jobs = 0
				if shares[share] != n {
					t.Errorf("%q of %q has %d of %+v, want %d", email, organization, n, share, shares[share])
				}
				delete(shares, share)
			}
			if len(shares) > 0 {
				t.Errorf("%q of %q lacks %v", email, organization, shares)
			}
		}
	}
}

// agreeFinished compares the jobs that retention may delete.
func agreeFinished(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	expirable := func(organization, email string, status app.Status) (all []app.Ended) {
		for _, j := range s.jobs {
			if j.Organization == organization && (email == "" || j.Email == email) && j.Status == status && !j.Pinned && j.Private.Batch == "" {
				all = append(all, app.Ended{ID: j.ID, At: j.CompletedAt.Time})
			}
		}
		slices.SortFunc(all, app.Ended.Compare)
		return all
	}
	organization, email := pick(s.r, someOrganizations), pick(s.r, append(someEmails, ""))
	for _, status := range []app.Status{app.Completed, app.Failed} {
		want := expirable(organization, "", status)
		after := app.Ended{}
		if len(want) > 0 && s.r.IntN(2) == 0 {
			n := s.r.IntN(len(want))
			after, want = want[n], want[n+1:]
		}
		got := collect(t, tx.Finished(organization, status, after))
		if !slices.EqualFunc(got, want, func(a, b app.Ended) bool { return a.Compare(b) == 0 }) {
			t.Errorf("%s jobs of %q after %v: %v, want %v", status, organization, after, got, want)
		}
	}
	want := append(expirable(organization, email, app.Completed), expirable(organization, email, app.Failed)...)
	slices.SortFunc(want, func(a, b app.Ended) int { return b.Compare(a) })
	want = want[:min(len(want), s.r.IntN(10))]
	got, err := tx.Newest(organization, email, len(want))
	if err != nil || !slices.EqualFunc(got, want, func(a, b app.Ended) bool { return a.Compare(b) == 0 }) {
		t.Errorf("newest of %q %q: %v, %v, want %v", organization, email, got, err, want)
	}
	agreeReaders(t, tx, s)
}

func agreeReaders(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	read := testID(s.r.IntN(20)).String()
	var want []app.JobID
	for _, j := range s.readers(read) {
		want = append(want, j.ID)
	}
	if got := collect(t, tx.Readers(read)); !slices.Equal(got, want) {
		t.Errorf("readers of %s: %v, want %v", read, got, want)
	}
}

func agreeAccounts(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	var want []*apikey.Key
	for _, id := range slices.Sorted(maps.Keys(s.keys)) {
		want = append(want, s.keys[id])
		if k, err := tx.Key(id); err != nil || !reflect.DeepEqual(k, s.keys[id]) {
			t.Errorf("key %s: %+v, %v", id, k, err)
		}
	}
	got, err := tx.Keys()
	if diff := differ(want, got); err != nil || diff != "" {
		t.Errorf("keys: %v\n%s", err, diff)
	}
	for n := range 10 {
		want := s.definitions[fmt.Sprint("definition ", n)]
		text, err := tx.Definition(sha256Hex(fmt.Sprint("definition ", n)))
		if string(text) != want || (err == nil) != (want != "") {
			t.Errorf("definition %d: %q, %v", n, text, err)
		}
	}
}
