package gpu

import (
	"regexp"
	"strconv"
	"strings"

	"molrun/app"
)

// listing is what nvidia-smi says in one look.
type listing struct {
	cards     []card
	instances map[string][]instance // by the UUID of their card
	processes []program
	notes     []string // what else it says
	complete  bool     // it ended without an error, so that what it does not list is not there
}

// card is a card, or only the place of one that is lost.
type card struct {
	index, uuid, bus string // as far as they are known
	memory, used     int64  // bytes; 0: unknown
	load             int    // percent
	divided          bool   // in MIG mode
	fault            app.GPUFault
	text             string // what is wrong
}

// instance is a part of a card (MIG).
type instance struct {
	uuid   string
	memory int64 // bytes; 0: unknown
}

// program is a process that computes on a card or an instance.
type program struct {
	gpu    string
	pid    string
	memory int64 // bytes; 0: unknown
}

// Fields of --query-gpu. All of them exist since driver 450; fewFields exist in older ones,
// which refuse a query with a field that they don't know.
const (
	allFields = "index,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu,ecc.errors.uncorrected.volatile.total,mig.mode.current"
	fewFields = "index,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu"
)

// unknownField is what a driver says to a field that it does not know.
const unknownField = "is not a valid field to query"

// addCards reads lines such as "0, GPU-8f6c…, 00000000:1B:00.0, 81559, 4, 0, 0, Disabled", and
// what else is said: of cards that are lost, and warnings.
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

// addLost adds a lost card, unless it is named a second time.
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
	fields = append(fields, make([]string, 8)...) // those that were not asked for
	c = card{
		index: fields[0], uuid: fields[1], bus: busOf(fields[2]),
		memory: mebibytes(fields[3]), used: mebibytes(fields[4]), divided: fields[7] == "Enabled",
	}
	c.load, _ = strconv.Atoi(fields[5]) // 0 where it is unknown
	c.fault, c.text = faultOf(fields)
	if !strings.HasPrefix(c.uuid, "GPU-") {
		c.uuid = ""
	}
	return c, true
}

// faultOf finds what is wrong with a card. A field that a card does not have is "[N/A]" or
// "[Not Supported]", which is no fault: some have no ECC, and some no memory of their own.
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

// parseLost reads a line such as "Unable to determine the device handle for GPU0000:0B:00.0:
// Unknown Error", which several releases write in several ways.
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

// busOf returns the address of a card on the bus in one spelling, "" if a text has none.
func busOf(text string) string {
	found := busNumber.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	domain, err := strconv.ParseUint(found[1], 16, 32)
	if err != nil {
		return "" // never: it is up to 8 hexadecimal digits
	}
	hex := strings.ToUpper(strconv.FormatUint(domain, 16))
	return strings.Repeat("0", max(0, 4-len(hex))) + hex + ":" + strings.ToUpper(found[2])
}

// mebibytes reads a number of mebibytes; 0 if there is none.
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

// addInstances reads the instances that nvidia-smi -L lists below each card. The name of
// their profile, such as 3g.20gb, says their memory.
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

// addProcesses reads lines such as "GPU-8f6c…, 4711, 1024".
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
