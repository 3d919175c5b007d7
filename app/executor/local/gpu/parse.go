package gpu

import (
	"regexp"
	"strconv"
	"strings"

	"molrun/app"
)

// listing is the output of nvidia-smi from one check.
type listing struct {
	cards     []card
	instances map[string][]instance // by UUID of their card
	processes []program
	notes     []string // other messages
	complete  bool     // it exited without an error, so unlisted cards do not exist
}

// card is a card, or only the location of a lost one.
type card struct {
	index, uuid, bus string // as far as known
	memory, used     int64  // bytes; 0 if unknown
	load             int    // percent
	divided          bool   // in MIG mode
	fault            app.GPUFault
	text             string // description of the fault
}

// instance is a MIG instance of a card.
type instance struct {
	uuid   string
	memory int64 // bytes; 0 if unknown
}

// program is a process that computes on a card or an instance.
type program struct {
	gpu    string
	pid    string
	memory int64 // bytes; 0 if unknown
}

// Fields of --query-gpu. All of them exist since driver 450; fewFields exist in older
// drivers, which reject a query with an unknown field.
const (
	allFields = "index,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu,ecc.errors.uncorrected.volatile.total,mig.mode.current"
	fewFields = "index,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu"
)

// unknownField is a driver's message for a field that it does not support.
const unknownField = "is not a valid field to query"

// addCards parses lines such as "0, GPU-8f6c…, 00000000:1B:00.0, 81559, 4, 0, 0,
// Disabled", and other messages: about lost cards, and warnings.
func (l *listing) addCards(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if c, ok := parseCard(line); ok {
			l.cards = append(l.cards, c)
		} else if c, ok := parseLost(line); ok {
			l.addLost(c)
		} else {
			l.notes = append(l.notes, strings.TrimSuffix(line, "."))
		}
	}
}

// addLost adds a lost card, unless it is listed already.
func (l *listing) addLost(lost card) {
	for _, c := range l.cards {
		if c.bus != "" && c.bus == lost.bus || c.bus == lost.bus && c.index == lost.index {
			return
		}
	}
	l.cards = append(l.cards, lost)
}

func parseCard(line string) (c card, ok bool) {
	fields := strings.Split(line, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	if _, err := strconv.Atoi(fields[0]); err != nil || len(fields) < 3 {
		return c, false
	}
	fields = append(fields, make([]string, 8)...) // fields that were not queried
	c = card{
		index: fields[0], uuid: fields[1], bus: busOf(fields[2]),
		memory: mebibytes(fields[3]), used: mebibytes(fields[4]), divided: fields[7] == "Enabled",
	}
	c.load, _ = strconv.Atoi(fields[5]) // 0 if unknown
	c.fault, c.text = faultOf(fields)
	if !strings.HasPrefix(c.uuid, "GPU-") {
		c.uuid = ""
	}
	return c, true
}

// faultOf returns the fault of a card. A field that a card does not have is "[N/A]" or
// "[Not Supported]", which is not a fault: some cards have no ECC, and some have no
// dedicated memory.
func faultOf(fields []string) (fault app.GPUFault, text string) {
	values := strings.ToLower(strings.Join(fields, "\n"))
	switch errors, _ := strconv.ParseInt(fields[6], 10, 64); {
	case strings.Contains(values, "gpu is lost"):
		return app.GPULost, "is lost"
	case strings.Contains(values, "requires reset"):
		return app.GPUNeedsReset, "needs a reset"
	case !strings.HasPrefix(fields[1], "GPU-"):
		return app.GPULost, "is lost (" + plain(fields[1]) + ")"
	case strings.Contains(fields[3], "ERR!") || strings.Contains(fields[3], "Unknown Error"):
		return app.GPUNeedsReset, "is in an error state (" + plain(fields[3]) + ")"
	case errors > 0:
		return app.GPUMemoryError, "has uncorrected memory errors: " + fields[6]
	}
	return "", ""
}

func plain(value string) string { return strings.Trim(value, "[]") }

var (
	lostCard  = regexp.MustCompile(`(?i)unable to (?:determine|detect) the device handle for gpu|gpu is lost|fallen off the bus`)
	busNumber = regexp.MustCompile(`(?i)([0-9a-f]{1,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])`)
	gpuNumber = regexp.MustCompile(`(?i)\bgpu ?(\d{1,2})(?::|$)`)
)

// parseLost parses a line such as "Unable to determine the device handle for
// GPU0000:0B:00.0: Unknown Error", whose wording differs between releases.
func parseLost(line string) (c card, ok bool) {
	if !lostCard.MatchString(line) {
		return c, false
	}
	c = card{bus: busOf(line), fault: app.GPULost, text: "is lost"}
	if number := gpuNumber.FindStringSubmatch(line); number != nil {
		c.index = number[1]
	}
	if c.bus == "" && c.index == "" {
		return c, false
	}
	if i := strings.LastIndex(line, ": "); i >= 0 {
		why, _, _ := strings.Cut(line[i+2:], ".")
		if why = strings.TrimSpace(why); why != "" && !strings.EqualFold(why, "GPU is lost") {
			c.text += " (" + why + ")"
		}
	}
	return c, true
}

// busOf returns the bus address of a card in normalized form, or "" if text contains
// none.
func busOf(text string) string {
	found := busNumber.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	domain, err := strconv.ParseUint(found[1], 16, 32)
	if err != nil {
		return "" // impossible: it has up to 8 hexadecimal digits
	}
	hex := strings.ToUpper(strconv.FormatUint(domain, 16))
	return strings.Repeat("0", max(0, 4-len(hex))) + hex + ":" + strings.ToUpper(found[2])
}

// mebibytes parses a number of mebibytes and returns bytes, 0 if there is no number.
func mebibytes(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " MiB"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n << 20
}

var (
	listedCard     = regexp.MustCompile(`^GPU \d+: .*\(UUID: (GPU-[^)]+)\)`)
	listedInstance = regexp.MustCompile(`^\s+MIG (\S+)\s.*\(UUID: (MIG-[^)]+)\)`)
	profileMemory  = regexp.MustCompile(`\.(\d+)gb`)
)

// addInstances parses the instances that nvidia-smi -L lists below each card. The name of
// their profile, such as 3g.20gb, contains their memory.
func (l *listing) addInstances(list string) {
	l.instances = map[string][]instance{}
	of := ""
	for line := range strings.Lines(list) {
		if c := listedCard.FindStringSubmatch(line); c != nil {
			of = c[1]
		} else if i := listedInstance.FindStringSubmatch(line); i != nil {
			in := instance{uuid: i[2]}
			if m := profileMemory.FindStringSubmatch(i[1]); m != nil {
				in.memory = mebibytes(m[1]) << 10
			}
			l.instances[of] = append(l.instances[of], in)
		}
	}
}

// addProcesses parses lines such as "GPU-8f6c…, 4711, 1024".
func (l *listing) addProcesses(text string) {
	for line := range strings.Lines(text) {
		fields := strings.Split(line, ",")
		if len(fields) < 3 {
			continue
		}
		gpu, pid := strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1])
		if _, err := strconv.Atoi(pid); err != nil {
			continue
		}
		l.processes = append(l.processes, program{gpu, pid, mebibytes(strings.TrimSpace(fields[2]))})
	}
}
