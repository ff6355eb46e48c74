// Command oracle places the pods of clusters that it reads as JSON, one a line, and writes each placement as a line of
// JSON. It lets the lab, whose module can't link this one, hold placements against kube-scheduler's own plugins.
//
// It stands beside the building: it feeds a Book as the watches would and asks schedule, and decides nothing itself.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// serve answers clusters until there are no more.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	clusters := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	lines := bufio.NewWriter(out)
	answers := json.NewEncoder(lines)
	for {
		var w world
		if err := clusters.Decode(&w); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a cluster: %w", err)
		}
		if err := answers.Encode(place(ctx, &w)); err != nil {
			return fmt.Errorf("write a placement: %w", err)
		}
		if err := lines.Flush(); err != nil {
			return fmt.Errorf("write a placement: %w", err)
		}
	}
}
