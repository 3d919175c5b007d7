package app

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"molrun/app/algorithm/placement"
	"molrun/app/base/events"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
	"molrun/app/job/eta"
	"molrun/app/job/notice"
	"molrun/app/job/quota"
)

// Limits of a page.
const (
	MaxPage   = 100
	PageBytes = 4 << 20 // bytes after which a page ends
)

// Store stores the records. It is implemented by package storage.
type Store interface {
	// View runs fn in a read-only transaction.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn in a transaction and makes its changes durable before it returns,
	// all or none. Concurrent calls share a commit, so fn can run twice: it must access
	// only its Tx and variables that it owns and resets. An error of fn is returned
	// unchanged and undoes only fn's changes.
	Update(ctx context.Context, fn func(Tx) error) error

	// HighWaterMark returns the highest ID that was ever stored.
	HighWaterMark() sortid.ID

	// OnEvents calls notify with the events of each commit once it is durable, in commit
	// order, before the calls of Update return. notify must not block or use the store.
	OnEvents(notify func([]events.Entry))
}

// Tx reads and changes records. Reading a missing record returns NotFound. The caller
// owns the returned records.
type Tx interface {
	Job(id JobID) (*Job, error)
	JobNamed(organization, name string) (*Job, error)
	JobJSON(id JobID) (json.RawMessage, error) // the stored record
	HasJob(id JobID) (bool, error)             // without reading the record
	PutJob(j *Job) error                       // inserts or replaces
	PutEncoded(j EncodedJob) error             // the same for a job that is already encoded
	DeleteJob(id JobID) error

	// Jobs returns a page of at most limit jobs after a position; "" is the beginning. A
	// page ends early once it has PageBytes, or after many jobs that the filter does not
	// select. The records point to the store's memory: they must not be changed, and are
	// valid only until the transaction ends.
	Jobs(f JobFilter, after Position, limit int) (JobPage, error)
	// JobIDs is Jobs without the records, and its pages do not end early.
	JobIDs(f JobFilter, after Position, limit int) ([]JobID, Position, error)
	// CountJobs counts jobs up to a maximum, and reports whether there might be more.
	CountJobs(f JobFilter, most int) (n int, more bool, err error)
	// Subjobs walks a batch's subjobs in order of rows; status "" means any. Rows can be
	// put or deleted during the walk.
	Subjobs(batch JobID, status Status) iter.Seq2[*Job, error]
	// MetricNames returns the names of the metrics in the results of a batch's rows,
	// sorted, up to a maximum number.
	MetricNames(batch JobID, most int) ([]string, error)
	// Queue visits the jobs queued for an executor: by descending priority, then user by
	// user, each user's oldest first.
	Queue(executor string, visit func(Waiting) Visit) error
	// QueueLines counts the jobs queued for an executor by priority and user, in the
	// order of Queue. It does not list the jobs.
	QueueLines(executor string) ([]QueueLine, error)
	// Claims lists the claimed jobs, oldest first, without reading their records.
	Claims() iter.Seq2[Claimed, error]
	// Active walks the claimed jobs, oldest first.
	Active() iter.Seq2[*Job, error]
	// NeededBy returns an unfinished job that reads the upload or result with this ID, or
	// a job not COMPLETED that reads the folder with this digest, or NotFound.
	NeededBy(source string) (JobID, error)
	// Readers walks all jobs, including finished ones, that read the source.
	Readers(source string) iter.Seq2[JobID, error]

	// Dependants walks the jobs that depend on a job in the given way. They can be put
	// during the walk.
	Dependants(job JobID, how Dependence) iter.Seq2[JobID, error]
	// Unpropagated returns a job whose status is not yet propagated to its dependents, or
	// NotFound if there is none.
	Unpropagated() (JobID, error)
	// PendingBatches walks the batches with a pending change to their rows, oldest first.
	PendingBatches() iter.Seq2[JobID, error]

	// Finished walks the jobs of an organization with this status in the order in which
	// they finished, starting after after. It omits subjobs and pinned jobs.
	Finished(organization string, status Status, after Ended) iter.Seq2[Ended, error]
	// Newest returns the most recently finished jobs, completed or failed, newest first
	// and at most limit. email "" means all users. It can be used in View only.
	Newest(organization, email string, limit int) ([]Ended, error)

	Upload(id UploadID) (*Upload, error)
	// UploadNamed returns the newest completed upload with this owner and name.
	UploadNamed(organization, email, folder, filename string) (*Upload, error)
	PutUpload(u *Upload) error
	DeleteUpload(id UploadID) error
	// Uploads returns a page, newest first, as Jobs does.
	Uploads(f UploadFilter, after Position, limit int) (UploadPage, error)
	// OldestUploads walks all uploads newer than after, oldest first.
	OldestUploads(after UploadID) iter.Seq2[*Upload, error]
	// StalePartials returns up to limit uploads whose Partial has received no bytes since
	// before, stalest first.
	StalePartials(before time.Time, limit int) ([]UploadID, error)

	Share(id ShareID) (*Share, error)
	PutShare(s *Share) error
	DeleteShare(id ShareID) error
	// Shares walks the shares of an organization, oldest first.
	Shares(organization string) iter.Seq2[*Share, error]

	// LastEvent returns the position of an organization's newest event.
	LastEvent(organization string) (events.ID, error)
	// EventsAfter returns up to limit events of an organization after a position, oldest
	// first. It returns false if they are no longer stored, or the position does not
	// belong to this store.
	EventsAfter(organization string, after events.ID, limit int) (all []events.Entry, known bool, err error)

	// Statuses counts the jobs with each status. A batch counts as one job, and its rows
	// are not counted. email "" means all users of the organization.
	Statuses(organization, email string) (Counts, error)
	// JobShares walks the numbers of jobs by user, type and status, counting batches as
	// Statuses does. email "" means all users.
	JobShares(organization, email string) iter.Seq2[JobShare, error]
	// Stored returns the total usage of a user; user "" means the whole organization.
	Stored(organization, user string) (Usage, error)
	// Organizations returns the sorted organizations that have jobs or uploads.
	Organizations() ([]string, error)
	// Usage walks the usage by user, algorithm and day.
	Usage() iter.Seq2[UsageShare, error]
	// Spent walks the usage from one day until before another, by organization and day,
	// jobs first. organization "" means all.
	Spent(organization string, from, until time.Time) iter.Seq2[quota.SpentShare, error]

	// Runs returns the last runs of a class, oldest first. They are kept after their jobs
	// are deleted.
	Runs(class string) ([]eta.Run, error)
	// AddRun adds a run, and removes the oldest if there are more than eta.MaxRuns.
	AddRun(class string, r eta.Run) error

	// Stamp returns the time stored by the last PutStamp, or zero if there is none.
	Stamp() (time.Time, error)
	PutStamp(at time.Time) error

	// Drained returns the value stored by the last PutDrained. nil means that jobs can
	// start.
	Drained() (*Drain, error)
	PutDrained(d *Drain) error

	// Definition returns the text of the algorithm file with this digest.
	Definition(digest string) ([]byte, error)
	PutDefinition(digest string, text []byte) error
	apikey.Tx
	notice.Tx
}

