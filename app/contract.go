package app

// TEMPORARY: signatures of the use cases while their files are written.

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// Submission asks for one job. Settings and Body are the JSON as sent.
type Submission struct {
	Name       string
	Type       string
	Version    string // "" takes the algorithm's default
	Settings   *Value // an object
	Priority   int
	MaxRuntime int64  // seconds; 0 takes the algorithm's limit
	Body       *Value // the whole body: its canonical form is the hash as sent
}

// BatchSubmission asks for a batch.
type BatchSubmission struct {
	Name       string
	Type       string
	Version    string
	Rows       []*Value // settings, one object each
	RowNames   []string // nil: <batchName>-1 …
	Priority   int
	MaxRuntime int64
	Body       *Value
}

// Record is a job's JSON as clients see it now (progress included).
type Record = json.RawMessage

// Validation is the answer to Validate.
type Validation struct {
	Valid      bool
	Normalized json.RawMessage
	Detail     []FieldError
}

func (s *Service) Submit(ctx context.Context, by Caller, sub Submission) (rec Record, created bool, err error) {
	panic("pending")
}

func (s *Service) SubmitBatch(ctx context.Context, by Caller, sub BatchSubmission) (rec Record, created bool, err error) {
	panic("pending")
}

func (s *Service) Validate(ctx context.Context, by Caller, sub Submission) (*Validation, error) {
	panic("pending")
}

// JobQuery selects and pages jobs; web fills it from the query string.
type JobQuery struct {
	Name, Batch, Email, Algorithm string
	Status                        Status
	WholeOrganization             bool
	Subjobs                       bool // parents carry up to 1,000 of their rows
	Limit                         int
	StartKey                      string
}

// Listing is a page of records and the cursor of the next, "" on the last.
type Listing struct {
	Records  []json.RawMessage
	StartKey string
}

func (s *Service) Jobs(ctx context.Context, by Caller, q JobQuery) (*Listing, error) {
	panic("pending")
}

// Job gives the record; with wait > 0 once its state changes or wait is over.
func (s *Service) Job(ctx context.Context, by Caller, name string, wait time.Duration) (Record, error) {
	panic("pending")
}

// Log opens a part of an attempt's log; attempt 0 is the latest. Size is that of the whole log. limit < 0: to the end.
type Log struct {
	io.ReadCloser
	Size   int64 // of the whole log
	Length int64 // of this part
}

func (s *Service) Log(ctx context.Context, by Caller, name string, attempt int, offset, limit int64) (*Log, error) {
	panic("pending")
}

// ResultFiles lists a completed job's files.
func (s *Service) ResultFiles(ctx context.Context, by Caller, name string) ([]ManifestFile, error) {
	panic("pending")
}

func (s *Service) Cancel(ctx context.Context, by Caller, name string) (Record, error) {
	panic("pending")
}

func (s *Service) Retry(ctx context.Context, by Caller, name string) (Record, error) {
	panic("pending")
}
func (s *Service) Delete(ctx context.Context, by Caller, name string) error { panic("pending") }

// ResultLink is the answer to Result.
type ResultLink struct {
	URL       string
	FileName  string
	Size      int64
	ExpiresAt Time
}

// Result links to one file of a completed job, or (file "") to its archive.
func (s *Service) Result(ctx context.Context, by Caller, base, name, file string, partial bool) (*ResultLink, error) {
	panic("pending")
}

// UploadGrant is a new upload with its links.
type UploadGrant struct {
	Upload                 *Upload
	UploadURL, DownloadURL string
	ExpiresAt              Time
}

func (s *Service) CreateUpload(ctx context.Context, by Caller, base, folder, filename string) (*UploadGrant, error) {
	panic("pending")
}

// CompleteUpload confirms; size nil means not given.
func (s *Service) CompleteUpload(ctx context.Context, by Caller, id string, size *int64) (*Upload, error) {
	panic("pending")
}

type FileQuery struct {
	Folder            string
	WholeOrganization bool
	Limit             int
	StartKey          string
}
type FileListing struct {
	Uploads  []*Upload
	StartKey string
}

func (s *Service) Files(ctx context.Context, by Caller, q FileQuery) (*FileListing, error) {
	panic("pending")
}
func (s *Service) DeleteFile(ctx context.Context, by Caller, id string) error { panic("pending") }

