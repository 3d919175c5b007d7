// Package test contains code that only tests and measurements use: e2e (the real program,
// as its users see it), faults (the same program under crashes, exhausted resources and
// damaged data), simulation (whole services under random scenarios from a seed),
// conformance (what the runner expects of executors), contract (responses checked against
// openapi.yaml), bench (a benchmark program), and the helpers must, fixture, whole,
// cluster, containertest and enginetest.
package test
