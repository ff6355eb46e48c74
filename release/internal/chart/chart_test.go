package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/tenon-sh/tenon/release/internal/source"
)

var charts = filepath.Join("..", "..", "..", "charts")

func TestChartsOfTheRepository(t *testing.T) {
	folders, err := Find(charts)
	if err != nil || !slices.Contains(folders, filepath.Join(charts, "karpenter-crd")) {
		t.Fatalf("%v, %v", folders, err)
	}
	s := source.Source{Version: "v1.2.3-rc.1", Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	for _, folder := range folders {
		var packed [2][]byte
		for i := range packed {
			path, err := Package(folder, t.TempDir(), s)
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Base(folder) + "-1.2.3-rc.1.tgz"; filepath.Base(path) != want {
				t.Errorf("%s, want %s", path, want)
			}
			c, err := loader.LoadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if c.Metadata.Version != "1.2.3-rc.1" || c.Metadata.AppVersion != "1.2.3-rc.1" {
				t.Errorf("%s: %+v", path, c.Metadata)
			}
			for _, file := range c.Files {
				if strings.HasSuffix(file.Name, ".go") {
					t.Errorf("%s carries %s", path, file.Name)
				}
			}
			if packed[i], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(packed[0], packed[1]) {
			t.Errorf("%s: the same chart gave two archives", folder)
		}
	}
}

func TestManifestsOfTheCRDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crds.yaml")
	if err := Manifests(filepath.Join(charts, "karpenter-crd"), path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh",
		"ec2nodeclasses.karpenter.k8s.aws"} {
		if !strings.Contains(string(text), "\n  name: "+want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(charts, "karpenter-crd", "templates",
		"*.yaml")); strings.Count(string(text), "---\n") != len(files) {
		t.Errorf("%d documents of %d files", strings.Count(string(text), "---\n"), len(files))
	}
}
