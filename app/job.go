package app

import (
	"encoding/json"
	"fmt"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
	"molrun/app/job/eta"
	"molrun/app/job/quota"
	"molrun/app/task/protocol"
)

// Status is the status of a job.
type Status string

// The statuses. The last two are final, except that Retry queues a failed job
// again.
const (
	Queued    Status = "QUEUED"
	Running   Status = "RUNNING"
	Completed Status = "COMPLETED"
	Failed    Status = "FAILED"
)

// Statuses lists all statuses in the order of a job's life.
var Statuses = [...]Status{Queued, Running, Completed, Failed}

// Finished reports whether nothing more happens to the job by itself.
func (s Status) Finished() bool { return s == Completed || s == Failed }

// Valid reports whether s is one of the four statuses.
func (s Status) Valid() bool {
	return s == Queued || s == Running || s.Finished()
}

// Job is a piece of work with a name that is unique in its organization. Its
// JSON is the record that clients see, and is stored as such; what clients
// don't see is in Private.
type Job struct {
	ID             JobID             `json:"jobId"`
	Name           string            `json:"jobName"`
	Type           string            `json:"type"`
	Version        string            `json:"version"`
	Status         Status            `json:"status"`
	StatusReason   string            `json:"statusReason,omitempty"`
	Executor       string            `json:"executor,omitempty"` // headOf reads no further
	Settings       json.RawMessage   `json:"settings,omitempty"` // as sent; none on a batch
	Inputs         []Input           `json:"inputs,omitempty"`
	Source         string            `json:"source,omitempty"` // of a row that was made of something: a file's name, a record's ID, a line
	After          []string          `json:"after,omitempty"`  // jobs to start after, as sent
	AfterAny       bool              `json:"afterAny,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
	Note           string            `json:"note,omitempty"`
	Organization   string            `json:"organization"`
	Email          string            `json:"jobEmail"` // of the submitter
	Batch          string            `json:"batch,omitempty"`
	Priority       int               `json:"priority"`
	MaxRuntime     int64             `json:"maxRuntimeSeconds,omitempty"`
	CreatedAt      unit.Time         `json:"createdAt"`
	StartedAt      unit.Time         `json:"startedAt,omitzero"`
	CompletedAt    unit.Time         `json:"completedAt,omitzero"` // when it finished, also if it failed
	Attempts       int               `json:"attempts"`
	MemoryBytes    int64             `json:"memoryBytes,omitempty"`    // reserved, once that was raised
	PastAttempts   []PastAttempt     `json:"pastAttempts,omitempty"`   // after which it was raised, since submission or retry
	Isolation      string            `json:"isolation,omitempty"`      // of the attempt that ended, as in Outcome
	ProgramVersion string            `json:"programVersion,omitempty"` // likewise
	Image          *protocol.Image   `json:"image,omitempty"`          // that attempt ran programs of
	Slurm          *ClusterJob       `json:"slurm,omitempty"`          // that runs, or ran, the attempt
	Metrics        *Metrics          `json:"metrics,omitempty"`
	Warnings       []string          `json:"warnings,omitempty"` // what programs say makes the result doubtful
	Failure        *Failure          `json:"failure,omitempty"`
	ResultBytes    *int64            `json:"resultBytes,omitempty"`
	LeftOut        *LeftOut          `json:"leftOut,omitempty"`
	Pinned         bool              `json:"pinned"`
	Counts         *Counts           `json:"subjobCounts,omitempty"` // makes the job a batch

	Private Private `json:"-"`
}

// LeftOut is what a program left that is not in the result.
type LeftOut struct {
	Count int           `json:"count"`
	Paths []LeftOutPath `json:"paths"` // the first ones
}

// LeftOutPath says of a path below the output folder why it is left out.
type LeftOutPath struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// IsBatch reports whether the job is made of subjobs.
func (j *Job) IsBatch() bool { return j.Counts != nil }

// Encode returns the record as it is stored and shown.
func (j *Job) Encode() ([]byte, error) { return strictjson.Encode(j) }

// Summary returns the job without members that can be large, such as its settings, and
// without private ones.
func (j *Job) Summary() *Job {
	b := *j
	b.Settings, b.Inputs, b.After, b.Metrics, b.LeftOut = nil, nil, nil, nil, nil
	b.Private = Private{Batch: j.Private.Batch, Row: j.Private.Row, QueuedAt: j.Private.QueuedAt, Lost: j.Private.Lost, Claimed: j.Private.Claimed}
	b.Warnings = j.Warnings[:min(1, len(j.Warnings))]
	if j.Failure != nil {
		f := *j.Failure
		f.LogTail = ""
		b.Failure = &f
	}
	return &b
}

// forgetAttempt clears what an attempt has left in the record, beside its end.
func (j *Job) forgetAttempt() {
	j.Metrics, j.Warnings, j.LeftOut, j.Slurm = nil, nil, nil, nil
	j.Isolation, j.ProgramVersion, j.Image = "", "", nil
}

// EncodedJob is a job with its stored bytes. They are encoded by the caller, in
// parallel, and not by the store's single writer.
type EncodedJob struct {
	Job            *Job
	Shown, Private []byte
	Summary        *Job   // selects the listeners; nil for a new row, which is announced with its batch
	SummaryJSON    []byte // Summary encoded, as sent to listeners
}

// Encoded encodes the job for storage. The job must not change afterwards.
func (j *Job) Encoded() (e EncodedJob, err error) { return j.encoded(true) }

// encoded leaves out the summary of a job that is not announced to listeners.
func (j *Job) encoded(summarize bool) (e EncodedJob, err error) {
	e.Job = j
	if e.Shown, err = j.Encode(); err == nil {
		e.Private, err = j.encodePrivate()
	}
	if err == nil && summarize {
		e.Summary = j.Summary()
		e.SummaryJSON, err = e.Summary.Encode()
	}
	if err != nil {
		err = fmt.Errorf("encode job %s: %w", j.ID, err)
	}
	return e, err
}

// Private is the part of a job's record that is stored and never shown.
type Private struct {
	Sent            string              `json:"sent,omitempty"`       // hash of the body as sent, hex
	Meaning         string              `json:"meaning,omitempty"`    // hash of type, version and normalised settings, hex
	Normalized      json.RawMessage     `json:"normalized,omitempty"` // settings as the program sees them
	AsksTime        bool                `json:"asksTime,omitempty"`   // the submission gave maxRuntimeSeconds
	Definition      string              `json:"definition,omitempty"` // digest of the algorithm file it was validated against
	Folder          string              `json:"folder,omitempty"`     // Definition, if that algorithm has a folder
	Batch           JobID               `json:"batch,omitempty"`      // parent of a subjob
	Row             int                 `json:"row,omitempty"`        // its place in the batch, from 0
	LastEnd         unit.Time           `json:"lastEnd,omitzero"`     // of a batch: when the last of its rows that have finished did
	Varying         []string            `json:"varying,omitempty"`    // of a batch: the settings in which its rows differ
	Needs           placement.Resources `json:"needs"`
	LimitOf         string              `json:"limitOf,omitempty"` // whose limit MaxRuntime is, such as "the partition main"; "": the algorithm's, or as asked
	Class           string              `json:"class,omitempty"`   // of comparable runs
	Size            float64             `json:"size,omitempty"`    // as the algorithm file computes it
	Facts           algorithm.Facts     `json:"facts,omitempty"`   // of the files, where something depends on them
	Retries         int                 `json:"retries,omitempty"` // how many lost attempts may be repeated
	Lost            int                 `json:"lost,omitempty"`    // lost attempts since submission or retry
	References      []Reference         `json:"sources,omitempty"`
	Waits           []Dependency        `json:"waits,omitempty"`     // what the job still waits for, or waited for when it failed
	Cause           JobID               `json:"cause,omitempty"`     // of Waits, the one because of which it failed
	KeepsDependants bool                `json:"spares,omitempty"`    // it was stopped, and its dependants wait until it is retried
	Unpropagated    bool                `json:"unsettled,omitempty"` // its status is still to be propagated to its dependants
	Pending         *PendingChange      `json:"asked,omitempty"`     // of a batch: the change still to be made to its rows
	QueuedAt        unit.Time           `json:"queuedAt,omitzero"`   // by submission or retry
	Notify          []string            `json:"notify,omitempty"`    // who is notified of its end: see package notice
	PinnedBy        string              `json:"pinnedBy,omitempty"`  // the e-mail of who pinned it
	PinnedAt        unit.Time           `json:"pinnedAt,omitzero"`
	Spent           quota.SpentAttempts `json:"spent,omitzero"`

	// Of the current attempt.
	Claimed bool   `json:"claimed,omitempty"` // taken from the queue by the runner
	Stop    bool   `json:"stop,omitempty"`    // its end was asked for
	StopBy  string `json:"stopBy,omitempty"`  // the e-mail of who asked
	Token   string `json:"token,omitempty"`   // names the attempt to executors
	Handle  Handle `json:"handle,omitempty"`
	Pilot   string `json:"pilot,omitempty"` // the pilot that runs it with others
	placement.Devices
}

// Work returns what is known of the job's run time before it runs.
func (j *Job) Work() eta.Work { return eta.Work{Class: j.Private.Class, Size: j.Private.Size} }

// Input is a file that a job reads, as shown.
type Input struct {
	Setting  string `json:"setting"`
	FileID   string `json:"fileId,omitempty"` // of an upload
	Job      string `json:"job,omitempty"`    // whose result it is
	Output   string `json:"output,omitempty"` // of that job, which the setting names
	Path     string `json:"path,omitempty"`   // within that result; a pattern of an output whose job has not finished
	Filename string `json:"filename"`
	SHA256   string `json:"sha256,omitempty"`  // "" until the job has finished whose result it is
	Summary  string `json:"summary,omitempty"` // of a structure that was read at submission or when the job started
}

// Reference locates the bytes of an input: a generation of an upload, or a file
// in the result of a job.
type Reference struct {
	Setting    string   `json:"setting"`
	Upload     UploadID `json:"upload,omitempty"`
	Generation int      `json:"generation,omitempty"`
	Job        JobID    `json:"job,omitempty"`
	Output     string   `json:"output,omitempty"` // while pending: an output of that job, one file or many
	Path       string   `json:"path,omitempty"`
	Size       int64    `json:"size"`
	Pending    bool     `json:"pending,omitempty"` // the job had not finished; Path and Size are still to be found
}

// Dependency is a job that another one waits for.
type Dependency struct {
	Job  JobID  `json:"job"`
	Name string `json:"name"`
	Any  bool   `json:"any,omitempty"` // its end is enough, even if it failed
}

// satisfies reports whether a job that waits for d need no longer do so.
func (d *Job) satisfies(any bool) bool {
	return d.Status == Completed || any && d.Status.Finished()
}

// blocksForever reports whether a job that depends on d can't start any more.
func (d *Job) blocksForever(any bool) bool {
	return d.Status == Failed && !any && !d.Private.KeepsDependants
}

// Dependence is how a job depends on another one.
type Dependence byte

// The ways to depend.
const (
	WaitsForSuccess Dependence = 's' // queued, until the other is COMPLETED
	WaitsForEnd     Dependence = 'e' // queued, until the other has finished
	FailedWith      Dependence = 'f' // failed, because the other did
)

// AffectedDependants returns which dependants a job's status concerns. Once it is
// propagated to them, they no longer depend on the job, or depend in another way.
func (d *Job) AffectedDependants() []Dependence {
	switch {
	case !d.Status.Finished():
		return []Dependence{FailedWith}
	case d.Status == Completed:
		return []Dependence{WaitsForSuccess, WaitsForEnd, FailedWith}
	case d.Private.KeepsDependants:
		return []Dependence{WaitsForEnd}
	}
	return []Dependence{WaitsForSuccess, WaitsForEnd}
}

// Metrics are the figures of a finished job.
type Metrics struct {
	QueueSeconds float64         `json:"queueSeconds"` // from submission (or retry) to the start
	RunSeconds   float64         `json:"runSeconds"`
	CPUSeconds   float64         `json:"cpuSeconds"`
	MaxRSSBytes  int64           `json:"maxRssBytes"`
	Results      json.RawMessage `json:"results,omitempty"` // an object of the algorithm's own figures
}

// Failure says why a job failed.
type Failure struct {
	Code     FailureCode `json:"code"`
	Message  string      `json:"message"` // a sentence for the user
	ExitCode *int        `json:"exitCode,omitempty"`
	Signal   string      `json:"signal,omitempty"`
	LogTail  string      `json:"logTail,omitempty"`
}

// FailureCode names a kind of failed run.
type FailureCode string

// The kinds of failed runs.
const (
	FailedExit        FailureCode = "EXIT_STATUS"
	FailedSignal      FailureCode = "SIGNAL"
	FailedTimeout     FailureCode = "TIMEOUT"
	FailedMemory      FailureCode = "OUT_OF_MEMORY"
	FailedDisk        FailureCode = "DISK_LIMIT"
	FailedStopped     FailureCode = "STOPPED"
	FailedInput       FailureCode = "INPUT_MISSING"
	FailedCannotStart FailureCode = "CANNOT_START"
	FailedLost        FailureCode = "LOST"
	FailedDependency  FailureCode = "DEPENDENCY_FAILED"
	FailedNoResult    FailureCode = "NO_RESULT"     // the program ended well without having done its work
	FailedInvalid     FailureCode = "INPUT_INVALID" // a file that another job has made
)

// Counts is how many subjobs of a batch have each status.
type Counts struct {
	Queued    int `json:"QUEUED"`
	Running   int `json:"RUNNING"`
	Completed int `json:"COMPLETED"`
	Failed    int `json:"FAILED"`
}

// Of returns a pointer to the count for s.
func (c *Counts) Of(s Status) *int {
	switch s {
	case Queued:
		return &c.Queued
	case Running:
		return &c.Running
	case Completed:
		return &c.Completed
	}
	return &c.Failed
}

// Total returns the number of subjobs.
func (c *Counts) Total() int { return c.Queued + c.Running + c.Completed + c.Failed }

// JobID identifies a job permanently: 26 letters that sort by time of creation.
type JobID string
