package faults

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// changingCalls lists the system calls that change files and directories or make them
// durable.
var changingCalls = []string{
	"write", "pwrite64", "writev", "pwritev", "copy_file_range", "sendfile", "ftruncate", "fallocate",
	"fchmod", "fchmodat", "fchmodat2", "fsync", "fdatasync",
	"openat", "mkdir", "mkdirat", "symlink", "symlinkat", "rename", "renameat", "renameat2", "link", "linkat",
	"unlink", "unlinkat", "rmdir",
}

// durability is the state that would survive a power failure under POSIX guarantees. The
// content of a file is durable once the file has been synced, and a name once its
// directory has been.
type durability struct {
	promised *regexp.Regexp
	names    map[string]*name // by path
	early    []string         // names created before the files that they promise were synced
}

type name struct {
	file    *file
	durable bool
}

type file struct{ durable bool }

// replay returns the state after the calls in a trace.
func replay(trace []byte, promised *regexp.Regexp) *durability {
	d := &durability{promised: promised, names: map[string]*name{}}
	for line := range strings.Lines(string(trace)) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		d.apply(parts[0], parts[1], parts[2])
	}
	return d
}

func (d *durability) apply(call, at, from string) {
	n := d.names[at]
	switch call {
	case "openat":
		if n == nil {
			d.names[at] = &name{file: new(file)}
		}
	case "mkdir", "mkdirat", "symlink", "symlinkat":
		if n == nil { // if the file exists, the call fails
			d.names[at] = &name{file: &file{durable: true}}
		}
	case "rename", "renameat", "renameat2", "link", "linkat":
		d.move(from, at, strings.HasPrefix(call, "rename"))
	case "unlink", "unlinkat", "rmdir":
		delete(d.names, at)
	case "fsync", "fdatasync":
		d.sync(at)
	case "ftruncate", "fallocate": // the part of the content that remains keeps its durability
		if n == nil {
			d.names[at] = &name{file: &file{durable: true}, durable: true}
		}
	default: // a call that changes the file
		if n == nil {
			n = &name{file: new(file), durable: true} // the file existed before the trace
			d.names[at] = n
		}
		n.file.durable = false
	}
}

func (d *durability) sync(at string) {
	if n := d.names[at]; n != nil {
		n.file.durable = true
	}
	for child, n := range d.names {
		if path.Dir(child) == at {
			n.durable = true
		}
	}
}

// move renames or links a file, or a directory with its content.
func (d *durability) move(from, to string, away bool) {
	n := d.names[from]
	if n == nil {
		n = &name{file: &file{durable: true}} // the file existed before the trace
	}
	if !n.file.durable && d.promised.MatchString(to) {
		d.early = append(d.early, to+" got its name before its content was synced")
	}
	d.expectBelow(from, to)
	for below, n := range maps.Clone(d.names) {
		if rest, ok := strings.CutPrefix(below, from+"/"); ok && away {
			delete(d.names, below)
			d.names[to+"/"+rest] = n
		}
	}
	d.names[to] = &name{file: n.file}
	if away {
		delete(d.names, from)
	}
}

// complete lists names that promise more than their own file: an outcome promises the
// output and the log, a manifest the result, and the name of a backup all its content.
var complete = []struct {
	name *regexp.Regexp
	what string // path in the same directory; "" means everything in the renamed directory
}{
	{regexp.MustCompile(`^data/jobs/[^/]+/[0-9]+/outcome\.json$`), "work/out"},
	{regexp.MustCompile(`^data/jobs/[^/]+/[0-9]+/outcome\.json$`), "log"},
	{regexp.MustCompile(`^data/jobs/[^/]+/manifest\.json$`), "result"},
	{regexp.MustCompile(`^backups/[^/.]+$`), ""},
}

