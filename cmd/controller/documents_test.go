package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/cloudprovider/aws/awscloud"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/kwokcloud"
	"github.com/tenon-sh/tenon/operator"
)

// reference is the text of a page of the reference.
func reference(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func flags() *pflag.FlagSet { return operator.NewCommand(awscloud.New(), kwokcloud.New()).Flags() }

// TestSettingsAreThoseOfTheProgram compares the page with the flags, in both directions, with their defaults.
func TestSettingsAreThoseOfTheProgram(t *testing.T) {
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\|([^|]*)\\|").FindAllStringSubmatch(reference(t,
		"settings.md"), -1) {
		if _, twice := documented[m[1]]; twice {
			t.Errorf("docs/reference/settings.md describes --%s twice", m[1])
		}
		documented[m[1]] = strings.TrimSpace(m[2])
	}
	flags().VisitAll(func(flag *pflag.Flag) {
		told, ok := documented[flag.Name]
		if !ok {
			t.Errorf("docs/reference/settings.md does not describe --%s", flag.Name)
			return
		}
		delete(documented, flag.Name)
		if flag.Name == "snapshot-dir" { // it depends on the machine
			return
		}
		value, _, _ := strings.Cut(strings.TrimPrefix(told, "`"), "`")
		if !sameSetting(value, flag.DefValue) {
			t.Errorf("docs/reference/settings.md says that the default of --%s is %q; it is %q", flag.Name, value,
				flag.DefValue)
		}
	})
	for name := range documented {
		t.Errorf("docs/reference/settings.md describes --%s, which the program does not have", name)
	}
}

// sameSetting compares two values: 10m and 10m0s are the same, and so are an empty list and nothing.
func sameSetting(a, b string) bool {
	x, errX := time.ParseDuration(a)
	y, errY := time.ParseDuration(b)
	if errX == nil && errY == nil {
		return x == y
	}
	return a == strings.Trim(b, "[]")
}

// TestAdditionsNameFlagsThatExist looks at the table of flags that the contract does not have.
func TestAdditionsNameFlagsThatExist(t *testing.T) {
	_, table, found := strings.Cut(reference(t, "additions.md"), "## Flags of `tenon controller`")
	table, _, _ = strings.Cut(table, "\n## ")
	names := regexp.MustCompile("`--([a-z0-9-]+)`").FindAllStringSubmatch(table, -1)
	if !found || len(names) < 20 {
		t.Fatalf("only %d flags in docs/reference/additions.md", len(names))
	}
	for _, m := range names {
		if flags().Lookup(m[1]) == nil {
			t.Errorf("docs/reference/additions.md names --%s, which the program does not have", m[1])
		}
	}
}

// TestPagesForTroublesNameFlagsThatExist looks at the flags of the controller that these pages tell people to set.
func TestPagesForTroublesNameFlagsThatExist(t *testing.T) {
	found := 0
	for _, page := range []string{"../tasks/troubleshooting.md", "../tasks/migrate.md", "limits.md", "../faq.md"} {
		for _, m := range regexp.MustCompile("`--([a-z0-9-]+)").FindAllStringSubmatch(reference(t, page), -1) {
			found++
			if flags().Lookup(m[1]) == nil {
				t.Errorf("%s names --%s, which the program does not have", page, m[1])
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d flags were found", found)
	}
}
