// Package start implements the command `molrun task`, which executors start for each
// attempt. It is hidden, because users never type it. It communicates through files.
//
//	molrun task DIR [--lock-fd N] [--isolation JSON]   runs the attempt in DIR to its outcome
//	molrun task DIR --worker [--gauged] [--unsynced] [--lock-fd N] [--isolation JSON]
//	                                                   runs the attempts assigned to DIR one after the other
//	molrun task --inside [--connect SOCKET | --shared] runs as the first process in a sandbox
//
// A program that imports this package has the command, which runs in the package's init
// function and exits. Go initializes a package after its imports, and among the packages
// that are ready picks the one whose path sorts first. Therefore, this package is
// initialized before nearly everything that the service needs and a task does not
// (schemas, metrics, plots), which makes a task start some twenty times as fast and its
// process smaller. A test checks what is initialized before it. Tasks that need regular
// expressions start a little later, in package app/task/gauged.
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

// exitUsage is the exit code for wrong usage, the same as for all commands.
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

// setName sets the name that ps and top show for this process. It would otherwise be
// "exe" or a number, because the process is not started by the program's path.
func setName() {
	name := [16]byte{'m', 'o', 'l', 'r', 'u', 'n'}
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0)
}

// exit exits immediately. Under the race detector, os.Exit would sleep for a second,
// because a task does not inherit the variable that prevents it.
func exit(code int) {
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0)
}

// RunWithParsers runs the command with progress parsers, if this process is `molrun task`, and
// exits.
func RunWithParsers(gauges task.NewProgressParser) {
	if len(os.Args) > 1 && os.Args[1] == "task" {
		code, _ := command(os.Args[2:], gauges)
		exit(code)
	}
}

// command runs the command. If the task needs progress parsers and gauges is nil, it only
// reports that in later.
func command(args []string, gauges task.NewProgressParser) (code int, later bool) {
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
	case gauges == nil && (options.Gauged || !options.Worker && task.NeedsProgressParser(dir)):
		return 0, true
	case options.Worker:
		err = task.RunWorker(context.Background(), dir, options)
	default:
		err = task.Run(context.Background(), dir, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "molrun:", err)
	}
	return task.ExitCode(err), false
}

// firstProcess says whether this is the first process in a sandbox, and to which socket
// it connects in a container.
type firstProcess struct {
	inside bool
	shared bool // used by steps that run one after the other
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
	flags.BoolVar(&o.Worker, "worker", false, "")
	flags.BoolVar(&o.Gauged, "gauged", false, "")
	flags.BoolVar(&o.Unsynced, "unsynced", false, "")
	flags.BoolVar(&first.inside, "inside", false, "")
	flags.BoolVar(&first.shared, "shared", false, "")
	flags.StringVar(&first.socket, "connect", "", "")
	if err := flags.Parse(args); err != nil {
		return "", o, first, err
	}
	if flags.NArg() > 0 || (dir == "") != first.inside {
		return "", o, first, errors.New("expected the directory of an attempt, followed only by flags")
	}
	o.Isolation, err = task.ParseIsolation(*isolation)
	return dir, o, first, err
}
