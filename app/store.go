package app

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"molrun/app/apikey"
	"molrun/app/placement"
)

// Store keeps the records: package storage.
type Store interface {
	// View runs fn on one consistent state.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn and makes its changes durable before it returns, all or
	// none. It puts concurrent callers into one commit, so fn may run twice:
	// it touches only its Tx and variables that it owns and sets afresh.
	// An error of fn comes back as it is and undoes fn's changes alone.
	Update(ctx context.Context, fn func(Tx) error) error

	// Floor gives the highest ID ever stored.
	Floor() IDBytes
}

// Tx reads and changes records. What is absent is NotFound. Records that it
// gives are the caller's own.
type Tx interface {
	Job(id JobID) (*Job, error)
	JobNamed(organization, name string) (*Job, error)
	JobJSON(id JobID) (json.RawMessage, error) // the record as stored
	PutJob(j *Job) error                       // inserts or replaces
	PutEncoded(j EncodedJob) error             // the same, with less to do
	DeleteJob(id JobID) error

	// Jobs gives the page of at most limit jobs older than before ("" is the
	// newest page), newest first; fewer where they are large, so that the page
	// has EnoughBytes and not much more.
	Jobs(f JobFilter, before JobID, limit int) (JobPage, error)
	// Subjobs walks a batch's subjobs by row; status "" means any. Rows may be
	// put or deleted while walking.
	Subjobs(batch JobID, status Status) iter.Seq2[*Job, error]
	// Queue visits the jobs that wait for an executor: higher priority first,
	// then user by user, each user's oldest first.
	Queue(executor string, visit func(Waiting) Visit) error
	// Claims tells of the claimed jobs, oldest first, without reading them.
	Claims() iter.Seq2[Claimed, error]
	// Active walks the claimed jobs, oldest first.
	Active() iter.Seq2[*Job, error]
	// NeededBy gives an unfinished job that reads the upload or result with
	// this ID, NotFound where there is none.
	NeededBy(source string) (JobID, error)
	// Readers walks the jobs, finished ones too, that read it.
	Readers(source string) iter.Seq2[JobID, error]

	// Finished walks the jobs of an organization that have ended with this
	// status after that one, the first that ended first. Subjobs and pinned jobs
	// are not among them.
	Finished(organization string, status Status, after Ended) iter.Seq2[Ended, error]
	// Newest gives the limit of them, of either status, that ended last, the last
	// first; email "" is all users. It is for View.
	Newest(organization, email string, limit int) ([]Ended, error)

	Upload(id UploadID) (*Upload, error)
	// UploadNamed gives the newest completed upload of that owner and name.
	UploadNamed(organization, email, folder, filename string) (*Upload, error)
	PutUpload(u *Upload) error
	DeleteUpload(id UploadID) error
	// Uploads gives a page, newest first, as Jobs does.
	Uploads(f UploadFilter, before UploadID, limit int) (UploadPage, error)
	// OldestUploads walks all uploads newer than after, oldest first.
	OldestUploads(after UploadID) iter.Seq2[*Upload, error]

	// Statuses counts the jobs of each status, batches as one each and without
	// their rows; email "" is all users of the organization.
	Statuses(organization, email string) (Counts, error)
	// Stored gives what an organization uses in all.
	Stored(organization string) (Usage, error)
	// Organizations lists those that have jobs or uploads, sorted.
	Organizations() ([]string, error)
	// Usage walks what is used by whom and for what.
	Usage() iter.Seq2[UsageShare, error]

	// Stamp gives the time that PutStamp stored last, zero if none.
	Stamp() (time.Time, error)
	PutStamp(at time.Time) error

	Key(id string) (*apikey.Key, error)
	PutKey(k *apikey.Key) error
	DeleteKey(id string) error
	Keys() ([]*apikey.Key, error)

	// Definition gives the text of the algorithm file with that digest.
	Definition(digest string) ([]byte, error)
	PutDefinition(digest string, text []byte) error
}

// JobFilter selects jobs of one organization; an empty member selects all.
// Without Batch and Name it selects no subjobs.
type JobFilter struct {
	Organization string
	Email        string
	Type         string
	Status       Status
	Name         string
	Batch        JobID // the subjobs of this batch
}

// StoredJob is a job as stored: its bytes are what clients see.
type StoredJob struct {
	ID   JobID
	JSON json.RawMessage
}

// JobPage is part of a listing.
type JobPage struct {
	Jobs []StoredJob
	More bool // older ones follow
}

// UploadFilter selects uploads of one organization; an empty member selects all.
type UploadFilter struct {
	Organization string
	Email        string
	Folder       string
}

// UploadPage is part of a listing of uploads.
type UploadPage struct {
	Uploads []*Upload
	More    bool
}

// Waiting is a queued job as the scheduler sees it.
type Waiting struct {
	ID           JobID
	Organization string
	Email        string
	Priority     int
	Needs        placement.Resources
}

// Visit says how a walk of the queue goes on.
type Visit int

// Ways to go on.
const (
	NextJob  Visit = iota // the next job of this user
	NextUser              // the next user of this priority, or the next priority
	EndVisit
)

// Ended is a finished job in the order of ends.
type Ended struct {
	ID JobID
	At time.Time
}

// Compare orders by time, then by ID.
func (e Ended) Compare(other Ended) int {
	return cmp.Or(e.At.Compare(other.At), strings.Compare(string(e.ID), string(other.ID)))
}

// Claimed says that a job is claimed, for which attempt, and whether its end
// is asked for.
type Claimed struct {
	Job     JobID
	Attempt int
	Stop    bool
}

// Usage is what jobs and uploads use. Bytes are those of results and uploads,
// not of logs and work directories.
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

// Usage gives what a job adds to that of its organization.
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

// Usage gives what an upload adds to that of its organization.
func (u *Upload) Usage() Usage { return Usage{Files: 1, Bytes: u.Size} }

// UsageShare is what is used by one user for one algorithm since one day. Type
// is "" for uploads.
type UsageShare struct {
	Organization, Email, Type string
	Day                       time.Time // of the end of jobs; of submission if they have not ended
	Usage
}
