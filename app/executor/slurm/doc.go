// Package slurm runs tasks on a cluster that Slurm looks after.
package slurm
