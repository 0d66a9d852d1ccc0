// Rerank re-ranks the candidates of a query:
//
//	go run ./rerank MODEL < candidates
//
// A candidate is a line: its id, then its features, separated by spaces or tabs; NaN or nan is a missing one. The best
// comes first in the output.
package main

import (
	"bufio"
	"errors"
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
	lines.Buffer(nil, 1<<28)
	for lines.Scan() {
		number := len(ids) + 1
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			log.Fatalf("line %d is empty: it must have an id and features", number)
		}
		for _, word := range words[1:] {
			value, err := strconv.ParseFloat(word, 32)
			if err != nil && !errors.Is(err, strconv.ErrRange) { // then it is infinite
				log.Fatalf("line %d: '%s' is not a number", number, word)
			}
			features = append(features, float32(value))
		}
		if len(words)-1 != model.Features() {
			log.Fatalf("line %d has %d features, the model has %d", number, len(words)-1, model.Features())
		}
		ids = append(ids, words[0])
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
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