// expectBelow records anything that a new name promises and that a power failure could
// lose.
func (d *durability) expectBelow(from, to string) {
	for _, c := range complete {
		if !c.name.MatchString(to) {
			continue
		}
		top, below := from, from
		if c.what != "" { // its own name is in the same directory, and is synced with it
			first, _, _ := strings.Cut(c.what, "/")
			top, below = path.Join(path.Dir(to), first), path.Join(path.Dir(to), c.what)
		}
		for at := range d.names {
			if !strings.HasPrefix(at+"/", below+"/") {
				continue
			}
			if why := d.lostBelow(at, top); why != "" {
				d.early = append(d.early, fmt.Sprintf("%s got its name while a power cut could lose %s: %s", to, at, why))
				break
			}
		}
	}
}

// lost describes what a power failure could lose of a file. It returns "" if nothing can
// be lost.
func (d *durability) lost(at string) string { return d.lostBelow(at, ".") }

// lostBelow is like lost, but takes the directory top to be durable.
func (d *durability) lostBelow(at, top string) string {
	n := d.names[at]
	switch {
	case n == nil:
		return "it was never written"
	case !n.file.durable:
		return "its content is not synced"
	}
	for ; at != top; at = path.Dir(at) {
		if n := d.names[at]; n != nil && !n.durable {
			return fmt.Sprintf("the name of %s is not synced", at)
		}
	}
	return ""
}

// promised matches the files in the data directory that must be durable once the service
// has responded.
const promised = `(jobs\.db(\.before-[0-9]+)?|secret|audit\.log(\.[0-9]+)?|tls/[^/]+\.pem|uploads/([^/]{2}|partial)/[^/]+` +
	`|jobs/[^/]+/(manifest\.json|job\.json|result/.+|[0-9]+/(task\.json|outcome\.json|log)))`

// watched is a server with a trace of every call that changes a file.
type watched struct {
	*server
	trace    string
	promised *regexp.Regexp // paths relative to the server's directory
}

func watch(t *testing.T, config string) *watched {
	t.Helper()
	s := newServer(t, "", config)
	in := injection{Calls: changingCalls, Dir: s.dir, Watch: true, Trace: s.path("trace")}
	s.prefix = in.prefix(t)
	return &watched{s, in.Trace, regexp.MustCompile(`^(data|restored)/` + promised + `$|^backups/`)}
}

// expectDurable fails the test unless the promised files that match exist and are
// durable.
func (w *watched) expectDurable(when, files string) {
	w.t.Helper()
	for _, wrong := range w.notDurable(files) {
		w.t.Errorf("%s, %s", when, wrong)
	}
	if w.t.Failed() {
		w.t.FailNow() // later checks would report the same error
	}
}

// becomeDurable waits until the files are durable. It is meant for files that the service
// writes without a response to show when it is done.
func (w *watched) becomeDurable(when, files string) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); len(w.notDurable(files)) > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	w.expectDurable(when, files)
}

// notDurable describes what a power failure could lose now of the promised files that
// match.
func (w *watched) notDurable(files string) (wrongs []string) {
	w.t.Helper()
	trace, err := os.ReadFile(w.trace)
	must.OK(w.t, err)
	d := replay(trace[:bytes.LastIndexByte(trace, '\n')+1], w.promised)
	match, seen, causes := regexp.MustCompile(files), 0, map[string][]string{}
	must.OK(w.t, filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		file, ok := strings.CutPrefix(path, w.dir+"/")
		if err != nil || !ok || e.IsDir() || !w.promised.MatchString(file) || !match.MatchString(file) {
			return err
		}
		seen++
		if why := d.lost(file); why != "" {
			causes[why] = append(causes[why], file)
		}
		return nil
	}))
	for why, files := range causes {
		wrongs = append(wrongs, fmt.Sprintf("a power cut could take %s and %d other files: %s", files[0], len(files)-1, why))
	}
	if seen == 0 {
		wrongs = append(wrongs, "there is no file "+files)
	}
	return append(wrongs, d.early...)
}

