package rankwood_test

import (
	"fmt"
	"log"
	"sort"

	"rankwood"
)

// The candidates of a query are scored in one call, then sorted.
func Example() {
	model, err := rankwood.Load("testdata/two_trees.rw")
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	candidates := []string{"first", "second", "third"}
	features := []float32{
		0.5, 9.0, // of "first"
		0.6, -1.0, // of "second"
		0.6, 3.0, // of "third"
	}
	scores := make([]float64, len(candidates))
	if err := model.Score(features, scores); err != nil {
		log.Fatal(err)
	}
	order := []int{0, 1, 2}
	sort.SliceStable(order, func(a, b int) bool { return scores[order[a]] > scores[order[b]] })
	for _, place := range order {
		fmt.Println(candidates[place], scores[place])
	}
	// Output:
	// third 123
	// first 121
	// second 112
}
