// Package simulation contains only tests: a deterministic simulation. It runs the real
// service, store and runner on a simulated machine, and a random seed determines
// everything that happens to them.
//
// A seed yields a plan (plan_test.go), which is a list of steps: requests of several
// users, crashes, restarts, a full disk, clock jumps, an unreachable executor. All calls
// from the service to the outside wait at a door (door_test.go). If several calls are
// ready at the same time, the seed determines which one proceeds first. The process can
// die at any door, before a commit or between the commit and the response. Polls, such as
// the runner's status queries, proceed only when no other call is ready, so the speed of
// the machine has no influence. Time passes in a testing/synctest bubble, so an hour
// takes a few milliseconds.
//
// Invariants are checked at every commit and after every step:
//
//   - Records change only according to the rules (change_test.go, finish_test.go).
//   - Requests get the expected responses (request_test.go).
//   - Every change of a job has its events, in commit order (event_test.go), and
//     each listener receives each of its events once, even across crashes
//     (listener_test.go).
//   - Retention deletes everything that is old enough, but nothing that is pinned or
//     needed (retention_test.go).
//   - Files arrive as a whole or not at all, and are kept while a job needs them
//     (upload_test.go); files sent in parts survive broken connections and crashes
//     of the process (part_test.go).
//   - Recipients of a notification of a job's end get it at least once, always with
//     the same ID, however receivers fail (notice_test.go).
//   - The store contains what was committed (ledger_test.go).
//   - Jobs that can start do start (turn_test.go); package schedule tests their
//     order.
//   - No user or organization exceeds its limits (limit_test.go).
//   - Each time a job runs out of memory, its memory is raised once, by the rules of
//     its algorithm (finish_test.go).
//
// Short jobs of batches share processes, called workers, which are simulated with the
// files of package task (worker_test.go). Workers die at any time or before any step with
// a file, are slow, fail to start, vanish, or outlive the service. Each such job ends
// once, in the same way as its task. It returns to the queue only if it has not begun and
// never will. In the end nothing is left of the workers (row_test.go). Taken together,
// the seeds must have covered all of these cases (simulation_test.go).
//
// To repeat a seed and print its trace:
//
//	go test ./app/test/simulation -seed 4711 -v
//
// To run many seeds, or to continue such a run from a given seed:
//
//	go test ./app/test/simulation -seeds 10000
//	go test ./app/test/simulation -first 4001 -seeds 10000
package simulation
