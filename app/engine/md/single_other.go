//go:build !amd64

package md

func addStick32(quads []quad32, list *pairList) { portableStick32(quads, list) }

func addScreen32(quads []quad32, list *pairList, table *screenTable32) {
	portableScreen32(quads, list, table)
}

func prune(quads []quad32, list, to *pairList, reach2 float32) {
	portablePrune(quads, list, to, reach2)
}

func (c *cells) touching(r run, at Vec, distance float32, to []int32) []int32 {
	return c.portableTouching(r, c.float32s(at), distance, to)
}
