// Package slurm runs tasks on a Slurm cluster.
//
// The shared directory, visible to this machine and all nodes, contains
//
//	attempts/<job>/<attempt>/  an attempt's directory, described in package task
//	workers/<worker>-<number>/   a process that runs short jobs
//	submissions/<name>         the list of attempts submitted under that name
//	submissions/<name>.job     the Slurm job ID of the submission
//	bin/molrun-<digest>        this program, as nodes run it
//
// A task is submitted under a unique name, alone or as one task of an array. The list of
// a name is durable before sbatch is called, so the jobs are found again by name whatever
// happens to this process or to Slurm. A failure of sbatch does not mean that there is no
// job: the name is submitted again only when Slurm, queried several times, knows none. If
// two jobs appear after all, the first to run on a node creates the directory claim in
// the attempt's directory, and the other exits at once.
//
// Short jobs of a batch share a process, a worker: see package runner. Each process has a
// directory workers/<worker>-<number>, described in package task, and is submitted like a
// task.
//
// Slurm decides whether a task has ended; outcome.json records how. A failed command
// leads to no conclusion.
package slurm
