// Package sandbox runs programs in a bubblewrap sandbox: they see the system's own
// folders, what the algorithm lists and their work directory, and nothing else of the
// machine.
//
// The first process in the sandbox is molrun itself, running [Init]. It starts the step's
// program and reports to the process outside how the program ended.
//
// A sandbox can be [Shared] by steps that run one after the other.
package sandbox