// JobFilter selects jobs of one organization; an empty field selects all.
// Without Batch and Name it selects no subjobs.
type JobFilter struct {
	Organization string
	Email        string
	Type         string
	Statuses     []Status // a job with any of them is selected
	Name         string
	Batch        JobID  // subjobs of this batch
	Tags         []Tag  // a selected job has all of them
	Search       string // case-folded text to find in the name, the note or a tag

	// From (inclusive) and Until (exclusive) limit the time that jobs are ordered by.
	From, Until time.Time

	ByCompletion bool // orders by completion, otherwise by submission; not with Name or Batch
	Ascending    bool // oldest first

	// Metric orders the subjobs of Batch by a metric in their results instead of by time,
	// lowest first if Ascending. Jobs without a value come last. From and Until then
	// apply to the submission time.
	Metric string
}

// Selects reports whether f selects a job, ignoring its times.
func (f JobFilter) Selects(j *Job) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return j.Organization == f.Organization &&
		is(f.Email, j.Email) && is(f.Type, j.Type) && is(f.Name, j.Name) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, j.Status)) &&
		is(string(f.Batch), string(j.Private.Batch)) &&
		!slices.ContainsFunc(f.Tags, func(t Tag) bool { return j.Tags[t.Key] != t.Value }) &&
		strings.Contains(j.SearchedText(), f.Search)
}

// Position is where a listing continues. It is opaque to all but the store.
type Position string

// StoredJob is a job as stored, in the form shown to clients.
type StoredJob struct {
	ID   JobID
	JSON json.RawMessage
}

