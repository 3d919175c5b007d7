package folder_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"molrun/app/algorithm/folder"
	"molrun/app/test/must"
)

// parts returns an algorithm with weights and a database, and a top-level file.
func parts() []folder.Part {
	from := fstest.MapFS{
		"algorithm.toml":     {Data: []byte("type = \"t\"\n")},
		"scripts/run.sh":     {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
		"weights.ckpt":       {Data: bytes.Repeat([]byte("w"), 100_000)},
		"db/one/index.dat":   {Data: []byte("1")},
		"db/sequences.fa":    {Data: []byte(">a\nM\n")},
		"alg/algorithm.toml": {Data: []byte("type = \"t\"\n")},
		"alg/scripts/run.sh": {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
	}
	sub, _ := from.Sub("alg")
	return []folder.Part{{"program", from, "scripts/run.sh"}, {"algorithms/t", sub, "."}, {"assets/weights", from, "weights.ckpt"}, {"assets/db", from, "db"}}
}

func packed(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := folder.WriteArchive(t.Context(), &b, parts()); err != nil || n < 100_000 {
		t.Fatal(n, err)
	}
	return b.Bytes()
}

// below lists the files of a folder, and marks executable ones.
func below(t *testing.T, dir string) (names []string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		must.OK(t, err)
		if info, _ := e.Info(); !e.IsDir() {
			mark := ""
			if info.Mode()&0o100 != 0 {
				mark = "*"
			}
			names = append(names, strings.TrimPrefix(name, dir+"/")+mark)
		}
		return nil
	})
	return names
}

func TestPackAndUnpack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	archive := packed(t)
	must.OK(t, folder.Unpack(t.Context(), bytes.NewReader(archive), dir))
	want := []string{
		"algorithms/t/algorithm.toml", "algorithms/t/scripts/run.sh*", "assets/db/one/index.dat", "assets/db/sequences.fa", "assets/weights", "program*",
	}
	must.Equal(t, "files", below(t, dir), want)
	if text, _ := os.ReadFile(filepath.Join(dir, "assets", "db", "sequences.fa")); string(text) != ">a\nM\n" {
		t.Errorf("a file has %q", text)
	}
	must.Fail(t, "once more", folder.Unpack(t.Context(), bytes.NewReader(archive), dir), "already exists")
	if got := below(t, filepath.Dir(dir)); len(got) != len(want) {
		t.Errorf("afterwards: %q", got)
	}
}

