package slurm

import (
	"fmt"
)

// hopeless are the reasons for waiting that do not go away by themselves. An
// administrator may help, hence the grace.
var hopeless = map[string]string{
	"PartitionConfig":             "no node of its partition can run it: it asks for more than any has, or the partition has none",
	"BadConstraints":              "no node meets what it asks for",
	"DependencyNeverSatisfied":    "it depends on a job that failed",
	"InvalidAccount":              "its account may not be used",
	"InvalidQOS":                  "its QOS may not be used",
	"launch failed requeued held": "a node could not launch it",
	"launch_failed_requeued_held": "a node could not launch it",
	"JobHeldAdmin":                "an administrator of the cluster holds it back",
	"job requeued in held state":  "it was requeued and is held back",
	"PartitionTimeLimit":          "its time limit is longer than its partition allows",
	"AccountNotAllowed":           "its account may not use its partition",
	"QOSNotAllowed":               "its QOS may not be used in its partition",
}

// waits explains to a user why a job waits in Slurm.
func waits(r jobRecord) string {
	if why := hopeless[r.Reason]; why != "" {
		return fmt.Sprintf("Slurm job %s can't start: %s (%s)", r.Target(), why, r.Reason)
	}
	if r.Reason == "" || r.Reason == "None" {
		return fmt.Sprintf("waiting in Slurm as job %s", r.Target())
	}
	return fmt.Sprintf("waiting in Slurm as job %s (%s)", r.Target(), r.Reason)
}