// upload sends a file and completes it.
func (s *server) upload(c *client.Client, name string) error {
	u, err := c.CreateUpload(s.t.Context(), "", name)
	if err != nil {
		return err
	}
	const text = ">a\nDSHAKRHHGYKRKFHEKHHSHRGY\n"
	if err := c.SendUpload(s.t.Context(), u, strings.NewReader(text), int64(len(text))); err != nil {
		return err
	}
	_, err = c.CompleteUpload(s.t.Context(), u.FileID, int64(len(text)))
	return err
}

// lockedFile is an algorithm that creates a directory and a file to which the service
// must give itself access.
const lockedFile = `
format = 1
type = "locked"
version = "1"
title = "Leave a locked file"
max_runtime = "1h"
command = ["sh", "-c", 'echo to the log; echo a >out/open; echo b >out/closed; chmod 000 out/closed; mkdir -p out/deep/er; echo c >out/deep/er/file']

[resources]
memory = "16MiB"
`

func TestCutsAndReservationsEndangerNoContent(t *testing.T) {
	t.Parallel()
	const dir, file = "data/uploads/partial", "data/uploads/partial/a"
	begin := "openat\t" + file + "\t\nwrite\t" + file + "\t\nfsync\t" + file + "\t\nfsync\t" + dir + "\t\n"
	for rest, safe := range map[string]bool{
		"":                            true,
		"write\t" + file + "\t\n":     false,
		"ftruncate\t" + file + "\t\n": true,
		"fallocate\t" + file + "\t\n": true,
		"write\t" + file + "\t\nftruncate\t" + file + "\t\n": false,
	} {
		d := replay([]byte(begin+rest), regexp.MustCompile(promised))
		if why := d.lost(file); (why == "") != safe {
			t.Errorf("after %q: %q", rest, why)
		}
	}
}

// Everything that the service has acknowledged in a response must survive a power
// failure: its content was synced before it got its name, and its directory after that.
func TestAnsweredMeansDurable(t *testing.T) {
	t.Parallel()
	needInjection(t)
	w := watch(t, "[audit]\nmax_size = \"64KiB\"\n")
	addPrograms(t, w.server)
	w.start()                                                             // also creates a key
	w.becomeDurable("after the start and a key", `/secret$|/audit\.log$`) // the service also greets the user who starts it
	c := w.client()
	for _, name := range []string{"a.fasta", "b.fasta"} {
		must.OK(t, w.upload(c, name))
		w.expectDurable("after an upload", `/uploads/`)
	}
	w.sendsParts(longText(20 << 20))
	for _, name := range []string{"j", "k"} {
		w.locked(c, name)
		w.expectDurable("after a job", `/jobs/.*/result/deep/er/file$`)
		w.expectDurable("after a job", `/jobs/`)
	}
	control := client.NewControl(filepath.Join(w.data, "control.sock"))
	made, err := control.CreateKey(t.Context(), client.KeyRequest{Organization: "lab", Email: strings.Repeat("b", 200) + "@lab.example"})
	must.OK(t, err)
	rotated := func() bool { _, err := os.Stat(filepath.Join(w.data, "audit.log.1")); return err == nil }
	for !rotated() {
		_, err := control.DisableKey(t.Context(), made.ID)
		must.OK(t, err)
	}
	w.expectDurable("after the rotation of the audit log", `/audit\.log`)
	_, err = control.RotateSecret(t.Context())
	must.OK(t, err)
	w.expectDurable("after the rotation of the secret", `/secret$|/audit\.log`)
	_, err = control.SignIn(t.Context(), "lab", "ann@lab.example")
	must.OK(t, err)
	w.expectDurable("after a link that signs in", `/audit\.log`)
	w.stop()
	w.expectDurable("after the stop", `^data/`)
	w.expectDurable("after the stop", `/jobs\.db$`)
}

