// Package slurm runs tasks on a cluster that Slurm looks after, by its commands
// sbatch, squeue, sacct and scancel.
//
// The shared folder, which this machine and all nodes see, holds
//
//	attempts/<job>/<attempt>/  an attempt's directory; package task says what is in it
//	submissions/<name>         which attempts were submitted under that name, a line each
//	submissions/<name>.job     the number that Slurm gave them
//	bin/molrun-<digest>        this program, as nodes run it
//
// A task is submitted under a name that is used for nothing else, alone or as
// one task of an array, and the list of what the name means is on disk before
// sbatch is called. So whatever happens then, to this process or to Slurm, the
// jobs are found again by name. That sbatch fails does not say that there is no
// job: only when Slurm, asked several times, knows none, it is submitted again,
// under the same name. Should two jobs turn up after all, the first one on a
// node makes the folder claim in the attempt's directory, and the other ends at
// once.
//
// Slurm says that a task has ended, outcome.json says how. Of a command that
// fails nothing follows.
package slurm
