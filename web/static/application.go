package static

import (
	"bytes"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"molrun/app/base/fault"
)

const (
	startPage = "index.html"
	assets    = "assets/" // file names change with the content
)

// applicationPolicy is the content security policy of the application: nothing from
// another origin is loaded or run. Other sites can frame only pages that are meant to be
// embedded.
const (
	applicationPolicy = "default-src 'none'; base-uri 'self'; object-src 'none'; form-action 'self'; " +
		"script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; frame-ancestors "
	nowhere, anywhere = "'none'", "*"
)

// embedded is the path prefix of pages that show a shared result within another page.
// They have no controls that change anything, and no access to the user's session.
const embedded = ApplicationPrefix + "embed/"

// application holds the files of the web application by name.
type application struct {
	files map[string]file
	// The parts of the start page before and after the base URL of its relative links.
	head, tail []byte
	etag       string
}

// newApplication reads the files. They are embedded in the program, so failing to read
// one is a bug.
func newApplication(built fs.FS) *application {
	a := &application{files: map[string]file{}}
	orPanic(fs.WalkDir(built, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == ".gitkeep" {
			return err
		}
		content, err := fs.ReadFile(built, name)
		name, zipped := strings.CutSuffix(strings.TrimPrefix(name, "dist/"), ".gz")
		f := newFile(typeOf(name), content)
		f.zipped, f.forever = zipped, strings.HasPrefix(name, assets)
		a.files[name] = f
		return err
	}))
	page, found := a.files[startPage]
	if !found {
		content, err := fs.ReadFile(built, "fallback.html")
		orPanic(err)
		page = newFile(typeOf(startPage), content)
	}
	delete(a.files, startPage)
	a.head, a.tail = splitAtBase(page.content)
	a.etag = page.etag
	return a
}

func orPanic(err error) {
	if err != nil {
		panic(err)
	}
}

// splitAtBase splits a page around the URL in <base href="./">.
func splitAtBase(page []byte) (head, tail []byte) {
	const before = `<base href="`
	at := bytes.Index(page, []byte(before))
	if at < 0 {
		panic("the start page has no <base href>") // a bug
	}
	at += len(before)
	return page[:at], page[at+bytes.IndexByte(page[at:], '"'):]
}

// answer responds with a file. Any other path is a page of the application, which
// interprets the path itself.
func (a *application) answer(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(r.URL.Path, ApplicationPrefix)
	f, found := a.files[name]
	switch {
	case found:
		f.serve(w, r)
	case strings.HasPrefix(name, assets):
		return fault.Errorf(fault.NotFound, "The application has no such file; load the page again.")
	default:
		a.startPage(r).serve(w, r)
	}
	return nil
}

// startPage returns the start page. The base of its relative links is the application's
// path relative to the page, which works under any path prefix that a proxy strips.
func (a *application) startPage(r *http.Request) file {
	base := "./"
	if depth := strings.Count(r.URL.EscapedPath(), "/") - strings.Count(ApplicationPrefix, "/"); depth > 0 {
		base = strings.Repeat("../", depth)
	}
	page := make([]byte, 0, len(a.head)+len(base)+len(a.tail))
	page = append(append(append(page, a.head...), base...), a.tail...)
	return file{contentType: typeOf(startPage), content: page, etag: a.etag + "-" + strconv.Itoa(len(base))}
}
