// Package events sends events to listeners as they happen: places in the order of
// events, and the hub that wakes who listens. It knows no job.
package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Entry is an event as it is stored, of an organization or another owner.
type Entry struct {
	ID       ID
	Owner    string
	Value    []byte
	Attached any // of an entry that was just stored: what it is in memory
}

// ID is a place in the events of one organization: the number of an event, and a
// checksum over it and all before it. After a restore from a backup, numbers are
// given again to other events; the checksum detects that.
type ID struct {
	Number uint64 // 0 is before the first event
	Sum    uint32
}

// String returns the form in which clients keep an ID, such as "17-0badcafe".
func (id ID) String() string { return fmt.Sprintf("%d-%08x", id.Number, id.Sum) }

var errID = errors.New("an event's ID is a number, a hyphen and eight digits")

// ParseID parses what String returns, and nothing else.
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
