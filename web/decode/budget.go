package decode

import (
	"sync"

	"molrun/app/base/fault"
	"molrun/app/base/limit"
)

// Budget bounds the memory of all bodies together: it counts the bytes of
// requests that are being received or handled.
type Budget struct {
	limit.Budget
	chunks sync.Pool // *[]byte of largestChunk, reused by all bodies
}

// NewBudget returns a budget of size bytes, of which each holder may use share.
func NewBudget(size, share int64) *Budget {
	return &Budget{Budget: limit.Budget{All: size, Share: share, Spent: errNoBudget, ShareSpent: errNoBudget}}
}

var errNoBudget = fault.Errorf(fault.Unavailable, "The service is reading too many large requests; send this one again in a few seconds.")
