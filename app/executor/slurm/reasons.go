package slurm

import (
	"fmt"
)

// permanentReasons lists wait reasons that do not resolve on their own. An administrator might
// help, hence the grace period.
var permanentReasons = map[string]string{
	"PartitionConfig":             "no node of its partition can run it: it requests more than any node has, or the partition has no nodes",
	"BadConstraints":              "no node meets its constraints",
	"DependencyNeverSatisfied":    "it depends on a job that failed",
	"InvalidAccount":              "its account is not permitted",
	"InvalidQOS":                  "its QOS is not permitted",
	"launch failed requeued held": "a node could not launch it",
	"launch_failed_requeued_held": "a node could not launch it",
	"JobHeldAdmin":                "a cluster administrator has put it on hold",
	"job requeued in held state":  "it was requeued and is on hold",
	"PartitionTimeLimit":          "its time limit is longer than its partition allows",
	"AccountNotAllowed":           "its account is not permitted in its partition",
	"QOSNotAllowed":               "its QOS is not permitted in its partition",
}

// waitReason explains to a user why a job waits in Slurm.
func waitReason(r jobRecord) string {
	if why := permanentReasons[r.Reason]; why != "" {
		return fmt.Sprintf("Slurm job %s can't start: %s (%s)", r.Target(), why, r.Reason)
	}
	if r.Reason == "" || r.Reason == "None" {
		return fmt.Sprintf("waiting in Slurm as job %s", r.Target())
	}
	return fmt.Sprintf("waiting in Slurm as job %s (%s)", r.Target(), r.Reason)
}
