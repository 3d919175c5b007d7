// Package events delivers events to listeners as they happen: IDs give positions in the
// sequence of events, and the hub wakes listeners. It is independent of jobs.
package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Entry is a stored event of an organization or another owner.
type Entry struct {
	ID       ID
	Owner    string
	Value    []byte
	Attached any // in-memory value of an entry that was just stored
}

// ID is a position in the events of one organization: the number of an event, and a
// checksum over it and all earlier ones. After a restore from a backup, numbers are
// reused for other events, which the checksum detects.
type ID struct {
	Number uint64 // 0 is before the first event
	Sum    uint32
}

// String returns the form that clients store, such as "17-0badcafe".
func (id ID) String() string { return fmt.Sprintf("%d-%08x", id.Number, id.Sum) }

var errID = errors.New("an event's ID is a number, a hyphen and eight digits")

// ParseID parses exactly the form that String returns.
func ParseID(text string) (ID, error) {
	number, sum, found := strings.Cut(text, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !found {
		return ID{}, errID
	}
	s, err := strconv.ParseUint(sum, 16, 32)
	if id := (ID{n, uint32(s)}); err == nil && id.String() == text {
		return id, nil
	}
	return ID{}, errID
}
