package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/unit"
	"molrun/app/job/quota"
	"molrun/app/job/retention"
)

// Quota limits what a user or an organization can use; 0 means no limit.
type Quota struct {
	Storage unit.Bytes `toml:"storage"` // uploads and results
	Queued  int        `toml:"queued"`  // number of queued jobs
	CPUs    int        `toml:"cpus"`    // CPUs of all running jobs
	GPUs    int        `toml:"gpus"`    // GPUs of all running jobs
}

// OwnQuota overrides a quota; nil means the general value.
type OwnQuota struct {
	Storage *unit.Bytes `toml:"storage"`
	Queued  *int        `toml:"queued"`
	CPUs    *int        `toml:"cpus"`
	GPUs    *int        `toml:"gpus"`
}

func (q *Quota) override(own OwnQuota) {
	override(&q.Storage, own.Storage)
	override(&q.Queued, own.Queued)
	override(&q.CPUs, own.CPUs)
	override(&q.GPUs, own.GPUs)
}

func (q Quota) complaint(section string) string {
	return cmp.Or(
		complaint(q.Queued < 0, section+".queued: must be at least 1, or 0 for no limit"),
		complaint(q.CPUs < 0, section+".cpus: must be at least 1, or 0 for no limit"),
		complaint(q.GPUs < 0, section+".gpus: must be at least 1, or 0 for no limit"),
	)
}

// User overrides the quota of one user.
type User struct {
	Quota OwnQuota `toml:"quota"`
}

// Retention configures automatic deletion.
type Retention struct {
	Completed  unit.Duration `toml:"completed"` // age at which to delete; 0 means never, as for the next two
	Failed     unit.Duration `toml:"failed"`
	Uploads    unit.Duration `toml:"uploads"`
	Total      unit.Bytes    `toml:"total"`     // 0 means no limit
	KeepLast   int           `toml:"keep_last"` // 0 means none
	KeepLastOf string        `toml:"keep_last_of"`
}

// Organization overrides the policies for one organization; nil means the general value.
type Organization struct {
	Quota     OwnQuota        `toml:"quota"`
	UserQuota OwnQuota        `toml:"user_quota"`
	Users     map[string]User `toml:"users"` // by e-mail address
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
	q.override(own.Quota)
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

// userQuota returns the quota of one user of an organization.
func (c *Config) userQuota(organization, user string) Quota {
	q, own := c.UserQuota, c.Organizations[organization]
	q.override(own.UserQuota)
	q.override(own.Users[user].Quota)
	return q
}

// QuotaOf returns the quota of a user or, with user "", of an organization.
func (c *Config) QuotaOf(organization, user string) quota.Quota {
	q, _ := c.sections(organization)
	if user != "" {
		q = c.userQuota(organization, user)
	}
	return quota.Quota{Bytes: int64(q.Storage), Queued: q.Queued, CPUs: q.CPUs, GPUs: q.GPUs}
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

// maxKeepLast limits the memory of a retention pass.
const maxKeepLast = 100_000

// checkPolicies checks quotas and retention, in general and for each organization.
func (c *Config) checkPolicies() error {
	names := slices.Sorted(maps.Keys(c.Organizations))
	for _, name := range append([]string{""}, names...) {
		prefix := ""
		if name != "" {
			prefix = fmt.Sprintf("organizations.%q.", name)
			if msg := naming.CheckName(name); msg != "" {
				return fault.Errorf(fault.Invalid, "organizations.%q: %s", name, msg)
			}
		}
		q, r := c.sections(name)
		msg := cmp.Or(
			q.complaint("quota"), c.userQuota(name, "").complaint("user_quota"), c.usersComplaint(name),
			complaint(r.Completed < 0, "retention.completed: must be 0 (never) or a time such as 90d"),
			complaint(r.Failed < 0, "retention.failed: must be 0 (never) or a time such as 30d"),
			complaint(r.Uploads < 0, "retention.uploads: must be 0 (never) or a time such as 30d"),
			complaint(r.Uploads > 0 && r.Uploads < c.Links.Upload, "retention.uploads: must be at least links.upload, the time allowed for an upload"),
			complaint(r.KeepLast < 0 || r.KeepLast > maxKeepLast, fmt.Sprintf("retention.keep_last: must be 0 to %d", maxKeepLast)),
			complaint(r.KeepLastOf != "user" && r.KeepLastOf != "organization", "retention.keep_last_of: use user or organization"),
		)
		if msg != "" {
			return fault.Errorf(fault.Invalid, "%s%s", prefix, msg)
		}
	}
	return nil
}

// usersComplaint checks the quotas of individual users.
func (c *Config) usersComplaint(organization string) string {
	users := c.Organizations[organization].Users
	for _, user := range slices.Sorted(maps.Keys(users)) {
		section := fmt.Sprintf("users.%q", user)
		msg := cmp.Or(
			complaint(user == "" || user != strings.ToLower(user), section+": must be an e-mail address in lower case"),
			c.userQuota(organization, user).complaint(section+".quota"),
		)
		if msg != "" {
			return msg
		}
	}
	return ""
}

func complaint(bad bool, msg string) string {
	if bad {
		return msg
	}
	return ""
}
