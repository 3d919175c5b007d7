// Package executor contains the implementations of app.Executor: local runs tasks as
// processes of this machine, slurm as jobs of a Slurm cluster. The behavior of both that
// the runner relies on is tested by app/test/conformance.
//
// An executor imports the domain, app/task and the packages above them in
// ARCHITECTURE.md, but not the runner.
package executor
