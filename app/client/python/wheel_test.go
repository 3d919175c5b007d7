package python

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// pep440 matches normalized versions that pip accepts.
var pep440 = regexp.MustCompile(`^\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?$`)

func TestPythonVersions(t *testing.T) {
	for version, want := range map[string]string{
		"1.0.0": "1.0.0", "v1.2.0": "1.2.0", "1.10": "1.10", "1.2.0+dirty": "1.2.0+dirty",
		"1.2.0~rc.1": "1.2.0rc1", "v1.2.0-rc.1": "1.2.0rc1", "1.2.0~beta2": "1.2.0b2", "1.2.0~alpha.3": "1.2.0a3",
		"1.2.0+5.gabc1234": "1.2.0+5.gabc1234", "1.2.0+5.gabc1234.dirty": "1.2.0+5.gabc1234.dirty",
		"1.2.0~rc.1+5.gabc1234": "1.2.0rc1+5.gabc1234",
		"":                      "0.dev0", "cb668ec": "0.dev0+cb668ec", "cb668ec-dirty": "0.dev0+cb668ec.dirty",
		"Weird Version_é/..": "0.dev0+weird.version", "v1.2.0-nightly": "0.dev0+v1.2.0.nightly",
	} {
		if got := public(version); got != want || !pep440.MatchString(got) {
			t.Errorf("%q becomes %q, want %q", version, got, want)
		}
	}
}

// TestRecordOfTheWheelHoldsEveryFile reads a wheel as an installer does.
func TestRecordOfTheWheelHoldsEveryFile(t *testing.T) {
	w := wheel(fstest.MapFS{
		"molrun/_a.py":       {Data: []byte("a = 1\n")},
		"molrun/__init__.py": {Data: []byte("b = 1\n")},
		"molrun/py.typed":    {},
	}, "1.2.0+g1")
	if w.Name != "molrun-1.2.0+g1-py3-none-any.whl" {
		t.Errorf("the wheel is called %s", w.Name)
	}
	files, order := unzipped(t, w.Content)
	if got := strings.Join(order, " "); got != "molrun/__init__.py molrun/_a.py molrun/py.typed "+
		"molrun-1.2.0+g1.dist-info/METADATA molrun-1.2.0+g1.dist-info/WHEEL molrun-1.2.0+g1.dist-info/RECORD" {
		t.Errorf("the wheel has %s", got)
	}
	var want strings.Builder
	for _, name := range order[:len(order)-1] {
		sum := sha256.Sum256([]byte(files[name]))
		fmt.Fprintf(&want, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[name]))
	}
	want.WriteString("molrun-1.2.0+g1.dist-info/RECORD,,\n")
	if got := files["molrun-1.2.0+g1.dist-info/RECORD"]; got != want.String() {
		t.Errorf("RECORD is\n%s, want\n%s", got, want.String())
	}
	described := files["molrun-1.2.0+g1.dist-info/METADATA"]
	head, body, _ := strings.Cut(described, "\n\n")
	if !strings.Contains(head, "\nVersion: 1.2.0+g1\n") || !strings.Contains(body, "/docs/python") {
		t.Errorf("METADATA is\n%s", described)
	}
}

func TestWheelHasAllSourcesAndIsTheSameEachTime(t *testing.T) {
	w := Wheel("v1.2.0")
	files, _ := unzipped(t, w.Content)
	found, err := sources.ReadDir("molrun")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range found {
		if _, ok := files["molrun/"+entry.Name()]; !ok {
			t.Errorf("the wheel lacks %s", entry.Name())
		}
	}
	if _, ok := files["molrun/py.typed"]; !ok {
		t.Error("the wheel is not typed")
	}
	if !bytes.Equal(w.Content, Wheel("v1.2.0").Content) || !bytes.Equal(Archive("v1.2.0").Content, Archive("v1.2.0").Content) {
		t.Error("the same version gives other bytes")
	}
}

func TestArchiveHoldsTheWheel(t *testing.T) {
	w := Wheel("1.0.0")
	files, _ := unzipped(t, Archive("1.0.0").Content)
	if files["molrun-1.0.0/"+w.Name] != string(w.Content) {
		t.Error("the archive does not hold the wheel")
	}
}

// unzipped returns the files of an archive, and their names in order.
func unzipped(t *testing.T, content []byte) (files map[string]string, order []string) {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, entry := range archive.File {
		if year := entry.Modified.Year(); year != 1980 {
			t.Errorf("%s is of %d: the next build has other bytes", entry.Name, year)
		}
		f, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name], order = string(text), append(order, entry.Name)
	}
	return files, order
}
