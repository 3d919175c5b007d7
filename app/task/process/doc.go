// Package process finds, limits and kills the processes of a task by means of /proc and
// cgroups. It is independent of attempts and their directories.
package process
