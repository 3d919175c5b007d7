package cgidp

import "strings"

// sources finds the sequences, wherever the settings have them.
func (r *reader) sources(fasta []byte) []source {
	switch inline, file := r.has("sequences"), r.has("fasta"); {
	case inline && file:
		r.fault(loc("fasta"), faultConflict, "give either sequences or fasta, not both")
	case inline:
		return r.inlineSources()
	case file:
		return r.fileSources(fasta)
	default:
		r.fault(loc("sequences"), faultMissing, "give sequences: amino acids in one-letter code, or a FASTA file as fasta")
	}
	return nil
}

func (r *reader) fileSources(fasta []byte) []source {
	if _, ok := r.text("fasta"); !ok {
		r.fault(loc("fasta"), faultType, "fasta must name a file, not %s", kindOf(r.raw["fasta"]))
		return nil
	}
	if fasta == nil {
		return nil
	}
	return r.textSources("fasta", fasta)
}

func (r *reader) inlineSources() []source {
	const key = "sequences"
	if text, ok := r.text(key); ok {
		return r.textSources(key, []byte(text))
	}
	items, ok := r.texts(key)
	if !ok {
		r.fault(loc(key), faultType, "sequences must be a list of sequences or one FASTA text, not %s", kindOf(r.raw[key]))
		return nil
	}
	var sources []source
	for i, item := range items {
		if item == nil {
			continue
		}
		if records, ok := r.records(*item, i); ok {
			sources = append(sources, source{append(records, record{})[0], i, loc(key, i)})
		}
	}
	return r.counted(key, len(items), sources)
}

// records reads an item of sequences, which may hold one.
func (r *reader) records(item string, index int) ([]record, bool) {
	records := parseFASTA([]byte(item))
	if len(records) > 1 {
		r.fault(loc("sequences", index), faultSequence, "item %d of sequences holds %d sequences; make each an item of its own",
			index+1, len(records))
		return nil, false
	}
	return records, true
}

// textSources reads one FASTA text.
func (r *reader) textSources(key string, text []byte) []source {
	if len(text) > MaxFASTA {
		r.fault(loc(key), faultSequence, "%s has more than %d MiB; give at most %d sequences of at most %d residues",
			key, MaxFASTA>>20, maxSequences, maxResidues)
		return nil
	}
	text, instead := plainText(text)
	if instead != "" {
		r.fault(loc(key), faultSequence, "%s is %s; save the sequences as plain text in FASTA format: a line \">name\" above the letters of each",
			key, instead)
		return nil
	}
	var sources []source
	for i, rec := range r.headed(key, parseFASTA(text)) {
		sources = append(sources, source{rec, i, loc(key)})
	}
	return r.counted(key, len(sources), sources)
}

// headed refuses a text of which one cannot be sure where sequences begin: what
// is not meant as one chain must not be simulated as one.
func (r *reader) headed(key string, records []record) []record {
	switch {
	case len(records) == 0 || records[0].headed:
	case len(records) > 1:
		r.fault(loc(key), faultSequence, "%s has text before the first header, %q; give it a header (a line \">name\") or remove it",
			key, shortened(records[0].letters, 20))
		return records[1:]
	case records[0].severalLines():
		r.fault(loc(key), faultSequence, "%s has %d lines but no header, so these may be several sequences; write a line \">name\" above each sequence",
			key, len(records[0].lines))
		return nil
	}
	return records
}

// counted checks how many sequences there are.
func (r *reader) counted(key string, count int, sources []source) []source {
	switch {
	case count > maxSequences:
		r.fault(loc(key), faultSequence, "%s holds %d sequences; at most %d can be simulated in one job: make several jobs",
			key, count, maxSequences)
		return nil
	case count == 0 && !r.faulty(key):
		r.fault(loc(key), faultSequence, "%s holds no sequence; give at least one", key)
	}
	return sources
}

// sequences checks sources and gives them their names.
func (r *reader) sequences(sources []source) []Sequence {
	taken := map[string]int{}
	names := r.names(len(sources), taken)
	sequences := make([]Sequence, len(sources))
	for k, s := range sources {
		name := defaultName(s.id, s.index)
		if s.index < len(names) && names[s.index] != nil {
			name = *names[s.index]
		} else {
			r.checkName(name, s.loc, taken, s.index)
		}
		r.faults = append(r.faults, checkLetters(s, name)...)
		sequences[k] = Sequence{Name: name, Residues: s.letters}
	}
	return sequences
}

