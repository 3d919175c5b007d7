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

// The statuses. The last two are final, except that Retry requeues a failed job.
const (
	Queued    Status = "QUEUED"
	Running   Status = "RUNNING"
	Completed Status = "COMPLETED"
	Failed    Status = "FAILED"
)

// Statuses lists all statuses in the order of a job's lifecycle.
var Statuses = [...]Status{Queued, Running, Completed, Failed}

// Finished reports whether the status only changes on request.
func (s Status) Finished() bool { return s == Completed || s == Failed }

// Valid reports whether s is one of the four statuses.
func (s Status) Valid() bool {
	return s == Queued || s == Running || s.Finished()
}

// Job is a piece of work whose name is unique in its organization. Its JSON is the record
// that is stored and shown to clients; Private is not shown.
type Job struct {
	ID             JobID             `json:"jobId"`
	Name           string            `json:"jobName"`
	Type           string            `json:"type"`
	Version        string            `json:"version"`
	Status         Status            `json:"status"`
	StatusReason   string            `json:"statusReason,omitempty"`
	Executor       string            `json:"executor,omitempty"` // headOf stops reading here
	Settings       json.RawMessage   `json:"settings,omitempty"` // as submitted; none for a batch
	Inputs         []Input           `json:"inputs,omitempty"`
	Source         string            `json:"source,omitempty"` // of a generated row: file name, record ID or line
	After          []string          `json:"after,omitempty"`  // jobs to start after, as submitted
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
	CompletedAt    unit.Time         `json:"completedAt,omitzero"` // end time, also of a failed job
	Attempts       int               `json:"attempts"`
	MemoryBytes    int64             `json:"memoryBytes,omitempty"`    // reserved memory, if it was raised
	PastAttempts   []PastAttempt     `json:"pastAttempts,omitempty"`   // attempts after which it was raised, since submission or retry
	Isolation      string            `json:"isolation,omitempty"`      // of the last attempt that ended, as in Outcome
	ProgramVersion string            `json:"programVersion,omitempty"` // likewise
	Image          *protocol.Image   `json:"image,omitempty"`          // container image used by that attempt
	Slurm          *ClusterJob       `json:"slurm,omitempty"`          // cluster job of the attempt
	Metrics        *Metrics          `json:"metrics,omitempty"`
	Warnings       []string          `json:"warnings,omitempty"` // reported by programs: reasons to doubt the result
	Failure        *Failure          `json:"failure,omitempty"`
	ResultBytes    *int64            `json:"resultBytes,omitempty"`
	LeftOut        *LeftOut          `json:"leftOut,omitempty"`
	Pinned         bool              `json:"pinned"`
	Counts         *Counts           `json:"subjobCounts,omitempty"` // non-nil makes the job a batch

	Private Private `json:"-"`
}

// LeftOut lists files that a program created but that are missing from the result.
type LeftOut struct {
	Count int           `json:"count"`
	Paths []LeftOutPath `json:"paths"` // the first ones
}

// LeftOutPath is a path below the output folder and why it is left out.
type LeftOutPath struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// IsBatch reports whether the job is made of subjobs.
func (j *Job) IsBatch() bool { return j.Counts != nil }

// Encode returns the record as stored and shown.
func (j *Job) Encode() ([]byte, error) { return strictjson.Encode(j) }

// Summary returns the job without potentially large fields, such as its settings, and
// without most private ones.
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

// forgetAttempt clears the fields set by an attempt, except those about its end.
func (j *Job) forgetAttempt() {
	j.Metrics, j.Warnings, j.LeftOut, j.Slurm = nil, nil, nil, nil
	j.Isolation, j.ProgramVersion, j.Image = "", "", nil
}

// EncodedJob is a job with its stored bytes. Callers encode jobs in parallel rather than
// in the store's single writer.
type EncodedJob struct {
	Job            *Job
	Shown, Private []byte
	Summary        *Job   // for event filters; nil for a new row, which its batch announces
	SummaryJSON    []byte // Summary encoded, as sent to clients
}

// Encoded encodes the job for storage. The job must not change afterwards.
func (j *Job) Encoded() (e EncodedJob, err error) { return j.encoded(true) }

// encoded leaves out the summary of a job that is not announced.
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

