package algorithms

import (
	"fmt"

	"molrun/app/algorithm"
)

// Catalogue joins the built-in algorithms and those in the site's folder, if
// there is one. Files with mistakes are left out, and each mistake is reported.
func Catalogue(folder string, report func(algorithm.Mistake)) (*algorithm.Catalogue, error) {
	all, err := BuiltIn()
	if err != nil {
		return nil, err
	}
	if folder != "" {
		site, mistakes, err := Load(folder)
		if err != nil {
			return nil, fmt.Errorf("read the folder of algorithms: %w", err)
		}
		for _, m := range mistakes {
			report(m)
		}
		all = append(all, site...)
	}
	return algorithm.NewCatalogue(all)
}
