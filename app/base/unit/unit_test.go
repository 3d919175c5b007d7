package unit_test

import (
	"fmt"
	"testing"
	"time"

	"molrun/app/base/unit"
	"molrun/app/test/must"
)

func TestBytesAsText(t *testing.T) {
	for size, want := range map[unit.Bytes]string{0: "0 bytes", 1023: "1023 bytes", 1 << 10: "1.0 KiB", 3 << 29: "1.5 GiB", 1 << 62: "4.0 EiB"} {
		must.Equal(t, fmt.Sprintf("%d bytes", int64(size)), size.String(), want)
	}
}

func TestBytesFromText(t *testing.T) {
	for text, want := range map[string]unit.Bytes{"500": 500, "64KiB": 64 << 10, "1.5 GiB": 3 << 29, "2GB": 2e9, "0": 0} {
		var got unit.Bytes
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "much", "-1", "1XB", "9EiB", "NaN"} {
		var got unit.Bytes
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
}

func TestDurationFromText(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "30d": 720 * time.Hour, "0d": 0} {
		var got unit.Duration
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%q is %v, %v; want %v", text, time.Duration(got), err, want)
		}
	}
	for _, text := range []string{"", "soon", "d", "-1d", "36501d", "1.5d"} {
		var got unit.Duration
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v, want an error", text, time.Duration(got))
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 jobs", 1: "1 job", 2: "2 jobs"} {
		if got := unit.Count(n, "job"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
