package runner

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/results"
	"molrun/app/base/plaintext"
	"molrun/app/base/unit"
	"molrun/app/task"
	"molrun/app/task/protocol"
)

const (
	// searchedTail is how much of the end of the log is searched for known failures.
	searchedTail = 64 << 10
	// shownTail is how much of the end of the log is stored in the job's record.
	shownTail = 4 << 10
)

// failure returns why a task failed, and which resource it ran out of.
func failure(j *app.Job, o *app.Outcome, alg *algorithm.File, tail string) (f *app.Failure, lacks results.Lack) {
	f = &app.Failure{Code: codes[o.Cause], LogTail: lastBytes(tail, shownTail)}
	if f.Code == "" {
		f.Code = app.FailedExit
	}
	if o.Cause == app.CauseExit {
		f.ExitCode = &o.ExitCode
	}
	f.Signal = o.Signal
	if alg != nil && explainable[o.Cause] {
		f.Message, lacks = alg.Failures.Explain([]byte(tail))
	}
	switch {
	case o.Cause == app.CauseMemory:
		lacks = results.LacksMemory
	case lacks == results.LacksNothing && explainable[o.Cause]:
		lacks = results.FindLack(tail, j.Private.Needs.GPUs > 0)
	}
	if lacks != results.LacksNothing {
		f.Code = app.FailedMemory
	}
	if f.Message == "" {
		f.Message = failureMessage(j, o, lacks)
		if line := results.LastErrorLine(tail); explainable[o.Cause] && !strings.Contains(f.Message, line) && !(o.ExitCode == protocol.KilledStatus && strings.Contains(line, "Killed")) {
			f.Message += " Last output: " + line + hiddenFileHint(j, o, alg, line)
		}
	}
	return f, lacks
}

// warnings returns the warnings that make a result doubtful: those that the programs
// reported themselves, and those that the algorithm file recognizes in the log.
func warnings(o *app.Outcome, alg *algorithm.File, tail string) []string {
	all := o.Warnings
	if alg != nil {
		for _, text := range alg.Warnings.FindWarnings([]byte(tail)) {
			all = protocol.AddWarning(all, protocol.CleanWarning(text))
		}
	}
	return all
}

var codes = map[app.Cause]app.FailureCode{
	app.CauseExit:        app.FailedExit,
	app.CauseSignal:      app.FailedSignal,
	app.CauseTimeout:     app.FailedTimeout,
	app.CauseMemory:      app.FailedMemory,
	app.CauseLimit:       app.FailedSignal, // the kernel or the task itself killed the program
	app.CauseDisk:        app.FailedDisk,
	app.CauseStopped:     app.FailedStopped,
	app.CauseCannotStart: app.FailedCannotStart,
	app.CauseNoResult:    app.FailedNoResult,
}

// explainable holds the causes that the program's log can explain in more detail.
var explainable = map[app.Cause]bool{app.CauseExit: true, app.CauseSignal: true, app.CauseNoResult: true}

// signalMeaning explains to users the signals that result from a program's own errors.
var signalMeaning = map[string]string{
	"SIGSEGV": crashed, "SIGBUS": crashed, "SIGILL": crashed, "SIGFPE": crashed, "SIGABRT": crashed,
}

const crashed = " It crashed, often a sign of unexpected input: check the files and settings."

// moreMemory is the advice for a program that ran out of main memory.
const moreMemory = " Give the job more memory, or a smaller input."

// failureMessage explains the cause to the job's user.
func failureMessage(j *app.Job, o *app.Outcome, lacks results.Lack) string {
	program := "The program"
	if o.Step != "" {
		program = fmt.Sprintf("The program of step %q", o.Step)
	}
	if lacks != results.LacksNothing {
		return outOfMemoryMessage(program, j, o, lacks)
	}
	switch o.Cause {
	case app.CauseExit:
		if o.ExitCode == protocol.KilledStatus {
			return fmt.Sprintf("%s was killed (exit status %d), most likely for lack of memory.%s", program, o.ExitCode, moreMemory)
		}
		return fmt.Sprintf("%s ended with exit status %d.", program, o.ExitCode)
	case app.CauseSignal:
		return fmt.Sprintf("%s was ended by signal %s.%s", program, o.Signal, signalMeaning[o.Signal])
	case app.CauseTimeout:
		limit := time.Duration(j.MaxRuntime) * time.Second
		if of := j.Private.LimitOf; of != "" {
			return fmt.Sprintf("%s exceeded the time limit of %v set by %s. Reduce the job, or ask an administrator for another partition.", program, limit, of)
		}
		return fmt.Sprintf("%s exceeded its time limit of %v. Give the job more time (maxRuntimeSeconds) or reduce it.", program, limit)
	}
	if o.Message != "" {
		return o.Message
	}
	switch o.Cause {
	case app.CauseStopped:
		return "The job was stopped."
	case app.CauseCannotStart:
		return "The program could not be started."
	}
	return fmt.Sprintf("%s failed (%s).", program, o.Cause)
}

// outOfMemoryMessage states which resource a program ran out of, and what helps.
func outOfMemoryMessage(program string, j *app.Job, o *app.Outcome, lacks results.Lack) string {
	switch {
	case lacks == results.LacksGPUMemory:
		return program + " ran out of GPU memory. Use a smaller input or a GPU with more memory; more main memory does not help."
	case o.Cause != app.CauseMemory:
		return program + " ran out of memory." + moreMemory
	case o.Message != "":
		return o.Message + moreMemory
	}
	return fmt.Sprintf("%s used more than its %s of memory.%s", program, unit.Bytes(j.Private.Needs.MemoryBytes), moreMemory)
}

// missingOutput returns why a completed task is missing an output that its algorithm file
// requires.
func missingOutput(o *app.Outcome, missing string) (code app.FailureCode, message string) {
	if o.OverMemory {
		return app.FailedMemory, "A process of the job was killed because the job exceeded its memory limit. " + missing + moreMemory
	}
	return app.FailedNoResult, missing
}

// loggedReason explains a failure for the service's log, without any output of the job's
// program.
func loggedReason(j *app.Job, e app.Ending) string {
	if e.Outcome == nil || !explainable[e.Outcome.Cause] {
		return e.Failure.Message
	}
	if e.Outcome.Cause == app.CauseNoResult {
		return fmt.Sprintf("Step %q exited successfully without producing its output.", e.Outcome.Step)
	}
	return failureMessage(j, e.Outcome, results.LacksNothing)
}

// logTail returns the end of an attempt's log as plain text, or "" if there is no log.
func logTail(attemptDir string) string {
	f, err := os.OpenFile(filepath.Join(attemptDir, task.LogFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	from := max(0, info.Size()-searchedTail)
	data, err := io.ReadAll(io.NewSectionReader(f, from, searchedTail))
	if err != nil {
		return ""
	}
	return plainText(string(data))
}

// plainText makes a program's output safe to display: valid UTF-8 without control
// characters. A carriage return, which programs use to overwrite a line, becomes a line
// feed.
func plainText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = plaintext.WithoutControl(s)
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, s)
}

// lastBytes returns at most the last n bytes of s, starting at the beginning of a line if
// there is one.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)-1 {
		return s[i+1:]
	}
	for s != "" && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}
