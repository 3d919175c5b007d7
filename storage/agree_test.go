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
	"molrun/app/test/must"
	"molrun/storage/kv"
)

// agree compares the results of tx with those of the model.
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

// wantSame reports a difference. It compares before it diffs because diffs are slow.
func wantSame(t *testing.T, what string, got any, err error, want any) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("%s: %v (-want +got)\n%s", what, err, gocmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})))
	}
}

func agreeJobs(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for _, j := range s.sorted(func(*app.Job) bool { return s.r.IntN(4) == 0 }) {
		got, err := tx.Job(j.ID)
		wantSame(t, "job", got, err, j)
		named, err := tx.JobNamed(j.Organization, j.Name)
		if err != nil || named.ID != j.ID {
			t.Errorf("job named %q: %v, %v", j.Name, named, err)
		}
		there, err := tx.HasJob(j.ID)
		wantSame(t, "there is a job", there, err, true)
		want, _ := json.Marshal(j)
		shown, err := tx.JobJSON(j.ID)
		wantSame(t, "record", string(shown), err, string(want))
	}
	absent := app.JobID(s.newID())
	_, e1 := tx.Job(absent)
	_, e2 := tx.JobNamed("lab", "")
	_, e3 := tx.JobJSON(absent)
	if !errors.Is(e1, fault.NotFound) || !errors.Is(e2, fault.NotFound) || !errors.Is(e3, fault.NotFound) {
		t.Errorf("an absent job: %v, %v, %v", e1, e2, e3)
	}
	there, err := tx.HasJob(absent)
	wantSame(t, "there is an absent job", there, err, false)

	claimed := s.sorted(func(j *app.Job) bool { return j.Private.Claimed })
	wantSame(t, "active", collect(t, tx.Active()), nil, claimed)
	var claims []app.Claimed
	for _, j := range claimed {
		claims = append(claims, app.Claimed{Job: j.ID, Attempt: j.Attempts, Stop: j.Private.Stop})
	}
	wantSame(t, "claims", collect(t, tx.Claims()), nil, claims)
}

// collect returns the values of an iterator.
func collect[T any](t *testing.T, walk iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for v, err := range walk {
		must.OK(t, err)
		all = append(all, v)
	}
	return all
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
		names, err := tx.MetricNames(id, 100)
		wantSame(t, "metrics", slices.Clip(names), err, s.metricNames(id))
		wantSame(t, "subjobs", collect(t, tx.Subjobs(id, status)), nil, s.sorted(func(j *app.Job) bool {
			return j.Private.Batch == id && (status == "" || j.Status == status)
		}))
	}
}

// labelFilter adds random tags, search texts and times to a filter.
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

// agreePages pages through a listing, from its beginning or from a random position.
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
			shown, _ := json.Marshal(j)
			if ids[i] != j.ID || page.Jobs[i].ID != j.ID || !bytes.Equal(page.Jobs[i].JSON, shown) {
				t.Errorf("list %+v: %s, %s, want %s", f, ids[i], page.Jobs[i].JSON, shown)
			}
		}
		if after = page.Next; after == "" {
			return
		}
	}
}

// positionOf returns the position after a job in the listing of a filter.
func positionOf(f app.JobFilter, j *app.Job) app.Position {
	k := kv.Key{}
	if f.ByCompletion {
		k = k.Time(j.CompletedAt.Time)
	}
	return app.Position(k.ID(idOf(j.ID)))
}

// agreeQueue walks queues with a visitor that returns random results, and compares the
// visited jobs with the model.
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
			wantSame(t, "queue of "+executor, w, nil, waitingOf(j))
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

// agreeLines compares the queue lines with counts of the jobs in queue, which is in
// visiting order.
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
	wantSame(t, "lines of "+executor, got, err, want)
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
	wantSame(t, fmt.Sprintf("list files %+v", f), got, nil, want)

	organization, email := pick(s.r, someOrganizations), pick(s.r, someEmails)
	folder, filename := pick(s.r, someFolders), pick(s.r, someFilenames)
	named, err := tx.UploadNamed(organization, email, folder, filename)
	var newest *app.Upload
	for _, u := range s.listedUploads(app.UploadFilter{Organization: organization, Email: email, Folder: folder}) {
		if u.Filename == filename && u.Completed() {
			newest = u
		}
	}
	if newest == nil && !errors.Is(err, fault.NotFound) {
		t.Errorf("file %s/%s: %v, %v; want none", folder, filename, named, err)
	}
	if newest != nil {
		wantSame(t, "newest file of a name", named, err, newest)
		u, err := tx.Upload(newest.ID)
		wantSame(t, "file", u, err, newest)
	}
}