// TestBrokenArchiveLeavesNothing truncates an archive at various positions, and
// corrupts bytes.
func TestBrokenArchiveLeavesNothing(t *testing.T) {
	archive := packed(t)
	try := func(what string, broken io.Reader) {
		t.Helper()
		dir := t.TempDir()
		if err := folder.Unpack(t.Context(), broken, filepath.Join(dir, "new")); err == nil {
			t.Errorf("%s: no error", what)
		}
		if got := below(t, dir); len(got) > 0 {
			t.Errorf("%s: left %q", what, got)
		}
	}
	for n := 0; n < len(archive)-1024; n += 1777 { // tar ends with 1024 zero bytes
		try("cut", bytes.NewReader(archive[:n]))
	}
	try("cut before the list", bytes.NewReader(archive[:bytes.Index(archive, []byte("MANIFEST.json"))]))
	for _, at := range []int{bytes.Index(archive, []byte("#!/bin/sh")) + 3, bytes.Index(archive, []byte("wwww")) + 50_000} {
		other := bytes.Clone(archive)
		other[at] ^= 1
		try("a changed byte", bytes.NewReader(other))
	}
	try("an error of the disk", io.MultiReader(bytes.NewReader(archive[:60_000]), failing{}))
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is broken") }

// Files must never be written outside the folder.
func TestHostileArchivesAreRefused(t *testing.T) {
	for name, headers := range map[string][]tar.Header{
		"a way out":      {{Name: "algorithm/../../evil"}},
		"an absolute":    {{Name: "/etc/evil"}},
		"a link":         {{Name: "algorithm/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
		"a hard link":    {{Name: "algorithm/link", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"a device":       {{Name: "algorithm/null", Typeflag: tar.TypeChar}},
		"a folder":       {{Name: "algorithm/x", Typeflag: tar.TypeDir}},
		"twice":          {{Name: "algorithm/algorithm.toml"}, {Name: "algorithm/algorithm.toml"}},
		"a backslash":    {{Name: `algorithm/..\evil`}},
		"molrun's own":   {{Name: "algorithm/.molrun-unpack-x/y"}},
		"a long name":    {{Name: "algorithm/" + strings.Repeat("x", 2000)}},
		"file as folder": {{Name: "algorithm/a"}, {Name: "algorithm/a/b"}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			if h.Typeflag == 0 {
				h.Typeflag = tar.TypeReg
			}
			h.Mode = 0o644
			must.OK(t, w.WriteHeader(&h))
		}
		must.OK(t, w.Close())
		dir := t.TempDir()
		if err := folder.Unpack(t.Context(), &b, filepath.Join(dir, "new")); err == nil || strings.Contains(err.Error(), "is truncated") {
			t.Errorf("%s: %v", name, err)
		}
		if got := below(t, dir); len(got) > 0 {
			t.Errorf("%s: left %q", name, got)
		}
	}
	if err := folder.Unpack(t.Context(), strings.NewReader("this is no archive, "+strings.Repeat("x", 1000)), filepath.Join(t.TempDir(), "new")); err == nil {
		t.Error("a text is taken for an archive")
	}
}

// A few bytes of an archive must not fill the disk.
func TestSparseFilesAreRefused(t *testing.T) {
	const hole = 1 << 20
	records := func(pairs ...string) string {
		text := ""
		for i := 0; i < len(pairs); i += 2 {
			record := " " + pairs[i] + "=" + pairs[i+1] + "\n"
			n := len(record) + 2 // all of these lengths have two digits
			text += strconv.Itoa(n) + record
		}
		return text
	}
	for name, of := range map[string]string{"a file": "assets/db", "the list": "MANIFEST.json"} {
		extended := records("GNU.sparse.major", "0", "GNU.sparse.minor", "1", "GNU.sparse.name", of,
			"GNU.sparse.size", strconv.Itoa(hole), "GNU.sparse.numblocks", "1", "GNU.sparse.map", strconv.Itoa(hole)+",0")
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		must.OK(t, w.WriteHeader(&tar.Header{Name: "extended", Typeflag: tar.TypeReg, Size: int64(len(extended))}))
		_, err := io.WriteString(w, extended)
		must.OK(t, err)
		must.OK(t, w.WriteHeader(&tar.Header{Name: "sparse", Typeflag: tar.TypeReg, Mode: 0o644}))
		must.OK(t, w.Close())
		archive := b.Bytes()
		archive[156] = tar.TypeXHeader // archive/tar can't write this type
		sum := 0
		copy(archive[148:], "        ")
		for _, c := range archive[:512] {
			sum += int(c)
		}
		copy(archive[148:], fmt.Sprintf("%06o\x00 ", sum))
		err = folder.Unpack(t.Context(), bytes.NewReader(archive), filepath.Join(t.TempDir(), "new"))
		must.Fail(t, name, err, "sparse file \""+of)
	}
}

func TestLeftoversOfKilledRunsAreSwept(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, ".molrun-unpack-KILLED")
	must.OK(t, os.MkdirAll(filepath.Join(left, "content"), 0o700))
	must.OK(t, folder.Unpack(t.Context(), bytes.NewReader(packed(t)), filepath.Join(dir, "new")))
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a killed run has left is still there: %v", err)
	}
}

func TestOnlyFilesArePacked(t *testing.T) {
	dir := t.TempDir()
	for link, to := range map[string]string{"ok": "file", "folder": "."} {
		must.OK(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
	_, err := folder.WriteArchive(t.Context(), io.Discard, []folder.Part{{"algorithm", os.DirFS(dir), "."}})
	must.Fail(t, "a link to a folder", err, "folder of algorithm is not a regular file")
	must.OK(t, os.Remove(filepath.Join(dir, "folder")))
	if n, err := folder.WriteArchive(t.Context(), io.Discard, []folder.Part{{"algorithm", os.DirFS(dir), "."}}); err != nil || n != 2 {
		t.Errorf("a link to a file: %d bytes, %v", n, err)
	}
}
