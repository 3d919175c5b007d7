package blobs

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
	"molrun/blobs/result"
)

var someResult = map[string]string{
	"job.json":           `{"jobName":"hst5"}`,
	"log.txt":            "",
	"models/a.pdb":       "ATOM      1  N   MET A   1\n",
	"models/β sheet.cif": "data_x\n",
	"traj.xtc":           strings.Repeat("0123456789abcdef", 5000),
}

// archiveLink returns the link to the archive of a job.
func (f *fixture) archiveLink(id app.JobID) string {
	return f.link(app.Link{Kind: app.ArchiveGet, ID: string(id), Filename: "result.zip"})
}

// download downloads an archive and checks it against ArchiveSize.
func (f *fixture) download(id app.JobID) string {
	f.t.Helper()
	res := f.do("GET", f.archiveLink(id), "")
	if res.status != 200 || res.err != nil {
		f.t.Fatalf("GET: status %d, err %v, body %.200q", res.status, res.err, res.body)
	}
	size, err := f.ArchiveSize(app.Archive{Folders: f.rules.folders[id]})
	if err != nil || size != int64(len(res.body)) {
		f.t.Errorf("ArchiveSize returns %d, %v for an archive of %d bytes", size, err, len(res.body))
	}
	return res.body
}

// unzip reads all files of an archive, which also checks their CRC-32.
func unzip(t testing.TB, archive string) map[string]string {
	t.Helper()
	r, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	must.OK(t, err)
	files := make(map[string]string)
	for _, f := range r.File {
		rc, err := f.Open()
		must.OK(t, err)
		data, err := io.ReadAll(rc)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		rc.Close()
		files[f.Name] = string(data)
		if f.Mode() != 0o644 || f.NonUTF8 || f.Method != zip.Store {
			t.Errorf("%s: mode %v, method %d", f.Name, f.Mode(), f.Method)
		}
	}
	return files
}

// runTool runs a program used to unpack archives, if it is installed, and checks its
// output.
func runTool(t *testing.T, want string, argv ...string) {
	t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Logf("%s is not installed", argv[0])
		return
	}
	if got, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil || string(got) != want {
		t.Errorf("%s: %v, output %q, want %q", argv[0], err, got, want)
	}
}

// testWithTools tests a whole archive with each tool.
func testWithTools(t *testing.T, archive string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.zip")
	must.OK(t, os.WriteFile(name, []byte(archive), 0o600))
	runTool(t, "", "unzip", "-tqq", name)
	runTool(t, "", "python3", "-c", "import sys, zipfile; sys.exit(zipfile.ZipFile(sys.argv[1]).testzip())", name)
}

func TestArchiveContainsTheResult(t *testing.T) {
	f := start(t)
	archive := f.download(f.result(someResult))
	must.Equal(t, "files", unzip(t, archive), someResult)
	testWithTools(t, archive)
}

func TestArchiveOfAnEmptyResultIsEmpty(t *testing.T) {
	f := start(t)
	must.Equal(t, "files", unzip(t, f.download(f.result(nil))), map[string]string{})
}

func TestBatchArchiveHasAFolderForEachRow(t *testing.T) {
	f := start(t)
	first, second := f.result(map[string]string{"a": "1"}), f.result(map[string]string{"a": "2", "b/c": "3"})
	batch := app.JobID(f.id())
	f.rules.folders[batch] = []app.Folder{{Name: "screen-2", Job: first}, {Name: "screen-10", Job: second}}
	must.Equal(t, "the whole", unzip(t, f.download(batch)), map[string]string{"screen-2/a": "1", "screen-10/a": "2", "screen-10/b/c": "3"})
	partial := f.do("GET", f.link(app.Link{Kind: app.PartArchive, ID: string(batch), Filename: "part.zip"}), "")
	must.Equal(t, "a part", unzip(t, partial.body), map[string]string{"screen-2/a": "1"})
}

