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
	MaxPage     = 100
	EnoughBytes = 4 << 20 // no more jobs are added
)

// Store stores the records. Package storage implements it.
type Store interface {
	// View runs fn in a read-only transaction.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn in a transaction and makes its changes durable before it
	// returns, all or none. Concurrent calls share a commit, so fn may run
	// twice: it must touch only its Tx and variables that it owns and sets
	// afresh. An error of fn is returned as it is and undoes only fn's changes.
	Update(ctx context.Context, fn func(Tx) error) error

	// Floor returns the highest ID ever stored.
	Floor() sortid.ID

	// OnEvents calls notify with the events of each commit once it is durable, in the
	// order of commits, before the calls of Update return. notify must not wait and
	// not use the store.
	OnEvents(notify func([]events.Entry))
}

// Tx reads and changes records. A missing record is NotFound. The caller owns
// the records returned.
type Tx interface {
	Job(id JobID) (*Job, error)
	JobNamed(organization, name string) (*Job, error)
	JobJSON(id JobID) (json.RawMessage, error) // the record as stored
	HasJob(id JobID) (bool, error)             // without reading the record
	PutJob(j *Job) error                       // inserts or replaces
	PutEncoded(j EncodedJob) error             // the same, with less to do
	DeleteJob(id JobID) error

	// Jobs returns a page of at most limit jobs that follow a position; "" is the
	// beginning. A page ends early, once it has EnoughBytes or has looked at many
	// jobs that the filter does not select. Its records are the store's own bytes: they
	// must not be changed, and hold until the transaction ends.
	Jobs(f JobFilter, after Position, limit int) (JobPage, error)
	// JobIDs is Jobs without the records, and with pages as long as asked for.
	JobIDs(f JobFilter, after Position, limit int) ([]JobID, Position, error)
	// CountJobs counts jobs up to most, and reports whether there may be more.
	CountJobs(f JobFilter, most int) (n int, more bool, err error)
	// Subjobs walks a batch's subjobs by row; status "" is any. Rows may be put
	// or deleted during the walk.
	Subjobs(batch JobID, status Status) iter.Seq2[*Job, error]
	// MetricNames returns the names of the metrics in the results of a batch's rows,
	// sorted, up to most of them.
	MetricNames(batch JobID, most int) ([]string, error)
	// Queue visits the jobs queued for an executor: by descending priority, then
	// user by user, each user's oldest first.
	Queue(executor string, visit func(Waiting) Visit) error
	// QueueLines counts the jobs queued for an executor by priority and user, in
	// the order of Queue. It lists no jobs.
	QueueLines(executor string) ([]QueueLine, error)
	// Claims lists the claimed jobs, oldest first, without reading their
	// records.
	Claims() iter.Seq2[Claimed, error]
	// Active walks the claimed jobs, oldest first.
	Active() iter.Seq2[*Job, error]
	// NeededBy returns an unfinished job that reads the upload or result with this ID, or
	// one that has not completed and reads the folder with this digest, else NotFound.
	NeededBy(source string) (JobID, error)
	// Readers walks all jobs that read it, finished ones included.
	Readers(source string) iter.Seq2[JobID, error]

	// Dependants walks the jobs that depend on a job in one way. They may be put during
	// the walk.
	Dependants(job JobID, how Dependence) iter.Seq2[JobID, error]
	// Unpropagated returns a job whose status is still to be propagated to its dependants,
	// NotFound if there is none.
	Unpropagated() (JobID, error)
	// PendingBatches walks the batches with a pending change of their rows, oldest first.
	PendingBatches() iter.Seq2[JobID, error]

	// Finished walks the jobs of an organization with this status in the order
	// in which they finished, beginning behind after. Subjobs and pinned jobs
	// are left out.
	Finished(organization string, status Status, after Ended) iter.Seq2[Ended, error]
	// Newest returns the limit jobs that finished last, of either status,
	// newest first; email "" is all users. It is for View only.
	Newest(organization, email string, limit int) ([]Ended, error)

	Upload(id UploadID) (*Upload, error)
	// UploadNamed returns the newest completed upload with that owner and name.
	UploadNamed(organization, email, folder, filename string) (*Upload, error)
	PutUpload(u *Upload) error
	DeleteUpload(id UploadID) error
	// Uploads returns a page, newest first, as Jobs does.
	Uploads(f UploadFilter, after Position, limit int) (UploadPage, error)
	// OldestUploads walks all uploads newer than after, oldest first.
	OldestUploads(after UploadID) iter.Seq2[*Upload, error]
	// StalePartials lists uploads of whose Partial no bytes came since before, up to
	// limit, the stalest first.
	StalePartials(before time.Time, limit int) ([]UploadID, error)

	Share(id ShareID) (*Share, error)
	PutShare(s *Share) error
	DeleteShare(id ShareID) error
	// Shares walks the shares of an organization, oldest first.
	Shares(organization string) iter.Seq2[*Share, error]

	// LastEvent returns the place of an organization's newest event.
	LastEvent(organization string) (events.ID, error)
	// EventsAfter returns up to limit events of an organization behind a place,
	// oldest first. It returns false if they are no longer known, or the place is
	// not one of this store.
	EventsAfter(organization string, after events.ID, limit int) (all []events.Entry, known bool, err error)

	// Statuses counts the jobs of each status; a batch counts as one, its rows
	// don't count. email "" is all users of the organization.
	Statuses(organization, email string) (Counts, error)
	// JobShares walks the numbers of jobs by user, type and status, batches as in
	// Statuses. email "" is all users.
	JobShares(organization, email string) iter.Seq2[JobShare, error]
	// Stored returns the total usage of a user; user "" is the whole organization.
	Stored(organization, user string) (Usage, error)
	// Organizations lists, sorted, those that have jobs or uploads.
	Organizations() ([]string, error)
	// Usage walks the usage by user, algorithm and day.
	Usage() iter.Seq2[UsageShare, error]
	// Spent walks what was spent on the days from one on until before another, by
	// organization and day, jobs first; organization "" is all of them.
	Spent(organization string, from, until time.Time) iter.Seq2[quota.SpentShare, error]

	// Runs returns the last runs of a class, oldest first; they outlive their jobs.
	Runs(class string) ([]eta.Run, error)
	// AddRun adds one, and forgets the oldest if there are more than eta.MaxRuns.
	AddRun(class string, r eta.Run) error

	// Stamp returns the time stored by the last PutStamp, zero if none.
	Stamp() (time.Time, error)
	PutStamp(at time.Time) error

	// Drained returns what the last PutDrained stored; nil is that jobs start.
	Drained() (*Drain, error)
	PutDrained(d *Drain) error

	// Definition returns the text of the algorithm file with that digest.
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
	Statuses     []Status // one of them
	Name         string
	Batch        JobID  // the subjobs of this batch
	Tags         []Tag  // all of them
	Search       string // folded; in the name, the note or a tag

	// From and Until bound the time of the order: From is in, Until is out.
	From, Until time.Time

	ByCompletion bool // in order of completion, else of submission; not with Name or Batch
	Ascending    bool // oldest first

	// Metric orders the subjobs of Batch by a number in their results, in place of
	// the time: lowest first if Ascending. Jobs without it come last. From and Until
	// are about the submission.
	Metric string
}

