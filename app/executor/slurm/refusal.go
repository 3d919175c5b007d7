package slurm

import (
	"regexp"
	"slices"
	"strings"
)

// rejections are sbatch messages for a job that is not and will not be in Slurm.
var rejections = []string{
	"invalid", "not permitted", "permission denied", "requested node configuration is not available",
	"requested partition configuration not available", "more processors requested than permitted",
	"memory specification can not be satisfied", "unrecognized option", "violates accounting/qos policy",
	"requires an argument", "unable to open file", "no partition specified",
}

// refused reports whether Slurm rejected a job. A failed authentication is not a
// rejection: munge may be back in a moment.
func refused(said string) bool {
	said = strings.ToLower(said)
	if strings.Contains(said, "authentication") || strings.Contains(said, "munge") || strings.Contains(said, "credential") {
		return false
	}
	return slices.ContainsFunc(rejections, func(words string) bool { return strings.Contains(said, words) })
}

// accountRefused reports whether Slurm rejected a job because of its account. An
// administrator's configuration error must not fail waiting jobs.
func accountRefused(said string) bool { return strings.Contains(said, "Invalid account") }

// rejectionOf returns the reason for a rejection. It can take several lines: the first
// often names the value that the last calls invalid.
func rejectionOf(said string) string {
	var parts []string
	for line := range strings.Lines(said) {
		part := strings.TrimPrefix(lastLine(line), "Batch job submission failed: ")
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// submitLimit matches the names of limits on the number of submitted jobs, such as
// AssocMaxSubmitJobLimit and QOSGrpSubmitJobsLimit.
var submitLimit = regexp.MustCompile(`\w*(?:Max|Grp)Submit\w*`)

// submitLimitHit returns the limit on submitted jobs that was reached, or "" if none was.
func submitLimitHit(said string) string { return submitLimit.FindString(said) }

// unreached reports whether sbatch could not reach the controller, so that no job was
// submitted. If it lost the connection later, a job may have been.
func unreached(said string) bool {
	return strings.Contains(said, "Unable to contact slurm controller (connect failure)")
}

// tooLong reports whether an array has more tasks than the cluster accepts.
func tooLong(said string) bool { return strings.Contains(said, "Invalid job array specification") }

// sizeError is the rejection of an array that might be accepted in parts.
type sizeError struct {
	refusal error
	long    bool // it exceeds the maximum array size
}

func (e *sizeError) Error() string { return e.refusal.Error() }
func (e *sizeError) Unwrap() error { return e.refusal }
