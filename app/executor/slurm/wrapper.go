package slurm

import (
	"strings"

	"molrun/app/base/plaintext"
)

// Exit statuses of the wrapper if the task did not begin. molrun task also exits with 76
// in a directory that was run before.
const (
	exitNoDir   = 75 // the node sees none or only part of the shared folder
	exitClaimed = 76 // another job runs or ran the attempt
)

// wrapper is the batch script: it finds the attempt's directory in the list, waits until
// it sees the program, claims the directory, and execs molrun task. From the node's
// environment it passes on only the devices that Slurm granted. Its PATH is that of
// sbatch, which might contain only Slurm's folder.
type wrapper struct {
	list      string // path
	program   string // path
	isolation string // JSON
	path      string // PATH for programs
	gpus      bool
	worker    bool
}

const script = `#!/bin/sh
PATH=${PATH:+$PATH:}/usr/bin:/bin
umask 077
index=${SLURM_ARRAY_TASK_ID:-1}
row=$(sed -n "$((index + 1))p" LIST) && [ -n "$row" ] || exit 75
token=${row%% *}
dir=${row#* }
cd "$dir" || exit 75
tries=0
until [ -x PROGRAM ]; do
	tries=$((tries + 1))
	[ "$tries" -le 60 ] || exit 75
	sleep 1
done
mkdir claim || exit 76
printf '%s\n' "$SLURM_JOB_ID" >claim/job.new && mv claim/job.new claim/job || exit 75
exec >>shim.log 2>&1
exec env -i PATH=PATHS MOLRUN_TASK="$token" DEVICES PROGRAM task "$dir"FLAGS --isolation ISOLATION
`

// devices passes on the granted devices, for jobs with GPUs only.
const devices = `${CUDA_VISIBLE_DEVICES+"CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"}`

func (w wrapper) String() string {
	granted := ""
	if w.gpus {
		granted = devices
	}
	flags := ""
	if w.worker {
		flags = " --worker --gauged"
	}
	return strings.NewReplacer(
		"LIST", plaintext.ShellWord(w.list), "PATHS", plaintext.ShellWord(w.path), "DEVICES", granted, "FLAGS", flags,
		"PROGRAM", plaintext.ShellWord(w.program), "ISOLATION", plaintext.ShellWord(w.isolation),
	).Replace(script)
}
