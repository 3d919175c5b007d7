// Package test contains the code that only tests and measurements use: e2e (the real
// program, as its users see it), faults (the same program under kills, lack of resources
// and false input), simulation (whole services driven by random seeds), conformance (what
// the runner relies on in executors), contract (responses against openapi.yaml), bench (a
// separate program), and helpers: must, fixture, whole, cluster, containertest,
// enginetest.
package test
