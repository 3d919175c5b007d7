package md

func vectorLoops() []loops {
	var all []loops
	if hasAVX2 {
		all = append(all, loops{
			"AVX2",
			func(quads []quad, l *pairList) { avx2Stick(&quads[0], &l.start[0], &l.tiles[0], len(quads)) },
			func(quads []quad, l *pairList, table *screenTable) {
				avx2Screen(&quads[0], &l.start[0], &l.tiles[0], len(quads), table)
			},
		})
	}
	if hasAVX512 {
		all = append(all, loops{
			"AVX-512",
			func(quads []quad, l *pairList) { avx512Stick(&quads[0], &l.start[0], &l.tiles[0], len(quads)) },
			func(quads []quad, l *pairList, table *screenTable) {
				avx512Screen(&quads[0], &l.start[0], &l.tiles[0], len(quads), table)
			},
		})
	}
	return all
}
