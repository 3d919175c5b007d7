package blobs

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// withInputs returns the link to the archive of a job that includes its input files.
func (f *fixture) withInputs(id app.JobID) string {
	return f.link(app.Link{Kind: app.ArchiveGet, ID: string(id), Inputs: true, Filename: "result.zip"})
}

// given returns an upload as an input with this name.
func (f *fixture) given(name, text string) app.InputFile {
	id := f.stored(text)
	return app.InputFile{Name: name, Reference: app.Reference{Upload: id, Generation: 1, Size: int64(len(text))}, CRC32: crc32.ChecksumIEEE([]byte(text))}
}

// made returns a result file as an input with this name.
func (f *fixture) made(name, text string) app.InputFile {
	job := f.result(map[string]string{"out/x": text, "other": "other"})
	return app.InputFile{Name: name, Reference: app.Reference{Job: job, Path: "result/out/x", Size: int64(len(text))}}
}

func TestInputsFollowFolders(t *testing.T) {
	t.Parallel()
	f := start(t)
	batch := app.JobID(f.id())
	f.rules.folders[batch] = []app.Folder{{Name: "1", Job: f.result(map[string]string{"a": "1"})}, {Name: "inputs", Job: f.result(map[string]string{"a": ""})}}
	f.rules.inputs[batch] = []app.InputFile{f.given("inputs/0/a", "one"), f.made("inputs/1/β", "two"), f.given("inputs/2/empty", "")}
	without, with := f.do("GET", f.archiveLink(batch), ""), f.do("GET", f.withInputs(batch), "")
	want := map[string]string{"1/a": "1", "inputs/a": "", "inputs/0/a": "one", "inputs/1/β": "two", "inputs/2/empty": ""}
	must.Equal(t, "files", unzip(t, with.body), want)
	testWithTools(t, with.body)
	if a, b := without.header.Get("ETag"), with.header.Get("ETag"); a == b || len(unzip(t, without.body)) != 2 {
		t.Errorf("ETags %s and %s", a, b)
	}
	if a, b := f.do("GET", f.withInputs(batch), "", "If-Range", without.header.Get("ETag"), "Range", "bytes=9-").status, f.do("GET", f.withInputs(batch), "", "If-Range", with.header.Get("ETag"), "Range", "bytes=9-").status; a != 200 || b != 206 {
		t.Errorf("a part of the other form: %d, of this one: %d", a, b)
	}

	contents, err := f.rules.Archive(t.Context(), batch, app.ArchiveForm{Inputs: true})
	must.OK(t, err)
	a, err := f.archives.Open(contents)
	must.OK(t, err)
	if size, err := f.ArchiveSize(contents); err != nil || size != int64(len(with.body)) {
		t.Errorf("ArchiveSize returns %d, %v for %d bytes", size, err, len(with.body))
	}
	content, end := a.Content(t.Context()), len(with.body)
	for from := range end {
		for to := from + 1; to <= end; { // all lengths up to 40, some greater ones, and all the rest
			var got bytes.Buffer
			_, seekErr := content.Seek(int64(from), io.SeekStart)
			n, err := content.SendTo(&got, int64(to-from))
			if err = errors.Join(seekErr, err); err != nil || n != int64(to-from) || got.String() != with.body[from:to] {
				t.Fatalf("bytes %d to %d: %d bytes, err %v, right %v", from, to, n, err, got.String() == with.body[from:to])
			}
			step := 1 + (to-from)/40*50
			if to < end && to+step > end {
				step = end - to
			}
			to += step
		}
	}
}

// The archive has the smallest number of files that requires Zip64, made up of result
// files and inputs.
func TestArchiveOf65535FilesUsesZip64(t *testing.T) {
	t.Parallel()
	const n = 65535
	f := start(t)
	id := f.result(map[string]string{"one": "x"})
	m, err := f.Manifest(id)
	must.OK(t, err)
	file, input := m.Files[0], f.given("", "x")
	m.Files = nil
	for i := range n {
		if file.Name, input.Name = fmt.Sprintf("%06d", i), fmt.Sprintf("inputs/%05d/x", i); i%2 == 0 {
			m.Files = append(m.Files, file)
		} else {
			f.rules.inputs[id] = append(f.rules.inputs[id], input)
		}
	}
	must.OK(t, f.WriteManifest(id, m))
	archive := f.do("GET", f.withInputs(id), "").body
	r, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil || len(r.File) != n {
		t.Fatalf("%d files, want %d (err %v)", len(r.File), n, err)
	}
	testWithTools(t, archive)
}

