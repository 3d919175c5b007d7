package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"molrun/app/task/process"
)

// descriptors collects the files that bwrap and Init inherit: 0 to 2, then the
// connection, this program, and added files. It keeps the first error.
type descriptors struct {
	err        error
	files      []*os.File // from descriptor 3
	stdin      *os.File   // of the program
	conn       *os.File   // this process's end of the connection
	inside     *os.File   // the other end
	stderrPipe *os.File   // for descriptors 1 and 2
	stderr     *stderr
	opened     []*os.File // to be closed in this process in every case
}

// openDescriptors opens the connection and this program, which runs as Init. If stdin is
// nil, the program has no input.
func openDescriptors(stdin *os.File) *descriptors {
	d := openConnection(stdin)
	d.addFiles(d.inside, d.open(process.Self))
	return d
}

// openConnection opens only the connection.
func openConnection(stdin *os.File) *descriptors {
	d := &descriptors{stdin: stdin}
	if stdin == nil {
		d.stdin = d.open(os.DevNull)
	}
	d.connect()
	return d
}

func (d *descriptors) addFiles(files ...*os.File) { d.files = append(d.files, files...) }

func (d *descriptors) open(path string) *os.File {
	f, err := os.Open(path)
	d.fail(err)
	d.opened = append(d.opened, f)
	return f
}

func (d *descriptors) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// connect makes the connection between this process and Init.
func (d *descriptors) connect() {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		d.fail(err)
		return
	}
	d.fail(syscall.SetNonblock(pair[0], true)) // for deadlines
	d.conn = os.NewFile(uintptr(pair[0]), "connection")
	d.inside = os.NewFile(uintptr(pair[1]), "connection inside")
	d.opened = append(d.opened, d.inside)
}

// names adds /etc/passwd and /etc/group for the sandbox, and /etc/hosts if it has only a
// loopback network.
func (d *descriptors) names(v *view) {
	users, groups := accounts()
	d.addText(users)
	d.addText(groups)
	if !v.network {
		d.addText(hosts())
	}
}

// accounts returns /etc/passwd and /etc/group with the user of this process, root and
// nobody.
func accounts() (users, groups string) {
	uid, gid := os.Getuid(), os.Getgid()
	users = "root:x:0:0:root:/:/bin/sh\n" + "nobody:x:65534:65534:nobody:/:/bin/sh\n"
	groups = "root:x:0:\n" + "nogroup:x:65534:\n"
	if uid != 0 {
		users += fmt.Sprintf("molrun:x:%d:%d:molrun:/:/bin/sh\n", uid, gid)
	}
	if gid != 0 {
		groups += fmt.Sprintf("molrun:x:%d:\n", gid)
	}
	return users, groups
}

// hosts returns /etc/hosts for a sandbox with only a loopback network.
func hosts() string {
	text := "127.0.0.1 localhost\n::1 localhost\n"
	if name, err := os.Hostname(); err == nil && name != "localhost" {
		text += "127.0.0.1 " + name + "\n"
	}
	return text
}

// addText adds a pipe that holds a short text.
func (d *descriptors) addText(text string) {
	r, w, err := os.Pipe()
	if err == nil {
		d.opened = append(d.opened, r)
		_, err = w.WriteString(text)
		err = errors.Join(err, w.Close())
	}
	d.fail(err)
	d.addFiles(r)
}

// captureStderr makes 1 and 2 a pipe that this process reads.
func (d *descriptors) captureStderr() {
	r, w, err := os.Pipe()
	if err != nil {
		d.fail(err)
		return
	}
	d.opened = append(d.opened, w)
	d.stderrPipe = w
	d.stderr = captureStderr(r)
}

// fds returns the descriptors in order.
func (d *descriptors) fds() []uintptr {
	fds := []uintptr{d.stdin.Fd(), d.stderrPipe.Fd(), d.stderrPipe.Fd()}
	for _, f := range d.files {
		fds = append(fds, f.Fd())
	}
	return fds
}

// release returns what close must leave open.
func (d *descriptors) release() (conn *os.File, err *stderr) {
	conn, err = d.conn, d.stderr
	d.conn, d.stderr = nil, nil
	return conn, err
}

func (d *descriptors) close() {
	for _, f := range d.opened {
		f.Close() // only read, so nothing can be lost
	}
	if d.conn != nil {
		d.conn.Close()
	}
	if d.stderr != nil {
		d.stderr.end()
	}
}
