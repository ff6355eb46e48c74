package sbom

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/tenon-sh/tenon/release/internal/source"
)

// The test's own executable is made of known modules.
func TestBillOfThisExecutable(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := source.Source{Version: "v1.2.3", Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	first, second := filepath.Join(t.TempDir(), "a.json"), filepath.Join(t.TempDir(), "b.json")
	for _, path := range []string{first, second} {
		if err := Write(path, executable, s, Module{Path: "example.com/list", Version: "v0.1.0"}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(second)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("the same executable gave two documents (%v)", err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if main := bom.Metadata.Component; main.Name != "tenon" || main.Version != "v1.2.3" || main.Hashes == nil {
		t.Errorf("it is about %+v", main)
	}
	checkParts(t, &bom, "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go"),
		"pkg:golang/example.com/list@v0.1.0")
}

func checkParts(t *testing.T, bom *cdx.BOM, want ...string) {
	t.Helper()
	var got []string
	for _, part := range *bom.Components {
		got = append(got, part.PackageURL)
	}
	if !slices.Equal(got, want) {
		t.Errorf("made of %v, want %v", got, want)
	}
}

// What a module is replaced by is what was linked.
func TestModulesOfAnExecutable(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/x"}, Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:abc"},
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}},
	}}
	bom := document(info, "00", source.Source{Version: "v1.2.3"}, nil)
	checkParts(t, bom, "pkg:golang/std@1.26.8", "pkg:golang/example.com/a@v1.0.0", "pkg:golang/example.com/c@v2.0.0")
	if sum := (*(*bom.Components)[1].Properties)[0].Value; sum != "h1:abc" {
		t.Errorf("sum %s", sum)
	}
	if all := *(*bom.Dependencies)[0].Dependencies; len(all) != 3 {
		t.Errorf("it depends on %v", all)
	}
}

func TestWhatIsNoExecutable(t *testing.T) {
	if err := Write(filepath.Join(t.TempDir(), "a.json"), "sbom_test.go", source.Source{}); err == nil {
		t.Error("a text has a bill of materials")
	}
}