// TestRemovedSourcesAreNotFound removes the sources of archives right after their records were
// read.
func TestRemovedSourcesAreNotFound(t *testing.T) {
	f := start(t)
	removed, ofUpload, ofJob := f.result(someResult), f.result(nil), f.result(nil)
	given, made := f.given("inputs/0/a", strings.Repeat("text", 100<<10)), f.made("inputs/0/a", "text")
	f.rules.inputs[ofUpload], f.rules.inputs[ofJob] = []app.InputFile{given}, []app.InputFile{made}
	links := []string{f.archiveLink(removed), f.withInputs(ofUpload), f.withInputs(ofJob)}
	for _, link := range links { // this caches their layouts
		res := f.do("GET", link, "")
		must.OK(t, res.err)
		res.want(t, 200, "")
	}
	must.OK(t, errors.Join(f.RemoveJob(removed), f.RemoveUpload(given.Upload, 1), f.RemoveJob(made.Job)))
	for _, link := range links {
		f.do("GET", link, "").want(t, 404, fault.NotFound)
		f.do("GET", link, "", "Range", "bytes=5-").want(t, 404, fault.NotFound)
	}
}

// TestUploadIsKeptForArchivesBeingSent removes an upload while two archives that
// include it are being sent, one of which is aborted.
func TestUploadIsKeptForArchivesBeingSent(t *testing.T) {
	f := start(t)
	id := f.result(nil)
	given := f.given("inputs/1/b", "text")
	before := f.given("inputs/0/a", strings.Repeat("large", 8<<20)) // more than the connections buffer
	f.rules.inputs[id] = []app.InputFile{before, given}
	file := f.path + "/" + uploadName(given.Upload, 1)
	link := f.withInputs(id)
	begin := func() *http.Response {
		t.Helper()
		res, err := http.Get(link)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		return res
	}
	whole, part := begin(), begin()
	must.OK(t, f.RemoveUpload(given.Upload, 1))
	must.OK(t, part.Body.Close())
	body, err := io.ReadAll(whole.Body)
	if err = errors.Join(err, whole.Body.Close()); err != nil {
		t.Fatal(err)
	}
	must.Equal(t, "text in the archive", unzip(t, string(body))["inputs/1/b"], "text")
	must.Become(t, "the upload is removed", func() bool {
		_, err := os.Stat(file)
		return errors.Is(err, fs.ErrNotExist)
	})
	f.do("GET", link, "").want(t, 404, fault.NotFound)
	if len(f.holds.counts)+len(f.holds.removed) != 0 {
		t.Errorf("left: %v %v", f.holds.counts, f.holds.removed)
	}
}

func TestInputsThatCannotBeInAnArchive(t *testing.T) {
	f := start(t)
	id := f.result(nil)
	given, made := f.given("inputs/0/a", "text"), f.made("inputs/0/a", "text")
	for name, change := range map[string]func(given, made *app.InputFile) app.InputFile{
		"a name that leads out": func(given, _ *app.InputFile) app.InputFile { given.Name = "../a"; return *given },
		"a negative size":       func(given, _ *app.InputFile) app.InputFile { given.Size = -1; return *given },
		"too large a file":      func(given, _ *app.InputFile) app.InputFile { given.Size = 1 << 62; return *given },
		"no such file":          func(_, made *app.InputFile) app.InputFile { made.Path = "result/none"; return *made },
	} {
		g, m := given, made
		if _, err := f.ArchiveSize(app.Archive{Folders: f.rules.folders[id], Inputs: []app.InputFile{change(&g, &m)}}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
