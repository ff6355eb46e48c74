package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The newer on-demand prices: tables in the source of a module that its authors make from the Pricing API. They are
// read as data, from the syntax tree; nothing of the module is compiled or linked. The sum is what go.sum would hold,
// were the module required: it is checked here instead, so that its hundreds of dependencies stay out of this module.
const (
	newerModule = "github.com/aws/karpenter-provider-aws@v1.14.1"
	newerSum    = "h1:WGtIQTQcxpElYMdWfWuPwaF2+9muR+hYhPZsTtoY8Gs="
	newerFolder = "pkg/providers/pricing"
	newerFiles  = "zz_generated.pricing_*.go"
)

// dated are the on-demand prices of a place on one day.
type dated struct {
	date   string
	prices map[string]string
}

// newerPrices reads the tables from a folder; by default from the pinned module.
func newerPrices(folder string) (map[string]dated, error) {
	if folder == "" {
		dir, err := newerDir()
		if err != nil {
			return nil, err
		}
		folder = filepath.Join(dir, newerFolder)
	}
	paths, err := filepath.Glob(filepath.Join(folder, newerFiles))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%s has no files %s with prices (%v)", folder, newerFiles, err)
	}
	out := map[string]dated{}
	for _, path := range paths {
		if err := readTables(path, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// newerDir downloads the pinned module, if it is not there yet, and says where it is.
func newerDir() (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", newerModule)
	cmd.Dir = os.TempDir() // in a module the command would look for the module among its requirements
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	var answer struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(text, &answer); jsonErr == nil && answer.Error != "" {
		return "", fmt.Errorf("downloading %s: %s", newerModule, answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", newerModule, err)
	}
	if answer.Sum != newerSum {
		return "", fmt.Errorf("%s has the sum %s, expected %s; do not use it", newerModule, answer.Sum, newerSum)
	}
	return answer.Dir, nil
}

// madeOn is the remark that says when a table was made.
var madeOn = regexp.MustCompile(`generated at (\d{4}-\d{2}-\d{2})T`)

// readTables reads a map of places to maps of types to prices.
func readTables(path string, out map[string]dated) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("parsing %s: %w", path, err)
	}
	date := ""
	for _, group := range file.Comments {
		if m := madeOn.FindStringSubmatch(group.Text()); m != nil {
			date = m[1]
		}
	}
	if date == "" {
		return fmt.Errorf("%s does not say when it was made", path)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		place, prices, ok := placeEntry(n)
		if ok {
			out[place] = dated{date: date, prices: prices}
		}
		return !ok
	})
	return nil
}

// placeEntry reads "us-east-1": {"m5.large": 0.096, …}; false for any other part of the file.
func placeEntry(n ast.Node) (place string, prices map[string]string, ok bool) {
	pair, isPair := n.(*ast.KeyValueExpr)
	if !isPair {
		return "", nil, false
	}
	body, isMap := pair.Value.(*ast.CompositeLit)
	place, isText := unquoted(pair.Key)
	if !isMap || !isText {
		return "", nil, false
	}
	prices = map[string]string{}
	for _, element := range body.Elts {
		if entry, isEntry := element.(*ast.KeyValueExpr); isEntry {
			name, named := unquoted(entry.Key)
			number, isNumber := entry.Value.(*ast.BasicLit)
			if named && isNumber {
				prices[name] = price(number.Value)
			}
		}
	}
	return place, prices, true
}

func unquoted(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

// bareMetal tells a type that is a whole machine. Of these the newer tables have the price of the dedicated tenancy, a
// tenth above what an instance of the default tenancy pays.
func bareMetal(name string) bool {
	_, size, _ := strings.Cut(name, ".")
	return strings.HasPrefix(size, "metal")
}
