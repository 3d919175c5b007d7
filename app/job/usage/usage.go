// Package usage reports who has used how much: jobs, time and bytes, by user, type or day.
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

// By is what the rows of a report stand for.
type By string

// The kinds of reports. By organization is for the operator.
const (
	ByUser         By = "user"
	ByType         By = "type"
	ByDay          By = "day"
	ByOrganization By = "organization"
)

const (
	day = 24 * time.Hour
	// DefaultDays and MaxDays are how many days a report covers.
	DefaultDays = 30
	MaxDays     = 400
)

// Query asks for a report on the days, in UTC, that have a part from Since on until
// before Until. A zero Until is the end of today, a zero Since 30 days before Until.
type Query struct {
	By           By
	Organization string // of the operator's reports: "" for all
	Since, Until time.Time
	Faults       []fault.Field // found while decoding
}

// Report is who has used how much. Since and Until are days such as 2026-11-20; both
// are in it.
type Report struct {
	By    By     `json:"by"`
	Since string `json:"since"`
	Until string `json:"until"`
	Rows  []Row  `json:"rows"`
	Total Row    `json:"total"`
}

// Row is what one user, type, day or organization has used. Times are in seconds.
type Row struct {
	Organization string `json:"organization,omitempty"`
	User         string `json:"user,omitempty"`
	Type         string `json:"type,omitempty"` // uploads have none
	Day          string `json:"day,omitempty"`

	Completed        int64   `json:"completed"`
	Failed           int64   `json:"failed"`
	Attempts         int64   `json:"attempts"`
	RunSeconds       float64 `json:"runSeconds"`
	CPUSeconds       float64 `json:"cpuSeconds"`       // measured
	CPUSecondsBooked float64 `json:"cpuSecondsBooked"` // run time by CPUs
	GPUSeconds       float64 `json:"gpuSeconds"`       // run time by GPUs
	ResultBytes      int64   `json:"resultBytes"`
	Uploads          int64   `json:"uploads"`
	UploadBytes      int64   `json:"uploadBytes"`
}

// Reports makes reports.
type Reports struct {
	store app.Store
	now   func() time.Time
}

// New returns the reports of a store.
func New(store app.Store, now func() time.Time) *Reports { return &Reports{store, now} }

// Of returns a report of what the caller may know: a member of itself, an admin of the
// organization, as who may only read, the operator of all. It reads the counters of the days asked for, and no
// job.
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

// days returns the first day of a report and the one behind the last.
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

// rowOf returns the row to which a share belongs. Only the operator's rows name the
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

// sums are the counters of each row.
type sums map[who]*quota.Spent

func (s sums) addSpent(w who, c quota.Spent) {
	if s[w] == nil {
		s[w] = &quota.Spent{}
	}
	s[w].Add(c)
}

// rows returns the rows, days in order and else those first that booked most, and their
// sum.
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
