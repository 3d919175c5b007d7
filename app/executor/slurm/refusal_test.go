package slurm

import "testing"

func TestRefusalsDifferFromFailures(t *testing.T) {
	const failed = "sbatch: error: Batch job submission failed: "
	type reading struct {
		refused            bool
		full               string
		unreached, tooLong bool
	}
	tests := map[string]reading{
		"sbatch: error: invalid partition specified: nowhere\n" + failed + "Invalid partition name specified":                                                    {refused: true},
		failed + "Requested node configuration is not available":                                                                                                 {refused: true},
		failed + "Invalid account or account/partition combination specified":                                                                                    {refused: true},
		"sbatch: unrecognized option '--nonsense'":                                                                                                               {refused: true},
		"sbatch: error: QOSMaxSubmitJobPerUserLimit\n" + failed + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)":        {refused: true, full: "QOSMaxSubmitJobPerUserLimit"},
		failed + "Unable to contact slurm controller (connect failure)":                                                                                          {unreached: true},
		failed + "Unable to contact slurm controller (send failure)":                                                                                             {},
		failed + "Invalid job array specification":                                                                                                               {refused: true, tooLong: true},
		"sbatch: error: AssocGrpSubmitJobsLimit\n" + failed + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)":            {refused: true, full: "AssocGrpSubmitJobsLimit"},
		failed + "Socket timed out on send/recv operation":                                                                                                       {},
		"sbatch: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory\n" + failed + "Invalid authentication...": {},
		failed + "Zero Bytes were transmitted or received":                                                                                                       {},
		"sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying":                                                                           {},
		"": {},
	}
	for said, want := range tests {
		if got := (reading{refused(said), submitLimitHit(said), unreached(said), tooLong(said)}); got != want {
			t.Errorf("%+v, want %+v: %s", got, want, said)
		}
	}
}
