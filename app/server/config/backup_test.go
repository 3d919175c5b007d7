package config_test

import (
	"testing"
	"time"

	"molrun/app/server/config"
	"molrun/app/test/must"
)

func TestBackupsAreKeptByRule(t *testing.T) {
	day := func(text string) time.Time {
		at, err := time.Parse("2006-01-02 15:04", text)
		must.OK(t, err)
		return at
	}
	// An x marks each kept time, in the order of the list.
	moments := []time.Time{
		day("2026-01-01 03:00"), day("2026-11-02 03:00"), day("2026-11-09 23:59"), day("2026-11-20 03:00"),
		day("2026-11-21 03:00"), day("2026-11-22 03:00"), day("2026-11-22 15:00"), day("2026-11-23 03:00"),
	}
	for rule, want := range map[string]string{
		"2d":          "......xx",
		"3d":          "....x.xx",
		"1h":          ".......x",
		"2w":          "......xx", // 2026-11-22 is a Sunday; the 23rd is in the next week
		"4w":          ".xx...xx",
		"2m":          "x......x",
		"2d,2m":       "x.....xx",
		"100y":        ".......x",
		"1d,3w,2m,1y": "x.x...xx",
	} {
		var k config.Keep
		must.OK(t, k.UnmarshalText([]byte(rule)))
		got := ""
		for _, stays := range k.Chosen(moments) {
			got += map[bool]string{true: "x", false: "."}[stays]
		}
		must.Equal(t, rule+" keeps", got, want)
		if k.String() != rule {
			t.Errorf("%s is written as %s", rule, k)
		}
	}
}

func TestSettingsOfBackups(t *testing.T) {
	c, err := loadText(t, "[backup]\nto = \"/mnt/backups\"\nevery = \"6h\"\nkeep = \"\"\ntry = \"0\"\n")
	must.OK(t, err)
	if c.Backup.Keep != (config.Keep{}) || time.Duration(c.Backup.Every) != 6*time.Hour || c.Backup.Try != 0 {
		t.Errorf("%+v", c.Backup)
	}
	for text, want := range map[string]string{
		`to = "backups"`: "backup.to",
		`every = "1m"`:   "backup.every",
		`try = "1h"`:     "backup.try",
		`keep = "7"`:     "7d,4w,6m",
		`keep = "0d"`:    "7d,4w,6m",
		`keep = "7x"`:    "7d,4w,6m",
		`keep = "-1d"`:   "7d,4w,6m",
	} {
		must.Fail(t, text, must.Error2(loadText(t, "[backup]\n"+text+"\n")), want)
	}
}
