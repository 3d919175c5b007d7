package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app/base/unit"
)

// Backup configures the scheduled backups.
type Backup struct {
	To    string        `toml:"to"`    // directory that molrun backup has already used; "" disables backups
	Every unit.Duration `toml:"every"` // interval between backups
	Keep  Keep          `toml:"keep"`  // backups to keep; "" keeps all
	Try   unit.Duration `toml:"try"`   // interval of test restores; 0 means never
}

// leastBackupEvery is the minimum interval between backups.
const leastBackupEvery = 10 * time.Minute

func (c *Config) setBackupDefaults() {
	c.Backup.Every = unit.Duration(24 * time.Hour)
	c.Backup.Keep = Keep{Days: 7, Weeks: 4, Months: 6}
	c.Backup.Try = unit.Duration(7 * 24 * time.Hour)
}

// backupChecks returns the checks of the settings in this file.
func (c *Config) backupChecks() []settingCheck {
	b := c.Backup
	return []settingCheck{
		{b.To != "" && !filepath.IsAbs(b.To), fmt.Sprintf("backup.to: %q is not an absolute path; give one, preferably on another disk", b.To)},
		{time.Duration(b.Every) < leastBackupEvery, "backup.every: use at least 10m"},
		{b.Try != 0 && b.Try < b.Every, "backup.try: use at least backup.every, or 0 for never"},
	}
}

// Keep is a rule for which backups to keep: the last one in each of the latest n hours,
// days, weeks, months and years that have any. The zero value keeps all.
type Keep struct{ Hours, Days, Weeks, Months, Years int }

// UnmarshalText parses a rule such as 7d,4w,6m.
func (k *Keep) UnmarshalText(text []byte) error {
	*k = Keep{}
	for _, part := range commaList(text) {
		count := map[byte]*int{'h': &k.Hours, 'd': &k.Days, 'w': &k.Weeks, 'm': &k.Months, 'y': &k.Years}[part[len(part)-1]]
		n, err := strconv.Atoi(part[:len(part)-1])
		if count == nil || err != nil || n < 1 || n > 10_000 {
			return fmt.Errorf("invalid retention rule for backups %q; give the numbers to keep, such as 7d,4w,6m for 7 days, 4 weeks and 6 months", text)
		}
		*count = n
	}
	return nil
}

// String returns the rule in the form that UnmarshalText parses.
func (k Keep) String() string {
	var parts []string
	for _, p := range []struct {
		count int
		of    string
	}{{k.Hours, "h"}, {k.Days, "d"}, {k.Weeks, "w"}, {k.Months, "m"}, {k.Years, "y"}} {
		if p.count > 0 {
			parts = append(parts, strconv.Itoa(p.count)+p.of)
		}
	}
	return strings.Join(parts, ",")
}

// MarshalText implements encoding.TextMarshaler.
func (k Keep) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Chosen reports which of these times, in any order, the rule keeps. Among equal times
// the last one counts as the newest.
func (k Keep) Chosen(moments []time.Time) []bool {
	chosen := make([]bool, len(moments))
	order := make([]int, len(moments))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(moments[b].Compare(moments[a]), b-a) })
	for _, rule := range []struct {
		count  int
		period func(time.Time) string
	}{
		{k.Hours, func(t time.Time) string { return t.Format("2006010215") }},
		{k.Days, func(t time.Time) string { return t.Format("20060102") }},
		{k.Weeks, func(t time.Time) string { year, week := t.ISOWeek(); return fmt.Sprint(year, week) }},
		{k.Months, func(t time.Time) string { return t.Format("200601") }},
		{k.Years, func(t time.Time) string { return t.Format("2006") }},
	} {
		last := ""
		for _, i := range order {
			period := rule.period(moments[i].UTC())
			if rule.count == 0 {
				break
			}
			if period != last {
				chosen[i], last = true, period
				rule.count--
			}
		}
	}
	return chosen
}
