//go:build !amd64

package md

func addAshbaughHatch(quads []quad, list *pairList) { portableAshbaughHatch(quads, list) }

func addDebyeHueckel(quads []quad, list *pairList, table *debyeHueckelTable) {
	portableDebyeHueckel(quads, list, table)
}