// Private is the part of a job's record that is stored but never shown.
type Private struct {
	Sent            string              `json:"sent,omitempty"`       // hash of the request body, hex
	Meaning         string              `json:"meaning,omitempty"`    // hash of type, version and normalized settings, hex
	Normalized      json.RawMessage     `json:"normalized,omitempty"` // settings as passed to the program
	SetsMaxRuntime  bool                `json:"asksTime,omitempty"`   // the submission set maxRuntimeSeconds
	Definition      string              `json:"definition,omitempty"` // digest of the algorithm file it was validated against
	Folder          string              `json:"folder,omitempty"`     // Definition, if that algorithm has a folder
	Batch           JobID               `json:"batch,omitempty"`      // parent of a subjob
	Row             int                 `json:"row,omitempty"`        // position in the batch, from 0
	LastEnd         unit.Time           `json:"lastEnd,omitzero"`     // of a batch: the latest end of its finished rows
	Varying         []string            `json:"varying,omitempty"`    // of a batch: the settings in which its rows differ
	Needs           placement.Resources `json:"needs"`
	LimitOf         string              `json:"limitOf,omitempty"` // source of MaxRuntime, such as "the partition main"; "" for algorithm or request
	Class           string              `json:"class,omitempty"`   // class of comparable runs
	Size            float64             `json:"size,omitempty"`    // as computed by the algorithm file
	Facts           algorithm.Facts     `json:"facts,omitempty"`   // file metadata, if needed
	Retries         int                 `json:"retries,omitempty"` // maximum number of lost attempts to repeat
	Lost            int                 `json:"lost,omitempty"`    // lost attempts since submission or retry
	References      []Reference         `json:"sources,omitempty"`
	Waits           []Dependency        `json:"waits,omitempty"`     // dependencies still awaited, or awaited when it failed
	Cause           JobID               `json:"cause,omitempty"`     // the dependency in Waits that caused the failure
	KeepsDependants bool                `json:"spares,omitempty"`    // stopped, and its dependents wait until it is retried
	Unpropagated    bool                `json:"unsettled,omitempty"` // status not yet propagated to its dependents
	Pending         *PendingChange      `json:"asked,omitempty"`     // of a batch: the change in progress to its rows
	QueuedAt        unit.Time           `json:"queuedAt,omitzero"`   // time of submission or retry
	Notify          []string            `json:"notify,omitempty"`    // recipients of notifications: see package notice
	PinnedBy        string              `json:"pinnedBy,omitempty"`  // e-mail of the user who pinned it
	PinnedAt        unit.Time           `json:"pinnedAt,omitzero"`
	Spent           quota.SpentAttempts `json:"spent,omitzero"`

	// State of the current attempt.
	Claimed bool   `json:"claimed,omitempty"` // taken from the queue by the runner
	Stop    bool   `json:"stop,omitempty"`    // a stop was requested
	StopBy  string `json:"stopBy,omitempty"`  // e-mail of the user who stopped it
	Token   string `json:"token,omitempty"`   // identifies the attempt to executors
	Handle  Handle `json:"handle,omitempty"`
	Worker  string `json:"worker,omitempty"` // the worker that runs it along with others
	placement.Devices
}

// Work returns what is known about the job's run time before it runs.
func (j *Job) Work() eta.Work { return eta.Work{Class: j.Private.Class, Size: j.Private.Size} }

// Input is a file that a job reads, as shown.
type Input struct {
	Setting  string `json:"setting"`
	FileID   string `json:"fileId,omitempty"` // of an upload
	Job      string `json:"job,omitempty"`    // job whose result contains it
	Output   string `json:"output,omitempty"` // the output of that job, if the setting names one
	Path     string `json:"path,omitempty"`   // within that result; the output's pattern until that job has finished
	Filename string `json:"filename"`
	SHA256   string `json:"sha256,omitempty"`  // "" until that job has finished
	Summary  string `json:"summary,omitempty"` // of a structure file read at submission or when the job started
}

// Reference locates the data of an input: a generation of an upload, or a file in a job's
// result.
type Reference struct {
	Setting    string   `json:"setting"`
	Upload     UploadID `json:"upload,omitempty"`
	Generation int      `json:"generation,omitempty"`
	Job        JobID    `json:"job,omitempty"`
	Output     string   `json:"output,omitempty"` // while pending: an output of that job, one file or many
	Path       string   `json:"path,omitempty"`
	Size       int64    `json:"size"`
	Pending    bool     `json:"pending,omitempty"` // the job had not finished; Path and Size are unknown
}

// Dependency is a job that another one waits for.
type Dependency struct {
	Job  JobID  `json:"job"`
	Name string `json:"name"`
	Any  bool   `json:"any,omitempty"` // a failed job also satisfies it
}

// satisfiesDependency reports whether a job that depends on d can stop waiting for it.
func (d *Job) satisfiesDependency(any bool) bool {
	return d.Status == Completed || any && d.Status.Finished()
}

// blocksForever reports whether a job that depends on d can no longer start.
func (d *Job) blocksForever(any bool) bool {
	return d.Status == Failed && !any && !d.Private.KeepsDependants
}

// Dependence is how a job depends on another one.
type Dependence byte

// The kinds of dependence.
const (
	WaitsForSuccess Dependence = 's' // queued until the other is COMPLETED
	WaitsForEnd     Dependence = 'e' // queued until the other has finished
	FailedWith      Dependence = 'f' // failed because the other did
)

// AffectedDependants returns the kinds of dependents affected by a job's status. After
// propagation they no longer depend on the job, or depend on it in another way.
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

// Metrics holds the metrics of a finished job.
type Metrics struct {
	QueueSeconds float64         `json:"queueSeconds"` // from submission or retry to the start
	RunSeconds   float64         `json:"runSeconds"`
	CPUSeconds   float64         `json:"cpuSeconds"`
	MaxRSSBytes  int64           `json:"maxRssBytes"`
	Results      json.RawMessage `json:"results,omitempty"` // object with the algorithm's own metrics
}

// Failure describes why a job failed.
type Failure struct {
	Code     FailureCode `json:"code"`
	Message  string      `json:"message"` // a sentence for the user
	ExitCode *int        `json:"exitCode,omitempty"`
	Signal   string      `json:"signal,omitempty"`
	LogTail  string      `json:"logTail,omitempty"`
}

// FailureCode is a kind of failure.
type FailureCode string

// The kinds of failures.
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
	FailedNoResult    FailureCode = "NO_RESULT"     // the program exited successfully without a result
	FailedInvalid     FailureCode = "INPUT_INVALID" // a file made by another job is invalid
)

// Counts is the number of subjobs of a batch with each status.
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
