package cgidp

import (
	"math"
	"strings"
	"time"
)

// Settings are complete and within their bounds. Lengths of runs that depend on
// the number of residues are with each Sequence.
type Settings struct {
	Sequences      []Sequence
	Cores          int     // replicas and sequences computed at once
	Temperature    float64 // K
	PH             float64
	IonicStrength  float64 // mol/L
	Equilibration  float64 // fraction of the steps that is discarded
	Replicas       int     // independent runs of each sequence
	Seed           uint64
	SampleEvery    int64   // steps between samples of the observables
	Friction       float64 // 1/ps
	ChargedTermini bool

	fasta string // reference to the FASTA file, if the sequences come from one
}

// limit is a number that may be set, its default and bounds.
type limit struct {
	key               string
	preset, low, high float64
	unit              string
	advice            func(l limit, value float64) string // on one out of bounds; may be nil
}

var (
	limitCores         = limit{"cores", 1, 1, 64, "", nil}
	limitTemperature   = limit{"temperature_K", 298, 273.15, 373, " K", kelvin}
	limitPH            = limit{"pH", 7, 2, 12, "", nil}
	limitIonicStrength = limit{"ionic_strength_M", 0.15, 0.001, 2, " mol/L", molar}
	limitSteps         = limit{"steps", 0, 1000, 2e9, "", moreReplicas}
	limitEquilibration = limit{"equilibration", 0.1, 0, 0.9, ", the fraction of the steps to discard", percent}
	limitReplicas      = limit{"replicas", 1, 1, 64, "", nil}
	limitSeed          = limit{"seed", 1, 0, 1<<53 - 1, "", nil}
	limitFrameEvery    = limit{"frame_every", 0, 100, 1e7, " steps", nil}
	limitSampleEvery   = limit{"sample_every", 200, 10, 1e5, " steps", nil}
	limitFriction      = limit{"friction_per_ps", 0.01, 0.001, 10, " per ps", nil}
)

// kelvin helps those who think in degrees Celsius.
func kelvin(l limit, celsius float64) string {
	return l.instead(celsius+273.15, plain(celsius)+" °C is %s K")
}

// molar helps those who think in millimoles per litre.
func molar(l limit, millimolar float64) string {
	return l.instead(millimolar/1000, plain(millimolar)+" mmol/L is %s mol/L")
}

// percent helps those who think in hundredths.
func percent(l limit, hundredths float64) string {
	return l.instead(hundredths/100, plain(hundredths)+" %% is %s")
}

func moreReplicas(l limit, steps float64) string {
	if steps < l.high {
		return ""
	}
	return "use replicas for more"
}

// keys are all settings there are.
var keys = []string{
	"sequences", "fasta", "names", limitCores.key, limitTemperature.key, limitPH.key, limitIonicStrength.key,
	limitSteps.key, limitEquilibration.key, limitReplicas.key, limitSeed.key, limitFrameEvery.key,
	limitSampleEvery.key, limitFriction.key, "charged_termini",
}

// Lengths of runs.
const (
	defaultStepsPerResidue = 20_000
	defaultLeastSteps      = 500_000
	maxFrames              = 20_000
)

// Parse checks settings given as JSON, in which null stands for absent, and fills
// in defaults. If the setting fasta is used, fasta is the content of that file;
// while it is nil, the sequences are left unchecked and Run will refuse. All
// faults are returned at once; without any, the settings are not nil.
func Parse(settings, fasta []byte) (*Settings, []Fault) {
	r, err := newReader(settings)
	if err != nil {
		return nil, []Fault{faultf(loc(), faultJSON, "settings must be one JSON object: %v", err)}
	}
	r.checkKeys()
	sources := r.sources(fasta)
	s := &Settings{
		Sequences:      r.sequences(sources),
		Cores:          int(r.integer(limitCores)),
		Temperature:    r.number(limitTemperature),
		PH:             r.number(limitPH),
		IonicStrength:  r.number(limitIonicStrength),
		Equilibration:  r.number(limitEquilibration),
		Replicas:       int(r.integer(limitReplicas)),
		Seed:           uint64(r.integer(limitSeed)),
		SampleEvery:    r.integer(limitSampleEvery),
		Friction:       r.number(limitFriction),
		ChargedTermini: r.boolean("charged_termini", true),
	}
	s.fasta, _ = r.text("fasta")
	r.lengths(s)
	if len(r.faults) > 0 {
		return nil, r.faults
	}
	for i := range s.Sequences {
		s.Sequences[i].Warnings = s.warnings(&s.Sequences[i])
	}
	return s, nil
}

// Warnings are those of all sequences. A text that holds for several is given
// once; one that does not hold for all begins with the names it holds for.
func (s *Settings) Warnings() []string {
	var texts []string
	names := map[string][]string{}
	for _, q := range s.Sequences {
		for _, w := range q.Warnings {
			if names[w] == nil {
				texts = append(texts, w)
			}
			names[w] = append(names[w], q.Name)
		}
	}
	for i, w := range texts {
		if len(names[w]) < len(s.Sequences) {
			texts[i] = strings.Join(names[w], ", ") + ": " + w
		}
	}
	return texts
}

// Estimate is about how long a run takes on an idle machine.
func (s *Settings) Estimate() time.Duration {
	total, longest := 0.0, 0.0
	for i := range s.Sequences {
		one := s.Sequences[i].cost()
		total += one * float64(s.Replicas)
		longest = max(longest, one)
	}
	seconds := max(longest, total/float64(s.Cores))
	return time.Duration(seconds * float64(time.Second))
}

// cost is about how many seconds one replica takes on one core.
func (q *Sequence) cost() float64 {
	return float64(q.Steps) * 0.08e-6 * math.Pow(float64(len(q.Residues)), 1.1)
}

func (s *Settings) conditions() conditions {
	return conditions{
		temperature:    s.Temperature,
		pH:             s.PH,
		ionicStrength:  s.IonicStrength,
		friction:       s.Friction,
		chargedTermini: s.ChargedTermini,
	}
}
