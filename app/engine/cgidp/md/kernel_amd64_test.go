package md

func vectorLoops() []loops {
	var all []loops
	add := func(name string,
		stick func(*quad, *int32, *tile, int),
		screen func(*quad, *int32, *tile, int, *screenTable),
	) {
		all = append(all, loops{
			name,
			func(quads []quad, l *pairList) { stick(&quads[0], &l.start[0], &l.tiles[0], len(quads)) },
			func(quads []quad, l *pairList, table *screenTable) {
				screen(&quads[0], &l.start[0], &l.tiles[0], len(quads), table)
			},
		})
	}
	if hasAVX2 {
		add("AVX2", avx2Stick, avx2Screen)
	}
	if hasAVX512 {
		add("AVX-512", avx512Stick, avx512Screen)
	}
	return all
}
