// Package python builds the Python package of this program. The sources are embedded, so
// that a service always provides the matching client.
package python

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

//go:embed molrun/*.py molrun/py.typed backend.py
var sources embed.FS

// File is a file to download.
type File struct {
	Name    string
	Content []byte
}

// Wheel returns the package as a wheel for pip, for a version of this program. The build
// is reproducible.
func Wheel(version string) File { return wheel(sources, public(version)) }

// Archive returns a source archive whose only source is the wheel. Its name has no
// version: pip rejects a wheel at a URL that does not end with the wheel's full name, but
// accepts an archive at any URL.
func Archive(version string) File {
	w := Wheel(version)
	dir := "molrun-" + public(version) + "/"
	return File{"molrun.zip", zipped([]File{
		{dir + "backend.py", readFile(sources, "backend.py")},
		{dir + "pyproject.toml", []byte(project)},
		{dir + w.Name, w.Content},
	})}
}

// project makes pip call backend.py, without other packages.
const project = `[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
`

// metadata describes the package (core metadata 2.1).
const metadata = `Metadata-Version: 2.1
Name: molrun
Version: %s
Summary: Run protein and molecular-simulation jobs on a molrun service
License: Apache-2.0
Classifier: Operating System :: OS Independent
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Chemistry
Classifier: Typing :: Typed
Requires-Python: >=3.9
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"

The client of a molrun service, which documents it at /docs/python.
`

// format describes the wheel (PEP 427).
const format = `Wheel-Version: 1.0
Generator: molrun
Root-Is-Purelib: true
Tag: py3-none-any
`

func wheel(sources fs.FS, version string) File {
	names, err := fs.Glob(sources, "molrun/*")
	must(err)
	var files []File
	for _, name := range names {
		files = append(files, File{name, readFile(sources, name)})
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	info := "molrun-" + version + ".dist-info/"
	files = append(files,
		File{info + "METADATA", fmt.Appendf(nil, metadata, version)},
		File{info + "WHEEL", []byte(format)})
	files = append(files, File{info + "RECORD", record(files, info+"RECORD")})
	return File{"molrun-" + version + "-py3-none-any.whl", zipped(files)}
}

// record lists the files of a wheel with their digests. The record itself has no digest.
func record(files []File, itself string) []byte {
	var b strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.Content)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.Content))
	}
	return []byte(b.String() + itself + ",,\n")
}

// zipped returns a zip archive of the files, with the earliest date that zip allows.
func zipped(files []File) []byte {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		header.SetMode(0o644)
		w, err := archive.CreateHeader(header)
		must(err)
		_, err = w.Write(f.Content)
		must(err)
	}
	must(archive.Close())
	return b.Bytes()
}

func readFile(from fs.FS, name string) []byte {
	content, err := fs.ReadFile(from, name)
	must(err)
	return content
}

// must panics if the program's embedded files can't be read, which is a bug.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
