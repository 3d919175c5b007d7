package client

import "molrun/app/base/fault"

// Estimate is the response of POST /estimate. Unknown values are 0.
type Estimate struct {
	Possible   bool          `json:"possible"`
	Detail     []fault.Field `json:"detail"`
	Jobs       int           `json:"jobs"`
	Slots      []Slot        `json:"slots"`
	Inputs     []Input       `json:"inputs"` // without duplicates
	Queue      *Queue        `json:"queue"`
	RunSeconds int64         `json:"runSeconds"`
	RunBasis   string        `json:"runBasis"`
	EndSeconds int64         `json:"endSeconds"`
	Notes      []fault.Field `json:"notes"`
}

// Slot is the resource requirement of each job in a group.
type Slot struct {
	Executor string `json:"executor"`
	Amounts
	Jobs int `json:"jobs"`
}

// Amounts holds the resources of jobs or of an executor.
type Amounts struct {
	CPUs   int   `json:"cpus"`
	Memory int64 `json:"memoryBytes"`
	GPUs   int   `json:"gpus"`
}

// Table is the response of GET /jobs/{jobName}/table, or a page of it.
type Table struct {
	Batch    string         `json:"batch"`
	Statuses map[string]int `json:"statuses"`
	Sort     string         `json:"sort"`
	Order    string         `json:"order"`
	Settings []TableColumn  `json:"settings"`
	Metrics  []TableColumn  `json:"metrics"`
	Rows     []TableRow     `json:"rows"`
	StartKey string         `json:"startKey,omitempty"`
}

// TableColumn is a setting or metric of a table.
type TableColumn struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Unit   string `json:"unit,omitempty"`
	Better string `json:"better,omitempty"`
	Digits *int   `json:"digits,omitempty"`

	ErrorOf string    `json:"errorOf,omitempty"` // metric of which this is the standard error
	Reading []Reading `json:"reading,omitempty"` // interpretations of values, lowest first
}

// Reading is the interpretation of a metric's values from From on. A nil From means all
// values below the next reading.
type Reading struct {
	From  *float64 `json:"from,omitempty"`
	Words string   `json:"words"`
}

// TableRow is a job of a table.
type TableRow struct {
	Row         int            `json:"row"`
	Name        string         `json:"jobName"`
	Source      string         `json:"source,omitempty"`
	Status      string         `json:"status"`
	FailureCode string         `json:"failureCode,omitempty"`
	Warnings    []string       `json:"warnings,omitempty"`
	Settings    map[string]any `json:"settings"`
	Metrics     map[string]any `json:"metrics"`
}

// Session is the response of GET /session: the user of the client's API key.
type Session struct {
	Organization string   `json:"organization"`
	Email        string   `json:"email"`
	Role         string   `json:"role"`
	Rights       []string `json:"rights"`
	Version      string   `json:"version"`
	Key          struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		ExpiresAt string `json:"expiresAt"`
	} `json:"key"`
}

// Share is a link for people without an API key. URL is set only when the link is
// created.
type Share struct {
	ID         string `json:"id"`
	URL        string `json:"url"`
	Job        string `json:"jobName"`
	ExpiresAt  string `json:"expiresAt"`
	LastUsedAt string `json:"lastUsedAt"`
}

// Status is the response of GET /admin/status.
type Status struct {
	Drained   bool             `json:"drained"`
	Executors []ExecutorStatus `json:"executors"`
}

// FaultyGPU is a GPU that jobs can't use.
type FaultyGPU struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// ExecutorStatus is the utilization of an executor.
type ExecutorStatus struct {
	Name     string      `json:"name"`
	State    string      `json:"state"`
	Capacity *Amounts    `json:"capacity"`
	Used     Amounts     `json:"used"`
	Faulty   []FaultyGPU `json:"faultyGpus"`
	Running  int         `json:"running"`
	Queued   int         `json:"queued"`
	Others   struct {    // jobs of other organizations
		Running int `json:"running"`
		Queued  int `json:"queued"`
	} `json:"others"`
}
