package retention

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"molrun/app"
)

// ReportBy is how the rows of a storage report are grouped.
type ReportBy string

// The kinds of storage reports.
const (
	ByOrganization ReportBy = "organization"
	ByUser         ReportBy = "user"
	ByAlgorithm    ReportBy = "algorithm"
	ByAge          ReportBy = "age"
)

// UsageRow is a row of a storage report. Only the fields for its kind of report are set.
type UsageRow struct {
	Organization string `json:"organization,omitempty"`
	User         string `json:"user,omitempty"`
	Algorithm    string `json:"algorithm,omitempty"` // "" for uploads
	Age          string `json:"age,omitempty"`

	Jobs        int   `json:"jobs"`
	Queued      int   `json:"queued"`
	Files       int   `json:"files"`
	ResultBytes int64 `json:"resultBytes"`
	UploadBytes int64 `json:"uploadBytes"`
	QuotaBytes  int64 `json:"quotaBytes,omitempty"` // of an organization that has one

	class int // index of the age class, newest first
}

// Bytes returns the total size of results and uploads.
func (r *UsageRow) Bytes() int64 { return r.ResultBytes + r.UploadBytes }

func (r *UsageRow) addShare(s app.UsageShare) {
	r.Jobs, r.Queued, r.Files = r.Jobs+s.Jobs, r.Queued+s.Queued, r.Files+s.Files
	if s.Files != 0 {
		r.UploadBytes += s.Bytes
		return
	}
	r.ResultBytes += s.Bytes
}

// StorageReport is storage usage and the state of the disk.
type StorageReport struct {
	By   ReportBy   `json:"by"`
	Disk app.Disk   `json:"disk"`
	Rows []UsageRow `json:"rows"`
}

// Report returns the storage usage, largest row first or, by age, newest first.
// organization "" means all.
func (k *Keeper) Report(ctx context.Context, organization string, by ReportBy) (*StorageReport, error) {
	rows, err := k.usageRows(ctx, organization, by)
	if err != nil {
		return nil, err
	}
	disk, err := k.blobs.Disk()
	return &StorageReport{By: by, Disk: disk, Rows: rows}, err
}

func (k *Keeper) usageRows(ctx context.Context, organization string, by ReportBy) ([]UsageRow, error) {
	today := k.options.Now().UTC().Truncate(24 * time.Hour)
	var rows map[UsageRow]*UsageRow
	err := k.store.View(ctx, func(tx app.Tx) error {
		rows = map[UsageRow]*UsageRow{}
		for share, err := range tx.Usage() {
			if err != nil {
				return err
			}
			if organization != "" && share.Organization != organization {
				continue
			}
			of := rowOf(share, by, today)
			if rows[of] == nil {
				row := of
				rows[of] = &row
			}
			rows[of].addShare(share)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	report := make([]UsageRow, 0, len(rows))
	for _, row := range rows {
		if by == ByOrganization && k.options.Quota != nil {
			row.QuotaBytes = k.options.Quota(row.Organization, "").Bytes
		}
		report = append(report, *row)
	}
	slices.SortFunc(report, func(a, b UsageRow) int {
		return cmp.Or(
			cmp.Compare(a.class, b.class), cmp.Compare(b.Bytes(), a.Bytes()),
			strings.Compare(a.Organization, b.Organization), strings.Compare(a.User, b.User), strings.Compare(a.Algorithm, b.Algorithm),
		)
	})
	return report, nil
}

// rowOf returns the empty row to which a share belongs.
func rowOf(s app.UsageShare, by ReportBy, today time.Time) UsageRow {
	switch by {
	case ByUser:
		return UsageRow{Organization: s.Organization, User: s.Email}
	case ByAlgorithm:
		return UsageRow{Algorithm: s.Type}
	case ByAge:
		days := int(today.Sub(s.Day) / (24 * time.Hour))
		class := 0
		for class < len(ageClasses)-1 && days >= ageClasses[class].days {
			class++
		}
		return UsageRow{Age: ageClasses[class].name, class: class}
	}
	return UsageRow{Organization: s.Organization}
}

// ageClasses are the rows of a report by age: the days since a job ended or a file was
// uploaded.
var ageClasses = []struct {
	days int // exclusive maximum
	name string
}{
	{7, "under 7 days"},
	{30, "7 to 29 days"},
	{90, "30 to 89 days"},
	{365, "90 to 364 days"},
	{0, "365 days or more"},
}
