// Command chart keeps what follows from the values of charts/karpenter in step with them: the schema, the list of names
// that the chart checks values by, and docs/reference/chart.md. Its tests run the real Helm on both charts. It stands
// beside the building.
//
//	go run ./internal/chart     # part of make generate
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := generate("."); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// generate writes the files that follow from the values, below the root of the repository.
func generate(root string) error {
	files, err := derived(root)
	if err != nil {
		return err
	}
	for path, content := range files {
		if err := os.WriteFile(filepath.Join(root, path), content, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

// derived are the files that follow from the values, by their path below the root.
func derived(root string) (map[string][]byte, error) {
	values, err := readValues(filepath.Join(root, "charts", "karpenter", "values.yaml"))
	if err != nil {
		return nil, err
	}
	values = append(values, olderNames()...)
	schema, err := schemaOf(values)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		filepath.Join("charts", "karpenter", "values.schema.json"):      schema,
		filepath.Join("charts", "karpenter", "templates", "_known.tpl"): knownNames(values),
		filepath.Join("docs", "reference", "chart.md"):                  page(values),
	}, nil
}
