// Package process finds, limits and kills the processes of a task, by what
// Linux shows of them in /proc and in cgroups. It knows nothing of attempts and
// their directories.
package process