// If two names differed only in case, unpacking one file would overwrite the other on
// Windows or macOS.
func TestArchiveNamesDifferByMoreThanTheirCase(t *testing.T) {
	f := start(t)
	job := f.result(map[string]string{"Model.pdb": "1", "model.pdb": "2", "a:b": "3"})
	batch := app.JobID(f.id())
	f.rules.folders[batch] = []app.Folder{{Name: "r", Job: job}, {Name: "R", Job: job, Files: app.Selection{"R/a:b"}}}
	must.Equal(t, "files", unzip(t, f.download(batch)), map[string]string{"r/Model.pdb": "1", "r/model~2.pdb": "2", "r/a%3Ab": "3", "R~2/a%3Ab": "3"})
}

func TestEqualResultsGiveEqualArchives(t *testing.T) {
	f, g := start(t), start(t)
	a, b := f.result(someResult), g.result(someResult)
	first, second := f.do("GET", f.archiveLink(a), ""), g.do("GET", g.archiveLink(b), "")
	if first.body != second.body || first.header.Get("ETag") != second.header.Get("ETag") {
		t.Error("equal results give different archives")
	}
	other := f.do("HEAD", f.archiveLink(f.result(map[string]string{"job.json": "{}"})), "")
	if tag := other.header.Get("ETag"); tag == "" || tag == first.header.Get("ETag") {
		t.Errorf("another result has the ETag %s", tag)
	}
}

func TestArchiveResumesAfterARestart(t *testing.T) {
	f := start(t)
	id := f.result(someResult)
	whole := f.download(id)
	etag := f.do("HEAD", f.archiveLink(id), "").header.Get("ETag")

	// After a restart, the server has no state about the first download.
	g := startIn(t, f.path)
	g.rules.folders = f.rules.folders
	res := g.do("GET", g.archiveLink(id), "", "Range", "bytes=1000-", "If-Range", etag)
	if res.status != 206 || res.body != whole[1000:] {
		t.Errorf("status %d, %d bytes; want the rest of %d", res.status, len(res.body), len(whole)-1000)
	}
	res = g.do("GET", g.archiveLink(id), "", "Range", "bytes=0-1,5-6")
	if res.status != 200 || res.body != whole {
		t.Errorf("two ranges: status %d, %d bytes; want the whole", res.status, len(res.body))
	}
}

