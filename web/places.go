package web

import (
	"molrun/app/base/fault"
	"molrun/web/edge"
)

// places bounds how many requests do what lasts long, in all and of one API key.
type places struct {
	slots        chan struct{}
	perKey       *edge.Shares
	ofKey, ofAll string // what a client is told that finds none
}

// enter takes a place for the key until leave is called, or refuses it.
func (p places) enter(key string) (leave func(), err error) {
	release, ok := p.perKey.Take(key)
	if !ok {
		return nil, fault.Errorf(fault.RateLimited, "%s", p.ofKey)
	}
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots; release() }, nil
	default:
		release()
		return nil, fault.Errorf(fault.Unavailable, "%s", p.ofAll)
	}
}
