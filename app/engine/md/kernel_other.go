//go:build !amd64

package md

func addStick(quads []quad, list *pairList) { portableStick(quads, list) }

func addScreen(quads []quad, list *pairList, table *screenTable) { portableScreen(quads, list, table) }
