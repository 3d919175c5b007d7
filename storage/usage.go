package storage

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/quota"
	"molrun/storage/kv"
)

// Stored returns the total usage of a user or, with user "", of an organization. Quotas
// are checked against it.
func (t tx) Stored(organization, user string) (app.Usage, error) {
	k, byJobs, byUploads := kv.Key{}.Text(organization), sumJobsTotal, sumUploadsTotal
	if user != "" {
		k, byJobs, byUploads = k.Text(user), sumJobsUser, sumUploadsUser
	}
	ofJobs, err := sumAt(t.Tx, byJobs, k)
	if err != nil {
		return app.Usage{}, err
	}
	ofUploads, err := sumAt(t.Tx, byUploads, k)
	return ofJobs.Plus(ofUploads), err
}

const (
	sumJobsTotal    = "jobs.total"
	sumUploadsTotal = "uploads.total"
	sumJobsUser     = "jobs.total.user"
	sumUploadsUser  = "uploads.total.user"
)

// jobOfUser sums jobs by organization, user. Batches are not counted, but their rows are.
func jobOfUser(j *app.Job) (kv.Key, app.Usage) {
	k, share := jobTotal(j)
	if k == nil {
		return nil, share
	}
	return k.Text(j.Email), share
}

// uploadOfUser sums uploads by organization, user.
func uploadOfUser(u *app.Upload) (kv.Key, app.Usage) {
	k, share := uploadTotal(u)
	return k.Text(u.Email), share
}

// jobTotal sums jobs by organization. Batches are not counted, but their rows are.
func jobTotal(j *app.Job) (kv.Key, app.Usage) {
	if j.IsBatch() {
		return nil, app.Usage{}
	}
	return make(kv.Key, 0, 32).Text(j.Organization), j.Usage()
}

// uploadTotal sums uploads by organization.
func uploadTotal(u *app.Upload) (kv.Key, app.Usage) {
	return make(kv.Key, 0, 32).Text(u.Organization), u.Usage()
}

// Usage iterates over the usage by organization, user, algorithm and day, jobs first.
func (t tx) Usage() iter.Seq2[app.UsageShare, error] {
	return func(yield func(app.UsageShare, error) bool) {
		for _, bucket := range []string{sumJobsUsage, sumUploadsUsage} {
			for k, value := range t.Ascend(bucket, nil) {
				share, err := readShare(k, value)
				if err != nil {
					err = fmt.Errorf("%s: %w", bucket, err)
				}
				if !yield(share, err) || err != nil {
					return
				}
			}
		}
	}
}

const (
	sumJobsUsage    = "jobs.usage"
	sumUploadsUsage = "uploads.usage"
)

// jobUsage sums jobs by organization, user, algorithm, day of completion, or of
// submission if the job has not finished.
func jobUsage(j *app.Job) (kv.Key, app.Usage) {
	if j.IsBatch() {
		return nil, app.Usage{}
	}
	at := j.CompletedAt
	if at.IsZero() {
		at = j.CreatedAt
	}
	return make(kv.Key, 0, 128).Text(j.Organization).Text(j.Email).Text(j.Type).Time(dayOf(at)), j.Usage()
}

// uploadUsage sums uploads by organization, user, "", day of the upload.
func uploadUsage(u *app.Upload) (kv.Key, app.Usage) {
	return make(kv.Key, 0, 128).Text(u.Organization).Text(u.Email).Text("").Time(dayOf(u.CreatedAt)), u.Usage()
}

