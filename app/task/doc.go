// Package task runs one attempt at a job: it reads task.json and writes outcome.json.
//
// The directory of an attempt holds
//
//	task.json      what to run: steps, environment, limits
//	run.json       the process that runs it
//	run.lock       locked as long as that process exists
//	sandbox.json   the first process in the sandbox of a step
//	progress.json  the program's last progress report
//	written.json   how many bytes the task has written, if that is limited
//	share.json     how many it can write, given what others have written
//	log            the program's output; if it is long, the middle is omitted
//	claim/         on a cluster: records which cluster job runs the task
//	stop           exists once the task was asked to stop
//	outcome.json   how it ended; written last
//	work/          the program's current directory and HOME
//	work/out/      its output; durable before outcome.json appears
//
// Every JSON file carries a protocol number, because a task can be older than the service
// that reads its files. A directory is run at most once. If it has neither an outcome nor
// a held lock, the task is lost.
package task
