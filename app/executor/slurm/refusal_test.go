package slurm

import "testing"

func TestRefusalsDifferFromFailures(t *testing.T) {
	const failed = "sbatch: error: Batch job submission failed: "
	tests := map[string]struct{ refused, full bool }{
		"sbatch: error: invalid partition specified: nowhere\n" + failed + "Invalid partition name specified":                                                    {true, false},
		failed + "Requested node configuration is not available":                                                                                                 {true, false},
		failed + "Invalid account or account/partition combination specified":                                                                                    {true, false},
		"sbatch: unrecognized option '--nonsense'":                                                                                                               {true, false},
		"sbatch: error: QOSMaxSubmitJobPerUserLimit\n" + failed + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)":        {true, true},
		failed + "Unable to contact slurm controller (connect failure)":                                                                                          {false, false},
		failed + "Socket timed out on send/recv operation":                                                                                                       {false, false},
		"sbatch: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory\n" + failed + "Invalid authentication...": {false, false},
		failed + "Zero Bytes were transmitted or received":                                                                                                       {false, false},
		"sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying":                                                                           {false, false},
		"": {false, false},
	}
	for said, want := range tests {
		if refused(said) != want.refused || full(said) != want.full {
			t.Errorf("refused %v, full %v, want %+v: %s", refused(said), full(said), want, said)
		}
	}
}
