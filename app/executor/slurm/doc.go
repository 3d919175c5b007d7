// Package slurm runs tasks on a Slurm cluster.
//
// The shared directory, which this machine and all nodes see, holds
//
//	attempts/<job>/<attempt>/  an attempt's directory, described in package task
//	pilots/<pilot>-<number>/   a process that runs short rows
//	submissions/<name>         the list of attempts submitted under that name
//	submissions/<name>.job     the number that Slurm gave them
//	bin/molrun-<digest>        this program, as nodes run it
//
// A task is submitted under a unique name, alone or as one task of an array. The
// list of a name is durable before sbatch is called. So whatever happens then, to
// this process or to Slurm, the jobs are found again by name. A failure of sbatch
// does not mean that there is no job: only when Slurm, asked several times, knows
// none, the name is submitted again. If two jobs appear after all, the first one
// on a node makes the directory claim in the attempt's directory, and the other
// ends at once.
//
// Short rows of a batch share a process, a pilot: see package runner. Each process has a
// directory pilots/<pilot>-<number>, described in package task, and is submitted as if it
// were a task.
//
// Slurm says that a task has ended; outcome.json says how. Nothing follows from a
// command that fails.
package slurm
