// Package task runs one attempt at a job: task.json in, outcome.json out.
//
// The directory of an attempt holds
//
//	task.json      what to run: steps, environment, limits
//	run.json       which process runs it
//	run.lock       locked as long as that process lives
//	sandbox.json   which process is the first in the sandbox of a step
//	progress.json  what the program last said of itself
//	log            what it printed, the middle left out where it is long
//	claim/         on a cluster: which of its jobs runs the task
//	stop           there once the end was asked for
//	outcome.json   how it ended; its appearance is the last thing to happen
//	work/          the program's current directory and HOME
//	work/out/      what is kept of it; durable before outcome.json appears
//
// Every JSON carries a protocol number, since a task may be older than the
// service that reads it. A directory is run at most once. Whoever finds no
// outcome and no lock knows that the task is lost.
package task
