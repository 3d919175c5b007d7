//go:build !amd64

package md

func addAshbaughHatch32(quads []quad32, list *pairList) { portableAshbaughHatch32(quads, list) }

func addDebyeHueckel32(quads []quad32, list *pairList, table *debyeHueckelTable32) {
	portableDebyeHueckel32(quads, list, table)
}

func prune(quads []quad32, list, to *pairList, reach2 float32) {
	portablePrune(quads, list, to, reach2)
}

func (c *cells) touching(r run, at Vec, distance float32, to []int32) []int32 {
	return c.portableTouching(r, c.float32s(at), distance, to)
}
