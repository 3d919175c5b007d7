package input

// maxFrames is the maximum number of frames in a trajectory.
const maxFrames = 20_000

// CheckFrames checks the frame interval for runs of between shortest and longest steps.
func (r *Reader) CheckFrames(every, shortest, longest int64) {
	switch {
	case every > shortest:
		r.Fault(Loc("frame_every"), Conflict, "frame_every is %d, but the run has %d steps: no frame would be saved; choose at most %d",
			every, shortest, shortest)
	case longest/every > maxFrames:
		r.Fault(Loc("frame_every"), Conflict, "frame_every of %d saves %d frames in %d steps; at most %d are possible: choose at least %d",
			every, longest/every, longest, maxFrames, (longest+maxFrames-1)/maxFrames)
	}
}

// CheckSamples checks that there is at least one sample after equilibration.
func (r *Reader) CheckSamples(every, steps, discarded int64) bool {
	if steps/every > discarded/every {
		return true
	}
	r.Fault(Loc("sample_every"), Conflict, "sample_every of %d leaves no sample after equilibration in %d steps; choose at most %d",
		every, steps, steps-discarded)
	return false
}
