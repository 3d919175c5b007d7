package algorithm

import (
	"testing"

	"molrun/app/test/must"
)

func TestRetryOfAnAlgorithm(t *testing.T) {
	must.Equal(t, "without [retry]", parseOK(t, head).Retry, nil)
	a := parseOK(t, head+"[retry]\non = [\"OUT_OF_MEMORY\"]\n")
	must.Equal(t, "defaults", a.Retry, &Retry{On: []string{"OUT_OF_MEMORY"}, Factor: 2, Attempts: 3})
	a = parseOK(t, head+"[retry]\non = [\"OUT_OF_MEMORY\"]\nmemory = 1.5\nmost = \"64GiB\"\nattempts = 5\n")
	must.Equal(t, "all keys", a.Retry, &Retry{On: []string{"OUT_OF_MEMORY"}, Factor: 1.5, MostBytes: 64 << 30, Attempts: 5})
	must.Equal(t, "as clients see it", a.View(nil, nil).Retry, a.Retry)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"without a code":     {"[retry]\nmemory = 2\n", []string{"5: on is missing in [retry]"}},
		"without codes":      {"[retry]\non = []\n", []string{"6: on in [retry] names no code"}},
		"another code":       {"[retry]\non = [\"TIMEOUT\"]\n", []string{`6: each of on must be "OUT_OF_MEMORY"`}},
		"no growth":          {"[retry]\non = [\"OUT_OF_MEMORY\"]\nmemory = 1\n", []string{"7: memory must be between 1.1 and 16, got 1"}},
		"too often":          {"[retry]\non = [\"OUT_OF_MEMORY\"]\nattempts = 11\n", []string{"7: attempts must be between 1 and 10, got 11"}},
		"no size":            {"[retry]\non = [\"OUT_OF_MEMORY\"]\nmost = \"64G\"\n", []string{`7: most "64G" in [retry] is not a size`}},
		"less than reserved": {"[retry]\non = [\"OUT_OF_MEMORY\"]\nmost = \"1GiB\"\n", []string{"7: most in [retry] must be more than memory under [resources]"}},
		"nothing reserved":   {"[retry]\non = [\"OUT_OF_MEMORY\"]\n[resources]\nmemory = 0\n", []string{"5: memory under [resources] is 0"}},
		"unknown key":        {"[retry]\non = [\"OUT_OF_MEMORY\"]\nfactor = 2\n", []string{`7: unknown key "factor" in [retry]`}},
		"unknown lack":       {"[[failures]]\npattern = 'x'\nmessage = \"y\"\nlacks = \"disk\"\n", []string{`8: lacks must be "memory" or "gpu_memory"`}},
	} {
		t.Run(name, func(t *testing.T) { checkMistakes(t, head+tt.text, tt.want...) })
	}
}

func TestMemoryGrowsToTheMaximum(t *testing.T) {
	const gib = 1 << 30
	for _, tt := range []struct {
		Retry
		had, want int64
	}{
		{Retry{Factor: 2}, gib, 2 * gib},
		{Retry{Factor: 1.5}, 3 * gib, 9 * gib / 2},
		{Retry{Factor: 2, MostBytes: 3 * gib}, 2 * gib, 3 * gib},
		{Retry{Factor: 2, MostBytes: 3 * gib}, 3 * gib, 3 * gib},
		{Retry{Factor: 2, MostBytes: 3 * gib}, 4 * gib, 4 * gib}, // already had more
		{Retry{Factor: 16}, maxMemory / 2, maxMemory},
	} {
		if got := tt.More(tt.had); got != tt.want {
			t.Errorf("%+v, %d: %d, want %d", tt.Retry, tt.had, got, tt.want)
		}
	}
}
