// Package usage reports usage: jobs, time and bytes, by user, type, day or organization.
package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/apikey"
	"molrun/app/job/quota"
)

// By is how the rows of a report are grouped.
type By string

// The kinds of reports. ByOrganization is for the operator.
const (
	ByUser         By = "user"
	ByType         By = "type"
	ByDay          By = "day"
	ByOrganization By = "organization"
)

const (
	day = 24 * time.Hour
	// DefaultDays and MaxDays are the default and maximum number of days in a report.
	DefaultDays = 30
	MaxDays     = 400
)

// Query is a request for a report on all days, in UTC, that overlap the time from Since
// to before Until. A zero Until means the end of today, a zero Since 30 days before
// Until.
type Query struct {
	By           By
	Organization string // for the operator's reports; "" means all
	Since, Until time.Time
	Faults       []fault.Field // found during decoding
}

// Report is a usage report. Since and Until are days such as 2026-11-20, both inclusive.
type Report struct {
	By    By     `json:"by"`
	Since string `json:"since"`
	Until string `json:"until"`
	Rows  []Row  `json:"rows"`
	Total Row    `json:"total"`
}

// Row is the usage of one user, type, day or organization. Times are in seconds.
type Row struct {
	Organization string `json:"organization,omitempty"`
	User         string `json:"user,omitempty"`
	Type         string `json:"type,omitempty"` // "" for uploads
	Day          string `json:"day,omitempty"`

	Completed        int64   `json:"completed"`
	Failed           int64   `json:"failed"`
	Attempts         int64   `json:"attempts"`
	RunSeconds       float64 `json:"runSeconds"`
	CPUSeconds       float64 `json:"cpuSeconds"`       // measured
	CPUSecondsBooked float64 `json:"cpuSecondsBooked"` // run time × CPUs
	GPUSeconds       float64 `json:"gpuSeconds"`       // run time × GPUs
	ResultBytes      int64   `json:"resultBytes"`
	Uploads          int64   `json:"uploads"`
	UploadBytes      int64   `json:"uploadBytes"`
}

// Reports creates reports.
type Reports struct {
	store app.Store
	now   func() time.Time
}

// New returns the reports of a store.
func New(store app.Store, now func() time.Time) *Reports { return &Reports{store, now} }

// Of returns a report that the caller is allowed to see: members see their own usage,
// admins and read-only callers that of the organization, and the operator everything. It
// reads only the counters of the requested days, not the jobs.
func (r *Reports) Of(ctx context.Context, by app.Caller, q Query) (*Report, error) {
	from, until, faults := r.days(q)
	if err := fault.List(slices.Concat(q.Faults, faults)...); err != nil {
		return nil, err
	}
	organization, user := by.Organization, by.Email
	if by.Operator {
		organization = q.Organization
	}
	if by.Administers() || !by.Rights.Has(apikey.Submit) {
		user = ""
	}
	var all sums
	err := r.store.View(ctx, func(tx app.Tx) error {
		all = map[who]*quota.Spent{}
		for s, err := range tx.Spent(organization, from, until) {
			if err != nil {
				return err
			}
			if user == "" || s.Email == user {
				all.addSpent(q.By.rowOf(s, by.Operator), s.Spent)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	report := &Report{By: q.By, Since: from.Format(time.DateOnly), Until: until.Add(-day).Format(time.DateOnly)}
	report.Rows, report.Total = all.rows()
	return report, nil
}

// days returns the first day of a report and the day after the last.
func (r *Reports) days(q Query) (from, until time.Time, faults []fault.Field) {
	if until = r.now().UTC().Truncate(day).Add(day); !q.Until.IsZero() {
		until = q.Until.UTC().Add(day - 1).Truncate(day)
	}
	if from = until.Add(-DefaultDays * day); !q.Since.IsZero() {
		from = q.Since.UTC().Truncate(day)
	}
	switch days := until.Sub(from) / day; {
	case days <= 0:
		faults = append(faults, fault.Field{Loc: []any{"query", "since"}, Type: "value", Msg: "use a time before until; without until, one that is not in the future"})
	case days > MaxDays:
		faults = append(faults, fault.Field{Loc: []any{"query", "since"}, Type: "value", Msg: fmt.Sprintf("a report covers at most %d days, not %d; request shorter periods", MaxDays, days)})
	}
	return from, until, faults
}

// who identifies a row.
type who struct{ organization, user, typ, day string }

// rowOf returns the row to which a share belongs. Only the operator's rows include the
// organizations of users.
func (b By) rowOf(s quota.SpentShare, operator bool) (w who) {
	switch b {
	case ByUser:
		w.user = s.Email
		if operator {
			w.organization = s.Organization
		}
	case ByType:
		w.typ = s.Type
	case ByDay:
		w.day = s.Day.Format(time.DateOnly)
	case ByOrganization:
		w.organization = s.Organization
	}
	return w
}

// sums holds the counters of each row.
type sums map[who]*quota.Spent

func (s sums) addSpent(w who, c quota.Spent) {
	if s[w] == nil {
		s[w] = &quota.Spent{}
	}
	s[w].Add(c)
}

// rows returns the rows and their total. Days are in order; other rows are sorted by
// reserved CPU time, highest first.
func (s sums) rows() (rows []Row, total Row) {
	rows = make([]Row, 0, len(s))
	all := quota.Spent{}
	for w, c := range s {
		rows = append(rows, rowOf(w, *c))
		all.Add(*c)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(
			strings.Compare(a.Day, b.Day), cmp.Compare(b.CPUSecondsBooked, a.CPUSecondsBooked),
			strings.Compare(a.Organization, b.Organization), strings.Compare(a.User, b.User), strings.Compare(a.Type, b.Type),
		)
	})
	return rows, rowOf(who{}, all)
}

func rowOf(w who, c quota.Spent) Row {
	return Row{
		Organization: w.organization, User: w.user, Type: w.typ, Day: w.day,
		Completed: c.Completed, Failed: c.Failed, Attempts: c.Attempts,
		RunSeconds: seconds(c.RunMillis), CPUSeconds: seconds(c.CPUMillis),
		CPUSecondsBooked: seconds(c.BookedMillis), GPUSeconds: seconds(c.GPUMillis),
		ResultBytes: c.ResultBytes, Uploads: c.Uploads, UploadBytes: c.UploadBytes,
	}
}

func seconds(millis int64) float64 { return float64(millis) / 1000 }
