package sortid

import (
	"fmt"
	"testing"
	"time"

	"molrun/app/test/must"
)

// TestIDsRiseEvenIfTheClockGoesBack continues from IDs whose last bytes are at their
// maximum.
func TestIDsRiseEvenIfTheClockGoesBack(t *testing.T) {
	t.Parallel()
	for last, want := range map[string]string{
		"01M7Y8K3GV0000000000000000": "01M7Y8K3GV0000000000000001",
		"01M7Y8K3GV000000000000007Z": "01M7Y8K3GV0000000000000080",
		"01M7Y8K3GVZZZZZZZZZZZZZZZZ": "01M7Y8K3GW0000000000000000",
	} {
		floor, err := Parse(last)
		must.OK(t, err)
		source := Source{last: floor}
		must.Equal(t, fmt.Sprintf("after %s comes", last), source.Next(floor.Time().Add(-time.Hour)), want)
	}
}

// TestSourcesGiveDifferentIDs starts a job and an upload after a restart, while the clock
// is behind.
func TestSourcesGiveDifferentIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, last := range []string{"01M7Y8K3GV0000000000000000", "01M7Y8K3GVZZZZZZZZZZZZZZZZ"} {
		floor, err := Parse(last)
		must.OK(t, err)
		for range 2 {
			source := NewSource(floor)
			for range 100 {
				id := source.Next(floor.Time().Add(-time.Hour))
				if seen[id] || id <= last {
					t.Fatalf("%s after %s", id, last)
				}
				seen[id] = true
			}
		}
	}
}

func TestIDTellsItsTime(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_795_370_000_123)
	id, err := Parse(NewSource(ID{}).Next(now))
	if err != nil || !id.Time().Equal(now) || !First(now).Time().Equal(now) {
		t.Errorf("%s is of %v, its millisecond begins with %s; want %v, %v", id, id.Time(), First(now), now, err)
	}
}

func TestOnlyTextsOfIDsAreParsed(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ": true, "80000000000000000000000000": false,
		"0000000000000000000000000": false, "000000000000000000000000000": false,
		"0000000000000000000000000I": false, "0000000000000000000000000a": false,
	} {
		if id, err := Parse(text); (err == nil) != ok || ok && id.String() != text {
			t.Errorf("%s: %s, %v", text, id, err)
		}
	}
}
