package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/naming"
	"molrun/app/retention"
	"molrun/app/unit"
)

// Quota is what an organization may use.
type Quota struct {
	Storage unit.Bytes `toml:"storage"` // uploads and results; 0: no bound
	Queued  int        `toml:"queued"`  // jobs; 0: no bound
}

// Retention says what is deleted automatically.
type Retention struct {
	Completed  unit.Duration `toml:"completed"` // 0: never, as for the next two
	Failed     unit.Duration `toml:"failed"`
	Uploads    unit.Duration `toml:"uploads"`
	Total      unit.Bytes    `toml:"total"`     // 0: no bound
	KeepLast   int           `toml:"keep_last"` // 0: none
	KeepLastOf string        `toml:"keep_last_of"`
}

// Organization overrides the policies for one organization; nil is as for all.
type Organization struct {
	Quota struct {
		Storage *unit.Bytes `toml:"storage"`
		Queued  *int        `toml:"queued"`
	} `toml:"quota"`
	Retention struct {
		Completed  *unit.Duration `toml:"completed"`
		Failed     *unit.Duration `toml:"failed"`
		Uploads    *unit.Duration `toml:"uploads"`
		Total      *unit.Bytes    `toml:"total"`
		KeepLast   *int           `toml:"keep_last"`
		KeepLastOf *string        `toml:"keep_last_of"`
	} `toml:"retention"`
}

// sections returns the policies of one organization.
func (c *Config) sections(organization string) (Quota, Retention) {
	q, r, own := c.Quota, c.Retention, c.Organizations[organization]
	override(&q.Storage, own.Quota.Storage)
	override(&q.Queued, own.Quota.Queued)
	override(&r.Completed, own.Retention.Completed)
	override(&r.Failed, own.Retention.Failed)
	override(&r.Uploads, own.Retention.Uploads)
	override(&r.Total, own.Retention.Total)
	override(&r.KeepLast, own.Retention.KeepLast)
	override(&r.KeepLastOf, own.Retention.KeepLastOf)
	return q, r
}

func override[T any](value, own *T) {
	if own != nil {
		*value = *own
	}
}

// QuotaOf returns what an organization may use.
func (c *Config) QuotaOf(organization string) app.Quota {
	q, _ := c.sections(organization)
	return app.Quota{Bytes: int64(q.Storage), Queued: q.Queued}
}

// RulesOf returns the retention rules of an organization.
func (c *Config) RulesOf(organization string) retention.Rules {
	_, r := c.sections(organization)
	return retention.Rules{
		Completed:   time.Duration(r.Completed),
		Failed:      time.Duration(r.Failed),
		Uploads:     time.Duration(r.Uploads),
		Total:       int64(r.Total),
		KeepLast:    r.KeepLast,
		KeepPerUser: r.KeepLastOf == "user",
	}
}

// maxKeepLast bounds the memory of a retention pass.
const maxKeepLast = 100_000

// checkPolicies checks quotas and retention, for all and for each organization.
func (c *Config) checkPolicies() error {
	names := slices.Sorted(maps.Keys(c.Organizations))
	for _, name := range append([]string{""}, names...) {
		prefix := ""
		if name != "" {
			prefix = fmt.Sprintf("organizations.%q.", name)
			if msg := naming.Check(name); msg != "" {
				return fault.Errorf(fault.Invalid, "organizations.%q: %s", name, msg)
			}
		}
		q, r := c.sections(name)
		msg := cmp.Or(
			complaint(q.Queued < 0, "quota.queued: give 0 (no bound) or more"),
			complaint(r.Completed < 0, "retention.completed: give 0 (never) or a time such as 90d"),
			complaint(r.Failed < 0, "retention.failed: give 0 (never) or a time such as 30d"),
			complaint(r.Uploads < 0, "retention.uploads: give 0 (never) or a time such as 30d"),
			complaint(r.Uploads > 0 && r.Uploads < c.Links.Upload, "retention.uploads: give at least links.upload, the time that an upload may take"),
			complaint(r.KeepLast < 0 || r.KeepLast > maxKeepLast, fmt.Sprintf("retention.keep_last: give 0 to %d", maxKeepLast)),
			complaint(r.KeepLastOf != "user" && r.KeepLastOf != "organization", "retention.keep_last_of: use user or organization"),
		)
		if msg != "" {
			return fault.Errorf(fault.Invalid, "%s%s", prefix, msg)
		}
	}
	return nil
}

func complaint(bad bool, msg string) string {
	if bad {
		return msg
	}
	return ""
}
