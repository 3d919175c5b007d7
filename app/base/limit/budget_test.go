package limit

import (
	"errors"
	"sync"
	"testing"

	"molrun/app/test/must"
)

var errSpent, errShareSpent = errors.New("all is spent"), errors.New("the share is spent")

func TestHoldersOfABudgetLeaveSomeToOthers(t *testing.T) {
	b := &Budget{All: 10, Share: 6, Spent: errSpent, ShareSpent: errShareSpent}
	for _, step := range []struct {
		holder string
		amount int64
		want   error
	}{
		{"ann", 6, nil},
		{"ann", 1, errShareSpent},
		{"bob", 5, errSpent},
		{"bob", 4, nil}, // a rejected amount is not taken
		{"ann", -2, nil},
		{"bob", 2, nil},
		{"ann", 1, errSpent},
		{"ann", 3, errShareSpent}, // the error that the holder can act on
		{"ann", -4, nil},
		{"", 4, nil}, // belongs to no holder
		{"bob", -6, nil},
		{"", 6, nil}, // exceeds a share
		{"", -10, nil},
	} {
		if step.amount < 0 {
			b.Give(step.holder, -step.amount)
			continue
		}
		if err := b.Take(step.holder, step.amount); !errors.Is(err, step.want) {
			t.Errorf("%+v: %v", step, err)
		}
	}
	must.Equal(t, "taken", b.taken, 0)
	must.Equal(t, "holders that are remembered", len(b.byHolder), 0)
}

func TestABudgetMayHaveOneBoundAlone(t *testing.T) {
	all, share := &Budget{All: 2, Spent: errSpent}, &Budget{Share: 2, ShareSpent: errShareSpent}
	for _, holder := range []string{"ann", "bob"} {
		must.OK(t, share.Take(holder, 2))
		must.OK(t, all.Take(holder, 1))
	}
	if err := all.Take("cy", 1); !errors.Is(err, errSpent) {
		t.Errorf("beyond all: %v", err)
	}
	if err := share.Take("bob", 1); !errors.Is(err, errShareSpent) {
		t.Errorf("beyond a share: %v", err)
	}
	share.Give("cy", 0) // a holder that has taken nothing
	must.Equal(t, "holders", len(share.byHolder), 2)
}

func TestABudgetIsForManyAtOnce(t *testing.T) {
	b := &Budget{All: 3, Share: 2, Spent: errSpent, ShareSpent: errShareSpent}
	var wg sync.WaitGroup
	for _, holder := range []string{"ann", "bob", "cy"} {
		for range 4 {
			wg.Go(func() {
				for range 100 {
					if release, err := b.One(holder); err == nil {
						release()
					}
				}
			})
		}
	}
	wg.Wait()
	must.Equal(t, "taken", b.taken, 0)
	must.Equal(t, "holders that are remembered", len(b.byHolder), 0)
}
