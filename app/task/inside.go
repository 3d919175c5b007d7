package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// The descriptors of the first process in a sandbox, beside 0 to 2.
const (
	insideLine     = 3 // to the process that runs the task
	insideSelf     = 4 // this program's file, which may have no path inside
	insideOut      = 5 // the program's output
	insideErrs     = 6
	insideAccounts = 7 // what bwrap reads, gone by then: /etc/passwd
	insideGroups   = 8 // /etc/group
)

// order is what the process outside says: first what to run, then whom to
// signal. That it says no more, since it is gone, ends everything.
type order struct {
	Run    *program       `json:"run,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	All    bool           `json:"all,omitempty"` // all processes, else the program's group
}

// program is what to run inside.
type program struct {
	Path      string   `json:"path"`
	Argv      []string `json:"argv"`
	Env       []string `json:"env"`
	Work      string   `json:"work"`
	Processes int64    `json:"processes"`
	FileBytes int64    `json:"fileBytes"`
}

// notice is what the process inside says: that it is there, that it started
// the program or could not, how that ended.
type notice struct {
	Ready   bool                `json:"ready,omitempty"`
	Started bool                `json:"started,omitempty"`
	Fault   syscall.Errno       `json:"fault,omitempty"`
	Ended   *syscall.WaitStatus `json:"ended,omitempty"`
}

// Inside is the whole life of the first process in a sandbox. It starts the
// program, takes in orphans, passes signals on and tells how the program ended,
// exactly: bwrap would tell a signal and an exit code of 128 and more alike. It
// decides nothing. When it ends, the kernel ends all that is left.
func Inside() error {
	// A signal that is not caught by the runtime's own ways must not end all
	// processes because one of them sent it to everybody.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGTSTP)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for fd := insideLine; fd <= insideErrs; fd++ {
		syscall.CloseOnExec(fd)
	}
	line := os.NewFile(insideLine, "line")
	defer line.Close()
	in := inside{children: children, tell: json.NewEncoder(line), orders: make(chan order)}
	if err := in.tell.Encode(notice{Ready: true}); err != nil {
		return err
	}
	go in.listen(line) // ends with the line, or this process
	return in.run()
}

type inside struct {
	children chan os.Signal
	orders   chan order // closed when there are no more
	tell     *json.Encoder
	leader   int
	ended    bool
}

func (in *inside) listen(line *os.File) {
	defer close(in.orders)
	for orders := json.NewDecoder(line); ; {
		var o order
		if orders.Decode(&o) != nil {
			return
		}
		in.orders <- o
	}
}

func (in *inside) run() error {
	first, ok := <-in.orders
	if !ok {
		return nil // nobody wants anything
	}
	if first.Run == nil {
		return errors.New("the first order names no program")
	}
	if err := in.start(first.Run); err != nil {
		return in.tell.Encode(notice{Fault: faultOf(err)})
	}
	if err := in.tell.Encode(notice{Started: true}); err != nil {
		return err
	}
	for !in.reap() {
		select {
		case <-in.children:
		case o, ok := <-in.orders:
			if !ok {
				return errors.New("the process that runs the task is gone")
			}
			in.pass(o)
		}
	}
	return nil
}

func faultOf(err error) syscall.Errno {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return syscall.EIO
}

// start starts the program, with the limits that it and its children get.
func (in *inside) start(p *program) (err error) {
	if err := limit(p.Processes, p.FileBytes); err != nil {
		return err
	}
	in.leader, err = syscall.ForkExec(p.Path, p.Argv, &syscall.ProcAttr{
		Dir:   p.Work,
		Env:   p.Env,
		Files: []uintptr{0, insideOut, insideErrs},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	syscall.Close(insideOut) // the log ends when its last writer does
	syscall.Close(insideErrs)
	return err
}

// pass passes a signal on. Who ended meanwhile needs none.
func (in *inside) pass(o order) {
	whom := -in.leader
	if o.All {
		whom = -1 // all but this process
	} else if in.ended {
		return
	}
	syscall.Kill(whom, o.Signal)
	syscall.Kill(whom, syscall.SIGCONT)
}

// reap takes the ends of all that have ended, and reports whether the program
// and all that it started are gone.
func (in *inside) reap() (none bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD: there are none
			return true
		case pid == 0:
			return false
		case pid == in.leader:
			in.ended = true
			if err := in.tell.Encode(notice{Ended: &status}); err != nil {
				fmt.Fprintf(os.Stderr, "tell the program's end: %v\n", err)
			}
		}
	}
}