// agreeUsage compares usage with the sum over all records.
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
		got, err := tx.Stored(who[0], who[1])
		wantSame(t, fmt.Sprintf("stored by %q", who), got, err, want)
	}
	var organizations []string
	for _, organization := range someOrganizations {
		got, err := tx.Stored(organization, "")
		wantSame(t, "stored by "+organization, got, err, total[organization])
		ends := func(j *app.Job) bool {
			return j.Organization == organization && j.Status.Finished() && !j.Pinned && j.Private.Batch == ""
		}
		if got != (app.Usage{}) || slices.ContainsFunc(slices.Collect(maps.Values(s.jobs)), ends) {
			organizations = append(organizations, organization)
		}
	}
	agreeStatuses(t, tx, s)
	slices.Sort(organizations)
	listed, err := tx.Organizations()
	wantSame(t, "organizations", listed, err, organizations)
	got := map[app.UsageShare]app.Usage{}
	for _, share := range collect(t, tx.Usage()) {
		of := share
		of.Usage = app.Usage{}
		got[of] = got[of].Plus(share.Usage)
	}
	wantSame(t, "shares", got, nil, shares)
}

// agreeStatuses compares status counts with the sum over all jobs except subjobs.
func agreeStatuses(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for _, organization := range someOrganizations {
		for _, email := range append([]string{""}, someEmails...) {
			who := fmt.Sprintf(" of %q in %q", email, organization)
			var counts app.Counts
			shares := map[app.JobShare]int{}
			for _, j := range s.jobs {
				if j.Organization == organization && (email == "" || j.Email == email) && j.Private.Batch == "" {
					*counts.Of(j.Status)++
					shares[app.JobShare{Email: j.Email, Type: j.Type, Status: j.Status}]++
				}
			}
			statuses, err := tx.Statuses(organization, email)
			wantSame(t, "statuses"+who, statuses, err, counts)
			got := map[app.JobShare]int{}
			for _, share := range collect(t, tx.JobShares(organization, email)) {
				of := share
				of.Jobs = 0
				got[of] += share.Jobs
			}
			wantSame(t, "shares"+who, got, nil, shares)
		}
	}
}

// agreeFinished compares the jobs that retention is allowed to delete.
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
	same := func(what string, got, want []app.Ended) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(a, b app.Ended) bool { return a.Compare(b) == 0 }) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	organization, email := pick(s.r, someOrganizations), pick(s.r, append(someEmails, ""))
	for _, status := range []app.Status{app.Completed, app.Failed} {
		want := expirable(organization, "", status)
		after := app.Ended{}
		if len(want) > 0 && s.r.IntN(2) == 0 {
			n := s.r.IntN(len(want))
			after, want = want[n], want[n+1:]
		}
		same(fmt.Sprintf("%s of %q after %v", status, organization, after), collect(t, tx.Finished(organization, status, after)), want)
	}
	want := append(expirable(organization, email, app.Completed), expirable(organization, email, app.Failed)...)
	slices.SortFunc(want, func(a, b app.Ended) int { return b.Compare(a) })
	want = want[:min(len(want), s.r.IntN(10))]
	got, err := tx.Newest(organization, email, len(want))
	must.OK(t, err)
	same(fmt.Sprintf("newest of %q %q", organization, email), got, want)

	read := testID(s.r.IntN(20)).String()
	var readers []app.JobID
	for _, j := range s.readers(read) {
		readers = append(readers, j.ID)
	}
	wantSame(t, "readers", collect(t, tx.Readers(read)), nil, readers)
}

func agreeAccounts(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	var want []*apikey.Key
	for _, id := range slices.Sorted(maps.Keys(s.keys)) {
		want = append(want, s.keys[id])
		k, err := tx.Key(id)
		wantSame(t, "key", k, err, s.keys[id])
	}
	got, err := tx.Keys()
	wantSame(t, "keys", got, err, want)
	for n := range 10 {
		want := s.definitions[fmt.Sprint("definition ", n)]
		text, err := tx.Definition(sha256Hex(fmt.Sprint("definition ", n)))
		if string(text) != want || (err == nil) != (want != "") {
			t.Errorf("definition %d: %q, %v", n, text, err)
		}
	}
}
