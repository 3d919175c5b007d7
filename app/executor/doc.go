// Package executor is the room of the implementations of app.Executor: local runs tasks
// as processes of this machine, slurm as jobs of a Slurm cluster. What the runner relies
// on in both is tested by app/test/conformance.
//
// An executor imports the domain, app/task and the rooms above them in ARCHITECTURE.md; it
// does not know the runner.
package executor
