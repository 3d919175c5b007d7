// Package test is the room of code that only tests and measurements use: e2e (the real
// program, as its users see it), faults (the same program killed, starved and lied to),
// simulation (whole services driven by random seeds), conformance (what the runner relies on
// in executors), contract (answers against openapi.yaml), bench (a program of its own), and
// helpers: must, fixture, whole, cluster, containertest, enginetest.
package test
