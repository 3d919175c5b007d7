// Package simulation holds tests alone: it runs the service, its records and
// its runner as they are, on a machine that is made up, and lets one random
// seed decide everything that happens to them.
//
// A seed gives a plan (plan_test.go), a list of steps: requests of several
// users, crashes, restarts, a full disk, a clock that jumps, an executor that
// does not answer. All that the service asks of the world goes through a door
// (door_test.go): where several things want to happen at once the seed says
// which is first, and the process may die at any door, before its commit or
// between the commit and the answer. Who only asks how things stand, as the
// runner does of tasks and claimed jobs, is let through when nothing else
// happens at that moment, so the speed of the machine decides nothing. Time
// passes in a bubble of testing/synctest, so an hour takes a few milliseconds.
//
// What has to be so is checked at every commit and after every step: the
// records change by the rules alone (change_test.go, ending_test.go), requests
// get the answers that the records call for (request_test.go), nothing that is
// pinned or needed goes by itself, and all else that is old enough does
// (keep_test.go), the store is what was committed (ledger_test.go), and whatever
// can start does, in fair order (turn_test.go).
//
// To repeat a seed and see what happened:
//
//	go test ./app/simulation -seed 4711 -v
//
// To try many:
//
//	go test ./app/simulation -seeds 10000
package simulation