// For package blobs (signed URLs; there is no caller).

// Upload gives the record of an upload for its links.
func (s *Service) Upload(ctx context.Context, id UploadID) (*Upload, error) { panic("pending") }

// BeginUpload is asked before a body is read; it returns the generation to store it as.
func (s *Service) BeginUpload(ctx context.Context, id UploadID) (generation int, err error) {
	panic("pending")
}

// FinishUpload makes a stored generation current, or refuses it; the caller then removes it. Stale is the generation to unlink (0 none).
func (s *Service) FinishUpload(ctx context.Context, id UploadID, f StoredFile) (stale int, err error) {
	panic("pending")
}

// ArchiveFolders gives the folders of the archive of a job or batch; partial: only the completed rows.
func (s *Service) ArchiveFolders(ctx context.Context, id JobID, partial bool) ([]Folder, error) {
	panic("pending")
}

// Algorithms and Algorithm: the catalogue (JSON-ready).
func (s *Service) Algorithms(by Caller) []AlgorithmView { panic("pending") }

func (s *Service) Algorithm(by Caller, typ, version string) (*AlgorithmView, error) { panic("pending") }

// Operator's use cases (control socket).

type KeyRequest struct {
	Organization, Email string
	Role                Role
	Expires             time.Duration // 0 never
}

func (s *Service) Authenticate(ctx context.Context, key string) (Caller, error) { panic("pending") }
func (s *Service) CreateKey(ctx context.Context, r KeyRequest) (key string, rec *APIKey, err error) {
	panic("pending")
}
func (s *Service) Keys(ctx context.Context) ([]*APIKey, error) { panic("pending") }
func (s *Service) DisableKey(ctx context.Context, id string, disabled bool) (*APIKey, error) {
	panic("pending")
}
func (s *Service) DeleteKey(ctx context.Context, id string) error { panic("pending") }

// The runner's use cases.

// ActiveJobs gives the claimed jobs, oldest first.
func (s *Service) ActiveJobs(ctx context.Context) ([]*Job, error) { panic("pending") }

// Queue visits the waiting jobs (see Tx.Queue).
func (s *Service) Queue(ctx context.Context, executor string, visit func(Waiting) Visit) error {
	panic("pending")
}

// Claim takes a waiting job from the queue for its next attempt (Attempts+1, new Token, GPUs kept). NotFound where it waits no longer.
func (s *Service) Claim(ctx context.Context, id JobID, gpus []string) (*Job, error) { panic("pending") }

// SetHandle stores where the attempt runs.
func (s *Service) SetHandle(ctx context.Context, id JobID, attempt int, h Handle) error {
	panic("pending")
}

// Started makes the job RUNNING; repeated calls are harmless.
func (s *Service) Started(ctx context.Context, id JobID, attempt int, at time.Time) error {
	panic("pending")
}

// Ending is how an attempt ended, as the runner collected it.
type Ending struct {
	Outcome     *Outcome        // nil: lost
	Lost        string          // why it is lost
	Failure     *Failure        // set when it failed
	Results     json.RawMessage // metrics of the program
	ResultBytes int64           // of a completed job
}

// Finished settles an attempt: COMPLETED, FAILED, or QUEUED again when it was lost and attempts remain. Repeated calls are harmless.
func (s *Service) Finished(ctx context.Context, id JobID, attempt int, e Ending) error {
	panic("pending")
}

// FinalRecord gives the record that Finished would store for a completed job, for job.json.
func (s *Service) FinalRecord(j *Job, e Ending) (Record, error) { panic("pending") }

// Impossible fails a waiting job that can never start here.
func (s *Service) Impossible(ctx context.Context, id JobID, message string) error { panic("pending") }

// Observe tells what is seen of jobs and not stored: progress of running ones, why queued ones wait. nil forgets.
func (s *Service) ObserveProgress(id JobID, p *Progress)  { panic("pending") }
func (s *Service) ObserveReason(reasons map[JobID]string) // replaces all reasons { panic("pending") } { panic("pending") }

// AlgorithmOf gives the definition that a job was validated against.
func (s *Service) AlgorithmOf(ctx context.Context, j *Job) (*Algorithm, error) { panic("pending") }

// SourcePath gives where an input's bytes lie.
func (s *Service) SourcePath(src Source) (string, error) { panic("pending") }
