// Package simulation contains only tests: a deterministic simulation. It runs
// the real service, store and runner on a simulated machine, and a random seed
// determines everything that happens to them.
//
// A seed yields a plan (plan_test.go), which is a list of steps: requests of
// several users, crashes, restarts, a full disk, clock jumps, an unreachable
// executor. All calls of the service to the outside wait at a door
// (door_test.go). If several calls are ready at the same time, the seed
// determines which one goes first. The process may die at any door, before a
// commit or between the commit and the response. Polls, such as the runner's
// queries of tasks and claimed jobs, proceed only when no other call is ready, so
// the speed of the machine has no influence. Time passes in a testing/synctest
// bubble, so an hour takes a few milliseconds.
//
// Invariants are checked at every commit and after every step. Records change
// only by the rules (change_test.go, finish_test.go). Requests get the expected
// answers (request_test.go). Every change of a job has its events, in the order of
// commits (event_test.go), and those who listen hear each of theirs once, also
// across crashes (listener_test.go). Retention deletes everything that is old enough, but
// nothing that is pinned or needed (retention_test.go). Files arrive whole or not at
// all, and stay while a job needs them (upload_test.go); what arrives in parts stays
// although connections break and the process dies (part_test.go). Those who want notice of a
// job's end get it at least once, with one ID, however receivers fail (notice_test.go). The
// store contains what was committed (ledger_test.go). Jobs that can start do start
// (turn_test.go); in which order is tested by package schedule. Nobody uses more than the limits
// allow (limit_test.go). Each end for lack of memory raises that of the job once, as its algorithm
// says (finish_test.go).
//
// Short rows of batches share processes, which are simulated by the files of package task
// (pilot_test.go): they die before any step with a file or at any time, are slow, refuse,
// vanish, outlive the service. Each row ends once, and as its own task did; it comes back to
// the queue only if it never began and never will; nothing is left of pilots at the end
// (row_test.go). The seeds together must have reached all of that (simulation_test.go).
//
// To repeat a seed with its trace:
//
//	go test ./app/test/simulation -seed 4711 -v
//
// To run many seeds, all or the rest of them:
//
//	go test ./app/test/simulation -seeds 10000
//	go test ./app/test/simulation -first 4001 -seeds 10000
package simulation
