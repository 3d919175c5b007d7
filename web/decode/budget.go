package decode

import (
	"sync"

	"molrun/app/base/fault"
	"molrun/app/base/limit"
)

// Budget limits the total memory of all bodies: it counts the bytes of requests that are
// being received or handled.
type Budget struct {
	limit.Budget
	chunks sync.Pool // *[]byte of size largestChunk, reused by all bodies
}

// NewBudget returns a budget of size bytes, of which each holder can use share.
func NewBudget(size, share int64) *Budget {
	return &Budget{Budget: limit.Budget{All: size, Share: share, Spent: errNoBudget, ShareSpent: errNoBudget}}
}

var errNoBudget = fault.Errorf(fault.Unavailable, "Too many large requests are being read; send this one again in a few seconds.")