// sendsParts sends a file in parts, one of which fails. Each time, the bytes that the
// service reports as stored must be durable.
func (w *watched) sendsParts(text string) {
	w.t.Helper()
	l := newLedger()
	sender := w.sender(l)
	fact, err := sender.beginParts("parts.txt", text, false)
	must.OK(w.t, err)
	for _, end := range []int{1 << 20, 2 << 20, 12 << 20} {
		must.OK(w.t, sender.sendPart(fact, func(int64) int64 { return int64(end) }, false))
		w.expectDurable("after a part", `/uploads/partial/`)
	}
	if err := sender.sendPart(fact, func(int64) int64 { return 18 << 20 }, true); err == nil {
		w.t.Error("the connection does not break")
	}
	at, _, err := fact.parts.offset(w.t.Context(), w.base)
	must.OK(w.t, err)
	if at < 12<<20 {
		w.t.Errorf("%d bytes are stored", at)
	}
	w.becomeDurable("after a part that broke", `/uploads/partial/`)
	must.OK(w.t, fact.parts.breakBeforeAByte(w.base, fact.text, at))
	w.becomeDurable("after a part without a byte", `/uploads/partial/`)
	must.OK(w.t, sender.sendPart(fact, func(int64) int64 { return fact.parts.length }, false))
	w.expectDurable("after the last part", `/uploads/`)
	for _, wrong := range l.faults {
		w.t.Error(wrong)
	}
}

// addPrograms adds lockedFile and the programs that it runs.
func addPrograms(t *testing.T, s *server) {
	t.Helper()
	must.OK(t, os.WriteFile(s.path("algorithms", "locked.toml"), []byte(lockedFile), 0o600))
	for _, name := range []string{"chmod", "mkdir"} {
		must.OK(t, os.Symlink("/bin/"+name, s.path("bin", name)))
	}
}

// locked runs a job of lockedFile to completion.
func (s *server) locked(c *client.Client, name string) {
	s.t.Helper()
	_, err := c.Submit(s.t.Context(), client.Submission{Name: name, Type: "locked", Settings: []byte("{}")})
	must.OK(s.t, err)
	job, err := c.Wait(s.t.Context(), name)
	must.OK(s.t, err)
	if job.Status != "COMPLETED" {
		s.t.Fatalf("job: %+v", job)
	}
}

// Commands that write files must not exit before the files are durable.
func TestFilesOfCommandsAreDurable(t *testing.T) {
	t.Parallel()
	needInjection(t)
	w := watch(t, "[tls]\nself_signed = true\n")
	addPrograms(t, w.server)
	w.start()
	w.expectDurable("after the start with a certificate", `^data/tls/`)
	w.stop()
	must.OK(t, os.WriteFile(w.path("config.toml"), fmt.Appendf(nil, "data = %q\nalgorithms = %q\nlisten = \"127.0.0.1:0\"\n", w.data, w.path("algorithms")), 0o600))
	w.start()
	c := w.client()
	must.OK(t, w.upload(c, "a.fasta"))
	w.locked(c, "j")
	w.stop()
	for _, run := range []struct {
		args  []string
		files string
	}{
		{[]string{"key", "create", "--organization", "lab", "--email", "eve@lab.example"}, `^data/(jobs\.db|audit\.log)`},
		{[]string{"secret", "rotate"}, `^data/secret$`},
		{[]string{"compact"}, `^data/jobs\.db$`},
		{[]string{"backup", w.path("backups")}, `^backups/.*/deep/er/file`},
		{[]string{"backup", w.path("backups")}, `^backups/`},
		{[]string{"restore", w.path("backups"), "--data", w.path("restored")}, `^restored/`},
	} {
		if out, err := w.command(t.Context(), run.args...).CombinedOutput(); err != nil {
			t.Fatalf("molrun %s: %v\n%s", strings.Join(run.args, " "), err, out)
		}
		w.expectDurable("after molrun "+run.args[0], run.files)
	}
}
