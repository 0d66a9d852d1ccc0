// Rerank re-ranks the candidates of a query:
//
//	go run ./rerank MODEL < candidates
//
// A candidate is a line: its id, then its features ("NaN" where one is missing). The best comes first in the output.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"sort"
	"strconv"
	"strings"

	"rankwood"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: rerank MODEL < candidates")
	}
	model, err := rankwood.Load(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	var ids []string
	var features []float32 // of all candidates, one behind the other: one call is faster than many
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		ids = append(ids, words[0])
		for _, word := range words[1:] {
			value, err := strconv.ParseFloat(word, 32)
			if err != nil {
				log.Fatal(err)
			}
			features = append(features, float32(value))
		}
	}

	scores := make([]float64, len(ids))
	if err := model.Score(features, scores); err != nil {
		log.Fatal(err)
	}
	order := make([]int, len(ids))
	for place := range order {
		order[place] = place
	}
	sort.SliceStable(order, func(a, b int) bool { return scores[order[a]] > scores[order[b]] })
	for _, place := range order {
		fmt.Println(ids[place], scores[place])
	}
}
