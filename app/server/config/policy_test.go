package config_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"molrun/app/job/quota"
	"molrun/app/job/retention"
	"molrun/app/server/config"
	"molrun/app/test/must"
)

func loadText(t *testing.T, text string, environ ...string) (config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	must.Write(t, file, text)
	c, err := config.Load(file, false, environ)
	if err != nil {
		return c, err
	}
	return c, c.Check()
}

// policy holds the quota and the retention rules of an organization.
type policy struct {
	Quota quota.Quota
	Rules retention.Rules
}

func policyOf(c config.Config, organization string) policy {
	return policy{c.QuotaOf(organization, ""), c.RulesOf(organization)}
}

func TestOrganizationsOverrideOnlyWhatTheySet(t *testing.T) {
	c, err := loadText(t, `
[quota]
storage = "1TiB"
queued = 50
[retention]
completed = "90d"
failed = "30d"
keep_last = 3
[organizations."big lab"]
quota = { storage = "0" }
retention = { completed = "365d", keep_last_of = "organization" }
`)
	must.OK(t, err)
	common := policy{
		Quota: quota.Quota{Bytes: 1 << 40, Queued: 50},
		Rules: retention.Rules{Completed: 90 * 24 * time.Hour, Failed: 30 * 24 * time.Hour, KeepLast: 3, KeepPerUser: true},
	}
	must.Equal(t, "others", policyOf(c, "lab"), common)
	common.Quota.Bytes, common.Rules.Completed, common.Rules.KeepPerUser = 0, 365*24*time.Hour, false
	must.Equal(t, "the exception", policyOf(c, "big lab"), common)
	must.Equal(t, "the default", policyOf(config.Config{}, "lab"), policy{})
}

func TestUsersOverrideTheirOrganization(t *testing.T) {
	c, err := loadText(t, `
[quota]
cpus = 100
[user_quota]
storage = "1TiB"
cpus = 4
gpus = 1
[organizations.lab]
user_quota = { cpus = 8 }
[organizations.lab.users."ann@lab.example"]
quota = { queued = 5, gpus = 0 }
`)
	must.OK(t, err)
	for _, tt := range []struct {
		organization, user string
		want               quota.Quota
	}{
		{"firm", "", quota.Quota{CPUs: 100}},
		{"firm", "ann@lab.example", quota.Quota{Bytes: 1 << 40, CPUs: 4, GPUs: 1}},
		{"lab", "", quota.Quota{CPUs: 100}},
		{"lab", "bob@lab.example", quota.Quota{Bytes: 1 << 40, CPUs: 8, GPUs: 1}},
		{"lab", "ann@lab.example", quota.Quota{Bytes: 1 << 40, Queued: 5, CPUs: 8}},
	} {
		must.Equal(t, tt.organization+" "+tt.user, c.QuotaOf(tt.organization, tt.user), tt.want)
	}
}

func TestImpossibleQuotasAndRulesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"[quota]\nqueued = -1":                                                 "quota.queued",
		"[quota]\ngpus = -1":                                                   "quota.gpus",
		"[user_quota]\ncpus = -1":                                              "user_quota.cpus",
		"[organizations.lab]\nuser_quota = { cpus = -1 }":                      `organizations."lab".user_quota.cpus`,
		"[organizations.lab.users.\"a@b.c\"]\nquota = { cpus = -1 }":           `organizations."lab".users."a@b.c".quota.cpus`,
		"[organizations.lab.users.\"A@b.c\"]\nquota = { cpus = 1 }":            `users."A@b.c": must be an e-mail address in lower case`,
		"[organizations.lab.users.\"a@b.c\"]\nretention = { failed = \"1d\" }": "retention",
		"[retention]\nuploads = \"1h\"\n[links]\nupload = \"24h\"":             "retention.uploads: must be at least links.upload",
		"[retention]\ncompleted = \"-1h\"":                                     "retention.completed",
		"[retention]\nkeep_last = 1000000":                                     "retention.keep_last",
		"[retention]\nkeep_last_of = \"team\"":                                 "retention.keep_last_of",
		"[organizations.lab]\nretention = { keep_last = -1 }":                  `organizations."lab".retention.keep_last`,
		"[organizations.lab]\nquota = { stroage = \"1GiB\" }":                  "stroage",
		"[organizations.\"a/b\"]\nquota = { queued = 1 }":                      `organizations."a/b"`,
		"[organizations.lab.retention]\nfailed = \"soon\"":                     "soon",
		"[disk]\nreserve = \"much\"":                                           "much",
		"[stop]\nrequests = \"0s\"":                                            "stop.requests",
	} {
		must.Fail(t, fmt.Sprintf("%q", text), must.Error2(loadText(t, text)), want)
	}
}