// Selects reports whether a job is one of those that f selects, its times aside.
func (f JobFilter) Selects(j *Job) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return j.Organization == f.Organization &&
		is(f.Email, j.Email) && is(f.Type, j.Type) && is(f.Name, j.Name) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, j.Status)) &&
		is(string(f.Batch), string(j.Private.Batch)) &&
		!slices.ContainsFunc(f.Tags, func(t Tag) bool { return j.Tags[t.Key] != t.Value }) &&
		strings.Contains(j.SearchedText(), f.Search)
}

// Position is where a listing continues. Only the store knows what it means.
type Position string

// StoredJob is a job as stored: the bytes that clients see.
type StoredJob struct {
	ID   JobID
	JSON json.RawMessage
}

// Drain says since when and why the service starts no jobs. Running jobs go on, and
// submissions are accepted.
type Drain struct {
	Since  unit.Time `json:"since"`
	By     string    `json:"by"`               // e-mail address, or "the operator"
	Reason string    `json:"reason,omitempty"` // one line
}

// Share shows the result of a job to anyone who has its link, until it expires or is
// revoked. Only the SHA-256 of the secret in the link is stored.
type Share struct {
	ID           ShareID   `json:"id"`
	Hash         string    `json:"hash"` // hex
	Organization string    `json:"organization"`
	Email        string    `json:"email"` // of who made it
	KeyID        string    `json:"key"`   // the API key that it was made with
	Job          JobID     `json:"job"`
	JobName      string    `json:"jobName"`
	Files        Selection `json:"files,omitempty"` // none is all
	CreatedAt    unit.Time `json:"createdAt"`
	ExpiresAt    unit.Time `json:"expiresAt"`
	LastUsedAt   unit.Time `json:"lastUsedAt,omitzero"` // within a minute
}

// ShareID identifies a share permanently. It has the form of a JobID.
type ShareID string

// JobPage is part of a listing.
type JobPage struct {
	Jobs []StoredJob
	Next Position // behind which there may be more, "" if there are none
}

// JobShare is how many jobs a user has of one type and status.
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

// UploadPage is part of a listing of uploads.
type UploadPage struct {
	Uploads []*Upload
	Next    Position // behind which there are more, "" if there are none
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

// QueueLine is the waiting jobs of one user and priority.
type QueueLine struct {
	Organization string
	Email        string
	Priority     int
	Count        int       // all of them
	Jobs         []Waiting // the oldest of them
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

// Ended identifies a finished job in the order of finishing.
type Ended struct {
	ID JobID
	At time.Time
}

// Compare orders by time, then by ID.
func (e Ended) Compare(other Ended) int {
	return cmp.Or(e.At.Compare(other.At), strings.Compare(string(e.ID), string(other.ID)))
}

// Claimed is a claimed job: its attempt, and whether it is to be stopped.
type Claimed struct {
	Job     JobID
	Attempt int
	Stop    bool
}

// Usage is what jobs and uploads use. Bytes counts results and uploads, not
// logs and work directories.
type Usage struct {
	Jobs   int   `json:"jobs"`   // of all states; a batch counts as its rows
	Queued int   `json:"queued"` // of them, those that wait
	Files  int   `json:"files"`  // uploads
	Bytes  int64 `json:"bytes"`
}

// Plus adds.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Jobs + v.Jobs, u.Queued + v.Queued, u.Files + v.Files, u.Bytes + v.Bytes}
}

// Minus subtracts.
func (u Usage) Minus(v Usage) Usage {
	return Usage{u.Jobs - v.Jobs, u.Queued - v.Queued, u.Files - v.Files, u.Bytes - v.Bytes}
}

// Usage returns what a job adds to the usage of its organization.
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

// Usage returns what an upload adds to the usage of its organization.
func (u *Upload) Usage() Usage { return Usage{Files: 1, Bytes: u.Size + u.Partial.Reserved()} }

// UsageShare is the usage of one user for one algorithm on one day. Type is ""
// for uploads.
type UsageShare struct {
	Organization, Email, Type string
	Day                       time.Time // of the end of jobs; of submission if they have not ended
	Usage
}