// TestChangedResultAbortsTheArchive checks that an archive that differs from its manifest
// never appears complete.
func TestChangedResultAbortsTheArchive(t *testing.T) {
	var f *fixture
	var id app.JobID
	file := func(name string) string { return filepath.Join(f.JobDir(id), "result", name) }
	changed := func(change func(*app.ManifestFile)) error {
		m, err := f.Manifest(id)
		must.OK(t, err)
		change(&m.Files[0])
		return f.WriteManifest(id, m)
	}
	// complete reports whether a download ended as if nothing had changed.
	complete := func(t *testing.T, ranges string) bool {
		r, err := http.NewRequest("GET", f.archiveLink(id), nil)
		must.OK(t, err)
		r.Header.Set("Range", ranges)
		res, err := f.server.Client().Do(r)
		if err != nil {
			return false // aborted before the first byte
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err == nil
	}
	for name, change := range map[string]func() error{
		"shorter": func() error { return os.Truncate(file("traj.xtc"), 5) },
		"longer":  func() error { return os.Truncate(file("log.txt"), 5) },
		"gone":    func() error { return os.Remove(file("log.txt")) },
		"link out of the job": func() error {
			return errors.Join(os.Remove(file("log.txt")), os.Symlink(filepath.Join(f.path, "secret"), file("log.txt")))
		},
		"other manifest": func() error { return changed(func(m *app.ManifestFile) { m.Size++ }) },
		// neither the files nor the archive's length reveal this
		"other sum in the manifest": func() error { return changed(func(m *app.ManifestFile) { m.CRC32++ }) },
		"no manifest":               func() error { return os.Remove(filepath.Join(f.path, result.ManifestName(id))) },
	} {
		t.Run(name, func(t *testing.T) {
			f = start(t)
			id = f.result(someResult)
			f.download(id)
			must.OK(t, change())
			if complete(t, "") {
				t.Error("the whole archive was sent")
			}
			if strings.Contains(name, "manifest") && complete(t, "bytes=-60") {
				t.Error("the records at its end were sent")
			}
		})
	}
}

// TestArchiveBeyondFourGiB archives a sparse file. It downloads the ranges that are not
// zeros into another sparse file, which the tools read.
func TestArchiveBeyondFourGiB(t *testing.T) {
	const big = 4<<30 + 3
	f := start(t)
	id := f.result(map[string]string{"big": "", "small": "after four GiB"})
	must.OK(t, os.Truncate(filepath.Join(f.JobDir(id), "result", "big"), big))
	m, err := f.Manifest(id)
	must.OK(t, err)
	m.Files[0].Size = big
	must.OK(t, f.WriteManifest(id, m))
	size, err := f.ArchiveSize(app.Archive{Folders: f.rules.folders[id]})
	must.OK(t, err)

	name := filepath.Join(t.TempDir(), "a.zip")
	out, err := os.Create(name)
	must.OK(t, err)
	defer out.Close()
	fetch := func(from, to int64) {
		res := f.do("GET", f.archiveLink(id), "", "Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
		if res.status != 206 || res.err != nil || int64(len(res.body)) != to-from {
			t.Fatalf("bytes %d to %d: status %d, %d bytes", from, to, res.status, len(res.body))
		}
		if _, err := out.WriteAt([]byte(res.body), from); err != nil {
			t.Fatal(err)
		}
	}
	fetch(0, 1000)
	fetch(size-1000, size)

	runTool(t, "after four GiB", "unzip", "-p", name, "small")
	runTool(t, "after four GiB", "python3", "-c", `import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
assert z.getinfo("big").file_size == 2**32 + 3
assert z.open("big").read(100) == bytes(100)
sys.stdout.write(z.read("small").decode())`, name)
}

func TestUnsafeManifestIsRefused(t *testing.T) {
	f := start(t)
	id := f.result(nil)
	file := func(name, path string, size int64) app.ManifestFile {
		return app.ManifestFile{Name: name, Path: path, Size: size}
	}
	tests := map[string][]app.ManifestFile{
		"parent":          {file("../x", "result/x", 1)},
		"parent within":   {file("a/../../x", "result/x", 1)},
		"not clean":       {file("a//x", "result/x", 1)},
		"absolute":        {file("/etc/passwd", "result/x", 1)},
		"backslash":       {file(`a\..\x`, "result/x", 1)},
		"NUL":             {file("a\x00", "result/x", 1)},
		"no text":         {file("a\xff", "result/x", 1)},
		"empty name":      {file("", "result/x", 1)},
		"too long":        {file(strings.Repeat("a", 70_000), "result/x", 1)},
		"path of another": {file("x", "../other/x", 1)},
		"negative size":   {file("x", "result/x", -1)},
		"twice":           {file("x", "result/x", 1), file("x", "result/y", 1)},
		"not in order":    {file("y", "result/x", 1), file("x", "result/y", 1)},
	}
	for name, files := range tests {
		if err := f.WriteManifest(id, &app.Manifest{Files: files}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if m, err := f.Manifest(id); err != nil || len(m.Files) != 0 {
		t.Errorf("the manifest has %d files (err %v), want the first one unchanged", len(m.Files), err)
	}
	must.Equal(t, "files left", f.names("jobs"), []string{string(id) + "/manifest.json"})
	if _, err := f.ArchiveSize(app.Archive{Folders: []app.Folder{{Name: "../x", Job: id}}}); err == nil {
		t.Error("an unsafe folder is accepted")
	}
}

func TestArchiveStopsWhenItsRequestIsCanceled(t *testing.T) {
	f := start(t)
	id := f.result(someResult)
	a, err := f.archives.Open(app.Archive{Folders: f.rules.folders[id]})
	must.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Content(ctx).SendTo(io.Discard, a.Size()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
