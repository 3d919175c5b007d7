// Package start is the command `molrun task`, which executors start for each
// attempt. It is hidden, because no user types it. It communicates by files.
//
//	molrun task DIR [--lock-fd N] [--isolation JSON]   runs the attempt in DIR to its outcome
//	molrun task DIR --pilot [--gauged] [--unsynced] [--lock-fd N] [--isolation JSON]
//	                                                   runs those that are put into DIR one after the other
//	molrun task --inside [--connect SOCKET | --shared] is the first process in a sandbox
//
// A program that imports this package has the command: it runs in this package's
// init function and exits. Go initialises a package once its imports are, and
// picks the one whose path sorts first. So this package comes before nearly all
// that the service needs and a task does not (schemas, metrics, plots), which
// makes a task start some twenty times as fast and its process smaller. A test
// checks what is initialised before it. Tasks that need regular expressions begin a little
// later, in package app/task/gauged.
package start

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"molrun/app/task"
	"molrun/app/task/sandbox"
)

// exitUsage is the exit code for wrong usage, as of all commands.
const exitUsage = 2

func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "task":
		setName()
		if code, later := command(os.Args[2:], nil); !later {
			exit(code)
		}
	case "engine":
		setName()
	}
}

// setName sets the name that ps and top show for this process. It would be "exe"
// or a number, because the process is not started by the program's path.
func setName() {
	name := [16]byte{'m', 'o', 'l', 'r', 'u', 'n'}
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0)
}

// exit ends this process at once. Under the race detector, os.Exit would sleep
// for a second, because a task does not inherit the variable that prevents it.
func exit(code int) {
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0)
}

// Gauged runs the command with gauges, if this process is one, and exits.
func Gauged(gauges task.NewGauge) {
	if len(os.Args) > 1 && os.Args[1] == "task" {
		code, _ := command(os.Args[2:], gauges)
		exit(code)
	}
}

// command does nothing but say so if the task needs gauges and there are none yet.
func command(args []string, gauges task.NewGauge) (code int, later bool) {
	dir, options, first, err := parseArguments(args)
	options.NewGauge = gauges
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "molrun: task:", err)
		return exitUsage, false
	case first.inside && first.shared:
		err = sandbox.InitShared()
	case first.inside:
		err = sandbox.Init(first.socket)
	case gauges == nil && (options.Gauged || !options.Pilot && task.Searches(dir)):
		return 0, true
	case options.Pilot:
		err = task.RunPilot(context.Background(), dir, options)
	default:
		err = task.Run(context.Background(), dir, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "molrun:", err)
	}
	return task.ExitCode(err), false
}

// firstProcess says whether this is the first process in a sandbox, and in a container to
// which socket it connects.
type firstProcess struct {
	inside bool
	shared bool // by steps that run one after the other
	socket string
}

func parseArguments(args []string) (dir string, o task.Options, first firstProcess, err error) {
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		dir, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("task", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&o.LockFD, "lock-fd", 0, "")
	isolation := flags.String("isolation", "", "")
	flags.BoolVar(&o.Pilot, "pilot", false, "")
	flags.BoolVar(&o.Gauged, "gauged", false, "")
	flags.BoolVar(&o.Unsynced, "unsynced", false, "")
	flags.BoolVar(&first.inside, "inside", false, "")
	flags.BoolVar(&first.shared, "shared", false, "")
	flags.StringVar(&first.socket, "connect", "", "")
	if err := flags.Parse(args); err != nil {
		return "", o, first, err
	}
	if flags.NArg() > 0 || (dir == "") != first.inside {
		return "", o, first, errors.New("needs the directory of an attempt, and nothing else but its flags after it")
	}
	o.Isolation, err = task.ParseIsolation(*isolation)
	return dir, o, first, err
}
