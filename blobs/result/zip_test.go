package result

import (
	"archive/zip"
	"bytes"
	"fmt"
	"testing"
	"time"

	"molrun/app/test/must"
)

// TestZipRecordsHaveTheirLengths checks the lengths that layOut relies on.
func TestZipRecordsHaveTheirLengths(t *testing.T) {
	sizes := []int64{0, 1, maxUint32 - 1, maxUint32, maxUint32 + 1, 1 << 40}
	for _, size := range sizes {
		for _, offset := range sizes {
			for _, changed := range []int64{0, minTime, maxTime, maxTime + 1} {
				e := &zipEntry{name: "a/b", size: size, offset: offset, changed: changed}
				must.Equal(t, fmt.Sprintf("local header of %+v", e), int64(len(appendLocal(nil, e))), e.localLen())
				must.Equal(t, fmt.Sprintf("central record of %+v", e), int64(len(appendCentral(nil, e))), e.centralLen())
			}
			for _, n := range []int64{0, maxUint16 - 1, maxUint16, 1 << 20} {
				z := zipEnd{entries: n, start: size, size: offset}
				must.Equal(t, fmt.Sprintf("end of %+v", z), int64(len(z.appendTo(nil))), z.length())
			}
		}
	}
}

// TestZipRecordsHaveModificationTimes reads the records with archive/zip. Times that a
// program can set but a record cannot hold are omitted.
func TestZipRecordsHaveModificationTimes(t *testing.T) {
	never := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	for changed, want := range map[int64]time.Time{
		0: never, -1: never, minTime - 1: never, maxTime + 1: never, 1 << 60: never,
		minTime: never, minTime + 1: never.Add(time.Second), maxTime: time.Unix(maxTime, 0),
		1764000001: time.Date(2025, 11, 24, 16, 0, 1, 0, time.UTC),
	} {
		e := &zipEntry{name: "a", changed: changed}
		text := appendLocal(nil, e)
		end := zipEnd{entries: 1, start: int64(len(text)), size: e.centralLen()}
		text = end.appendTo(appendCentral(text, e))
		r, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatalf("%d: %v", changed, err)
		}
		if f := r.File[0]; !f.Modified.Equal(want) {
			t.Errorf("%d: %v, want %v", changed, f.Modified, want)
		}
		must.Equal(t, fmt.Sprintf("%d is timed", changed), e.timed(), len(r.File[0].Extra) == timeExtraSize)
	}
}