func dayOf(t unit.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

func readShare(k kv.Key, value []byte) (s app.UsageShare, err error) {
	for _, part := range []*string{&s.Organization, &s.Email, &s.Type} {
		if *part, k, err = k.CutText(); err != nil {
			return s, err
		}
	}
	if s.Day, _, err = k.CutTime(); err != nil {
		return s, err
	}
	s.Usage, err = readUsage(value)
	return s, err
}

// Spent iterates over the consumption from one day (inclusive) until another (exclusive),
// by organization and day. If organization is "", it covers all organizations.
func (t tx) Spent(organization string, from, until time.Time) iter.Seq2[quota.SpentShare, error] {
	return func(yield func(quota.SpentShare, error) bool) {
		for _, bucket := range []string{spentByJobs, spentByUploads} {
			if !t.walkSpent(bucket, organization, from, until, yield) {
				return
			}
		}
	}
}

func (t tx) walkSpent(bucket, organization string, from, until time.Time, yield func(quota.SpentShare, error) bool) bool {
	var prefix kv.Key
	if organization != "" {
		prefix = make(kv.Key, 0, 64).Text(organization)
	}
	w := t.Walk(bucket)
	for w.Seek(prefix); w.Key != nil && bytes.HasPrefix(w.Key, prefix); {
		s, err := readSpent(w.Key, w.Value)
		switch first := make(kv.Key, 0, 64).Text(s.Organization); {
		case err != nil:
			return yield(s, fmt.Errorf("%s: %w", bucket, err))
		case s.Day.Before(from):
			w.Seek(first.Time(from))
		case !s.Day.Before(until):
			w.Seek(first.Time(time.UnixMilli(math.MaxInt64)).End()) // skips to the next organization
		case !yield(s, nil):
			return false
		default:
			w.Next()
		}
	}
	return true
}

// Organizations returns the sorted names of the organizations that have jobs or uploads.
// The sums alone would miss a batch whose rows were deleted, which retention must still
// find.
func (t tx) Organizations() ([]string, error) {
	names, err := t.organizationsOfFinished()
	if err != nil {
		return nil, err
	}
	for _, bucket := range []string{sumJobsTotal, sumUploadsTotal} {
		for k := range t.Ascend(bucket, nil) {
			name, _, err := k.CutText()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", bucket, err)
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// organizationsOfFinished returns the names of the organizations with jobs that Finished
// lists.
func (t tx) organizationsOfFinished() (names []string, err error) {
	scope := kv.Key{}.Letter(scopeOrganization)
	w := t.Walk(indexJobsFinished)
	for w.Seek(scope); w.Key != nil && bytes.HasPrefix(w.Key, scope); {
		name, _, err := w.Key[len(scope):].CutText()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", indexJobsFinished, err)
		}
		names = append(names, name)
		w.Seek(kv.Key{}.Letter(scopeOrganization).Text(name).End())
	}
	return names, nil
}

// Statuses counts the jobs of each status, of a user or, if email is "", of the whole
// organization. The latter reads only four sums.
func (t tx) Statuses(organization, email string) (counts app.Counts, err error) {
	if email != "" {
		for share, err := range t.JobShares(organization, email) {
			if err != nil {
				return app.Counts{}, err
			}
			*counts.Of(share.Status) += share.Jobs
		}
		return counts, nil
	}
	k := make(kv.Key, 0, 64).Text(organization)
	for _, status := range app.Statuses {
		sum, err := sumAt(t.Tx, sumStatusesOrganization, k.Letter(statusLetter(status)))
		if err != nil {
			return app.Counts{}, err
		}
		*counts.Of(status) = sum.Jobs
	}
	return counts, nil
}

// JobShares iterates over the job counts by user, type and status.
func (t tx) JobShares(organization, email string) iter.Seq2[app.JobShare, error] {
	scope := make(kv.Key, 0, 128).Text(organization)
	if email != "" {
		scope = scope.Text(email)
	}
	return func(yield func(app.JobShare, error) bool) {
		for k, value := range t.Ascend(sumStatusesType, scope) {
			share, err := readJobShare(k, value)
			if !yield(share, err) || err != nil {
				return
			}
		}
	}
}

func readJobShare(k kv.Key, value []byte) (s app.JobShare, err error) {
	var organization string
	for _, part := range []*string{&organization, &s.Email, &s.Type} {
		if *part, k, err = k.CutText(); err != nil {
			return s, fmt.Errorf("%s: %w", sumStatusesType, err)
		}
	}
	for _, status := range app.Statuses {
		if len(k) == 1 && k[0] == statusLetter(status) {
			s.Status = status
		}
	}
	sum, err := readUsage(value)
	if s.Status == "" && err == nil {
		err = kv.ErrKey
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", sumStatusesType, err)
	}
	s.Jobs = sum.Jobs
	return s, nil
}

const (
	sumStatusesOrganization = "jobs.statuses"
	sumStatusesType         = "jobs.statuses.type"
)

// statusesOfOrganization sums jobs other than subjobs by organization, status.
func statusesOfOrganization(j *app.Job) (kv.Key, app.Usage) {
	if j.Private.Batch != "" {
		return nil, app.Usage{}
	}
	return make(kv.Key, 0, 32).Text(j.Organization).Letter(statusLetter(j.Status)), app.Usage{Jobs: 1}
}

// statusesOfType sums jobs other than subjobs by organization, user, type, status.
func statusesOfType(j *app.Job) (kv.Key, app.Usage) {
	if j.Private.Batch != "" {
		return nil, app.Usage{}
	}
	return make(kv.Key, 0, 64).Text(j.Organization).Text(j.Email).Text(j.Type).Letter(statusLetter(j.Status)), app.Usage{Jobs: 1}
}
