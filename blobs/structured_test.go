package blobs

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func header(name string, lines ...string) http.Header { return http.Header{name: lines} }

func TestIntegerFieldsAreCounts(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "12": 12, " 12 ": 12, "12;a=b": 12, "999999999999999": 999999999999999} {
		if n, ok := integerField(header("Upload-Offset", text), "Upload-Offset"); !ok || n != want {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	}
	for _, lines := range [][]string{nil, {""}, {"-1"}, {"1.0"}, {"?1"}, {"1, 2"}, {"1", "2"}, {`"1"`}, {"1000000000000000"}, {"one"}} {
		if n, ok := integerField(header("Upload-Offset", lines...), "Upload-Offset"); ok {
			t.Errorf("%q: %d", lines, n)
		}
	}
}

func TestBooleanFields(t *testing.T) {
	for text, want := range map[string]bool{"?1": true, "?0": false, "?1;x": true} {
		if value, ok := booleanField(header("Upload-Complete", text), "Upload-Complete"); !ok || value != want {
			t.Errorf("%q: %v, %v", text, value, ok)
		}
		if made, ok := booleanField(header("Upload-Complete", formatBoolean(want)), "Upload-Complete"); !ok || made != want {
			t.Errorf("%v becomes %q", want, formatBoolean(want))
		}
	}
	for _, lines := range [][]string{nil, {""}, {"1"}, {"true"}, {"?2"}, {"?1", "?1"}, {"?1, ?0"}} {
		if value, ok := booleanField(header("Upload-Complete", lines...), "Upload-Complete"); ok {
			t.Errorf("%q: %v", lines, value)
		}
	}
}

func TestDigestFields(t *testing.T) {
	sum := bytes.Repeat([]byte{7}, 32)
	long := bytes.Repeat([]byte{8}, 64)
	got, err := digestField(header("Repr-Digest", "md5=:AAAA:, "+formatDigest("sha-256", sum), formatDigest("sha-512", long)), "Repr-Digest")
	if err != nil || len(got) != 2 || !bytes.Equal(got["sha-256"], sum) || !bytes.Equal(got["sha-512"], long) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := digestField(header("Repr-Digest", "md5=:AAAA:"), "Repr-Digest"); err != nil || len(got) != 0 {
		t.Errorf("of an unknown algorithm: %v, %v", got, err)
	}
	for _, bad := range []string{"sha-256", "sha-256=:AAAA:", "sha-256=AAAA", "sha-256=(:AAAA:)", "sha-256=?1", "=", "sha-512=" + strings.TrimPrefix(formatDigest("sha-256", sum), "sha-256=")} {
		if got, err := digestField(header("Repr-Digest", bad), "Repr-Digest"); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestContentRanges(t *testing.T) {
	for text, want := range map[string]byteRange{
		"bytes 0-9/20": {0, 9, 20}, "bytes 5-5/6": {5, 5, 6}, "BYTES 0-9/*": {0, 9, -1}, "bytes */20": {-1, -1, 20}, "bytes */*": {-1, -1, -1}, "bytes */0": {-1, -1, 0},
	} {
		if r, err := parseContentRange(text); err != nil || r != want {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
	for _, bad := range []string{"", "bytes", "bytes 0-9", "bytes=0-9/20", "bytes 0-20/20", "bytes 9-0/20", "bytes -1-9/20", "bytes 0-/20", "bytes  0-9/20", "bytes 0-9/20 ", "bytes 0-9999999999999999/20", "bytes 0-9/0x20", "bytes ٠-٩/٢٠"} {
		if r, err := parseContentRange(bad); err == nil {
			t.Errorf("%q: %+v", bad, r)
		}
	}
	must.Equal(t, "bytes of 3-9", (byteRange{3, 9, 20}).Size(), 7)
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-9/20")
	f.Add("bytes */*")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseContentRange(text)
		if err != nil {
			return
		}
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		again := "*/"
		if !r.IsQuery() {
			again = number(r.First) + "-" + number(r.Last) + "/"
			if r.Size() <= 0 || r.Total >= 0 && r.Last >= r.Total {
				t.Errorf("%q: %+v", text, r)
			}
		}
		if r.Total < 0 {
			again += "*"
		} else {
			again += number(r.Total)
		}
		if same, err := parseContentRange("bytes " + again); err != nil || same != r {
			t.Errorf("%q: %+v, again %+v, %v", text, r, same, err)
		}
	})
}

func FuzzStructuredFields(f *testing.F) {
	f.Add("12", "?1")
	f.Add("sha-256=:AAAA:", "12;a")
	f.Fuzz(func(t *testing.T, one, two string) {
		h := http.Header{"A": {one, two}, "B": {one}}
		if n, ok := integerField(h, "B"); ok && (n < 0 || n > 999999999999999) {
			t.Errorf("%q: %d", one, n)
		}
		if v, ok := booleanField(h, "B"); ok && !strings.Contains(one, formatBoolean(v)) {
			t.Errorf("%q: %v", one, v)
		}
		for _, name := range []string{"A", "B"} {
			got, err := digestField(h, name)
			for algorithm, sum := range got {
				if err != nil || len(sum) != digestLengths[algorithm] {
					t.Errorf("%q: %s=%x, %v", h[name], algorithm, sum, err)
				}
			}
		}
	})
}
