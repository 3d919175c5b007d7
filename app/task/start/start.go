// Package start is the command `molrun task`, which executors start for each
// attempt. It is hidden: nobody types it, and its protocol is files.
//
//	molrun task DIR [--lock-fd N] [--isolation JSON]   runs the attempt in DIR to its outcome
//	molrun task --inside                               is the first process in a sandbox
//
// To import it is to have the command: it runs while the program initialises
// and ends the program. Go initialises packages in the order of their paths as
// soon as what they import is, so this one's turn comes before that of nearly
// all that the service needs and a task does not (schemas, metrics, plots). That
// makes a task's start some twenty times as fast and its process smaller; a
// test counts what was initialised before it.
package start

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"

	"molrun/app/task"
)

// exitUsage is that of all commands.
const exitUsage = 2

func init() {
	if len(os.Args) > 1 && os.Args[1] == "task" {
		exit(command(os.Args[2:]))
	}
}

// exit ends this process at once. os.Exit would sleep for a second under the
// race detector, whose settings do not reach a task.
func exit(code int) {
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0)
}

func command(args []string) int {
	dir, options, inside, err := parse(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "molrun: task:", err)
		return exitUsage
	}
	if inside {
		err = task.Inside()
	} else {
		err = task.Run(context.Background(), dir, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "molrun:", err)
	}
	return task.ExitCode(err)
}

func parse(args []string) (dir string, o task.Options, inside bool, err error) {
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		dir, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("task", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&o.LockFD, "lock-fd", 0, "")
	isolation := flags.String("isolation", "", "")
	flags.BoolVar(&inside, "inside", false, "")
	if err := flags.Parse(args); err != nil {
		return "", o, false, err
	}
	if flags.NArg() > 0 || (dir == "") != inside {
		return "", o, false, errors.New("needs the directory of an attempt, and nothing else but its flags after it")
	}
	o.Isolation, err = task.ParseIsolation(*isolation)
	return dir, o, inside, err
}