// checkName checks one name against the rules and those before it. Letter case
// makes no difference, as it makes none to the file systems of many readers.
func (r *reader) checkName(name string, where []any, taken map[string]int, index int) {
	if wrong := checkName(name); wrong != "" {
		r.fault(where, faultName, "the name %q of sequence %d %s", name, index+1, wrong)
	}
	lower := strings.ToLower(name)
	if first, ok := taken[lower]; ok {
		r.fault(where, faultName, "sequences %d and %d are both called %q; give them different names", first+1, index+1, name)
		return
	}
	taken[lower] = index
}

// names returns the setting names. How many there are cannot be judged while the
// sequences are wrong themselves or not known.
func (r *reader) names(sequences int, taken map[string]int) []*string {
	if !r.has("names") {
		return nil
	}
	names, ok := r.texts("names")
	switch {
	case !ok:
		r.fault(loc("names"), faultType, "names must be a list of names, not %s", kindOf(r.raw["names"]))
	case sequences > 0 && len(names) != sequences && !r.faulty("sequences"):
		r.fault(loc("names"), faultName, "there %s for %s; give one name for each",
			verbal(len(names), "name"), plural(sequences, "sequence"))
	}
	for i, name := range names {
		if name != nil {
			r.checkName(*name, loc("names", i), taken, i)
		}
	}
	return names
}

// lengths sets how long each sequence runs and how often frames are saved.
func (r *reader) lengths(s *Settings) {
	steps, every := r.integer(limitSteps), r.integer(limitFrameEvery)
	if steps == 0 && (r.has("steps") || len(s.Sequences) == 0) {
		return // a fault is on the list already, or the sequences are not known
	}
	shortest, longest := steps, steps
	for i := range s.Sequences {
		q := &s.Sequences[i]
		q.setLengths(steps, every)
		if i == 0 {
			shortest = q.Steps
		}
		shortest, longest = min(shortest, q.Steps), max(longest, q.Steps)
	}
	r.checkFrameEvery(every, shortest, longest)
	r.checkSamples(s, shortest)
}

// setLengths takes what is set, or what suits the number of residues if it is 0.
func (q *Sequence) setLengths(steps, frameEvery int64) {
	q.Steps, q.FrameEvery = steps, frameEvery
	if steps == 0 {
		q.Steps = max(defaultLeastSteps, defaultStepsPerResidue*int64(len(q.Residues)))
	}
	if frameEvery == 0 {
		q.FrameEvery = defaultFrameEvery(q.Steps)
	}
}

// defaultFrameEvery saves at most a thousand frames, at whole thousands of steps.
func defaultFrameEvery(steps int64) int64 {
	every := max(1000, (steps+999)/1000)
	return (every + 999) / 1000 * 1000
}

func (r *reader) checkFrameEvery(every, shortest, longest int64) {
	switch {
	case every == 0:
	case every > shortest:
		r.fault(loc("frame_every"), faultConflict, "frame_every is %d, but the run has %d steps: no frame would be saved; choose at most %d",
			every, shortest, shortest)
	case longest/every > maxFrames:
		r.fault(loc("frame_every"), faultConflict, "frame_every of %d saves %d frames in %d steps; at most %d are possible: choose at least %d",
			every, longest/every, longest, maxFrames, (longest+maxFrames-1)/maxFrames)
	}
}

func (r *reader) checkSamples(s *Settings, steps int64) {
	if s.SampleEvery > 0 && steps/s.SampleEvery <= discarded(s.Equilibration, steps)/s.SampleEvery {
		r.fault(loc("sample_every"), faultConflict, "sample_every of %d leaves no sample after equilibration in %d steps; choose at most %d",
			s.SampleEvery, steps, steps-discarded(s.Equilibration, steps))
	}
}

// verbal is plural with the verb before it.
func verbal(n int, noun string) string {
	if n == 1 {
		return "is " + plural(n, noun)
	}
	return "are " + plural(n, noun)
}
