package task

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// descriptors collects what bwrap and the process inside inherit: 0 to 2, then
// the line, this program, and what is added. The first error stands.
type descriptors struct {
	err    error
	files  []*os.File // from 3 on
	null   *os.File
	out    *os.File // 1 and 2
	own    *os.File // this process's end of the line
	spoken *words
	opened []*os.File // to be closed here, whatever happens
}

// openDescriptors opens the line and the file that runs inside.
func openDescriptors(self string) *descriptors {
	d := &descriptors{}
	d.null = d.open(os.DevNull)
	d.line()
	d.add(d.open(self))
	return d
}

func (d *descriptors) add(files ...*os.File) { d.files = append(d.files, files...) }

func (d *descriptors) open(path string) *os.File {
	f, err := os.Open(path)
	d.note(err)
	d.opened = append(d.opened, f)
	return f
}

func (d *descriptors) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

// line makes the connection to the process inside.
func (d *descriptors) line() {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		d.note(err)
		d.add(nil)
		return
	}
	d.note(syscall.SetNonblock(pair[0], true)) // so that waits can be bounded
	d.own = os.NewFile(uintptr(pair[0]), "line")
	other := os.NewFile(uintptr(pair[1]), "line inside")
	d.opened = append(d.opened, other)
	d.add(other)
}

// accounts adds the users and groups that exist inside.
func (d *descriptors) accounts() {
	uid, gid := os.Getuid(), os.Getgid()
	users := "nobody:x:65534:65534:nobody:/:/bin/sh\n"
	groups := "nogroup:x:65534:\n"
	if uid != 0 {
		users += fmt.Sprintf("molrun:x:%d:%d:molrun:/:/bin/sh\n", uid, gid)
	}
	if gid != 0 {
		groups += fmt.Sprintf("molrun:x:%d:\n", gid)
	}
	d.content("root:x:0:0:root:/:/bin/sh\n" + users)
	d.content("root:x:0:\n" + groups)
}

// content adds a pipe that holds a short text.
func (d *descriptors) content(text string) {
	r, w, err := os.Pipe()
	if err == nil {
		d.opened = append(d.opened, r)
		_, err = w.WriteString(text)
		err = errors.Join(err, w.Close())
	}
	d.note(err)
	d.add(r)
}

// words adds a pipe for what bwrap says.
func (d *descriptors) words() {
	r, w, err := os.Pipe()
	if err != nil {
		d.note(err)
		return
	}
	d.opened = append(d.opened, w)
	d.out = w
	d.spoken = hearWords(r)
}

// numbers gives the descriptors in their order.
func (d *descriptors) numbers() []uintptr {
	all := []uintptr{d.null.Fd(), d.out.Fd(), d.out.Fd()}
	for _, f := range d.files {
		all = append(all, f.Fd())
	}
	return all
}

// keep gives what close leaves open.
func (d *descriptors) keep() (line *os.File, spoken *words) {
	line, spoken = d.own, d.spoken
	d.own, d.spoken = nil, nil
	return line, spoken
}

func (d *descriptors) close() {
	for _, f := range d.opened {
		f.Close() // nothing was written to them but into pipes
	}
	if d.own != nil {
		d.own.Close()
	}
	if d.spoken != nil {
		d.spoken.end()
	}
}

// words is what bwrap said so far. It goes on to this process's own error
// output.
type words struct {
	pipe *os.File
	done chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

const mostWords = 4 << 10

func hearWords(pipe *os.File) *words {
	w := &words{pipe: pipe, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		io.Copy(io.MultiWriter(os.Stderr, w), pipe) // until the last writer is gone, or end
	}()
	return w
}

// Write keeps the beginning.
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p[:min(len(p), max(0, mostWords-w.text.Len()))])
	return len(p), nil
}

// last gives why bwrap failed, after it has.
func (w *words) last() string {
	w.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	return firstLine(w.text.String())
}

// end waits for the last words of processes that are gone.
func (w *words) end() {
	w.pipe.SetReadDeadline(time.Now().Add(outputPatience)) // fails where it is closed: it was waited for
	<-w.done
	w.pipe.Close()
}