// Drain records since when and why the service has not started jobs. Running jobs
// continue, and submissions are accepted.
type Drain struct {
	Since  unit.Time `json:"since"`
	By     string    `json:"by"`               // e-mail address, or "the operator"
	Reason string    `json:"reason,omitempty"` // one line
}

// Share grants anyone with its link access to the result of a job until it expires or is
// revoked. Only the SHA-256 hash of the link's secret is stored.
type Share struct {
	ID           ShareID   `json:"id"`
	Hash         string    `json:"hash"` // hex
	Organization string    `json:"organization"`
	Email        string    `json:"email"` // of the user who created it
	KeyID        string    `json:"key"`   // API key that created it
	Job          JobID     `json:"job"`
	JobName      string    `json:"jobName"`
	Files        Selection `json:"files,omitempty"` // empty means all
	CreatedAt    unit.Time `json:"createdAt"`
	ExpiresAt    unit.Time `json:"expiresAt"`
	LastUsedAt   unit.Time `json:"lastUsedAt,omitzero"` // accurate to a minute
}

// ShareID identifies a share permanently. It has the form of a JobID.
type ShareID string

// JobPage is one page of a listing.
type JobPage struct {
	Jobs []StoredJob
	Next Position // position to continue from, "" at the end
}

// JobShare is the number of a user's jobs with one type and status.
type JobShare struct {
	Email, Type string
	Status      Status
	Jobs        int
}

// UploadFilter selects uploads of one organization; an empty field selects all.
type UploadFilter struct {
	Organization string
	Email        string
	Folder       string
	SHA256       string // hex; completed uploads only
}

// UploadPage is one page of a listing of uploads.
type UploadPage struct {
	Uploads []*Upload
	Next    Position // position to continue from, "" at the end
}

// Waiting is a queued job as the scheduler sees it.
type Waiting struct {
	ID           JobID
	Organization string
	Email        string
	Priority     int
	Needs        placement.Resources
	Work         eta.Work
}

// QueueLine describes the queued jobs of one user with one priority.
type QueueLine struct {
	Organization string
	Email        string
	Priority     int
	Count        int       // number of jobs in the line
	Jobs         []Waiting // the oldest ones
}

func (l *QueueLine) holds(w Waiting) bool {
	return l.Priority == w.Priority && l.Organization == w.Organization && l.Email == w.Email
}

// Visit says how a walk of the queue continues.
type Visit int

// The ways to continue.
const (
	NextJob  Visit = iota // the next job of this user
	NextUser              // the next user of this priority, or the next priority
	EndVisit
)

// Ended identifies a finished job, ordered by completion.
type Ended struct {
	ID JobID
	At time.Time
}

// Compare orders by time, then by ID.
func (e Ended) Compare(other Ended) int {
	return cmp.Or(e.At.Compare(other.At), strings.Compare(string(e.ID), string(other.ID)))
}

// Claimed is a claimed job with its attempt and whether it should be stopped.
type Claimed struct {
	Job     JobID
	Attempt int
	Stop    bool
}

// Usage is the resources used by jobs and uploads. Bytes counts results and uploads, not
// logs and work directories.
type Usage struct {
	Jobs   int   `json:"jobs"`   // in any status; a batch counts as its rows
	Queued int   `json:"queued"` // how many of Jobs are queued
	Files  int   `json:"files"`  // uploads
	Bytes  int64 `json:"bytes"`
}

// Plus returns u + v.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Jobs + v.Jobs, u.Queued + v.Queued, u.Files + v.Files, u.Bytes + v.Bytes}
}

// Minus returns u - v.
func (u Usage) Minus(v Usage) Usage {
	return Usage{u.Jobs - v.Jobs, u.Queued - v.Queued, u.Files - v.Files, u.Bytes - v.Bytes}
}

// Usage returns a job's contribution to the usage of its organization.
func (j *Job) Usage() Usage {
	u := Usage{Jobs: 1}
	if j.Status == Queued {
		u.Queued = 1
	}
	if j.ResultBytes != nil {
		u.Bytes = *j.ResultBytes
	}
	return u
}

// Usage returns an upload's contribution to the usage of its organization.
func (u *Upload) Usage() Usage { return Usage{Files: 1, Bytes: u.Size + u.Partial.Reserved()} }

// UsageShare is the usage of one user for one algorithm on one day. Type is "" for
// uploads.
type UsageShare struct {
	Organization, Email, Type string
	Day                       time.Time // when jobs ended, or were submitted if unfinished
	Usage
}
