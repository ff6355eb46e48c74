// Package chart packages Helm charts with the version of the release, with Helm's own library, so that the same chart
// gives the same archive.
package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/tenon-sh/tenon/release/internal/source"
)

// Find lists the charts in a folder: what has a Chart.yaml.
func Find(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*", chartutil.ChartfileName))
	if err != nil {
		return nil, fmt.Errorf("looking for charts: %w", err)
	}
	for i, file := range files {
		files[i] = filepath.Dir(file)
	}
	slices.Sort(files)
	return files, nil
}

// Package writes the archive of a chart into a folder and returns its path. The chart and its images get the version of
// the release, and every file the release's time.
func Package(folder, out string, s source.Source) (string, error) {
	c, err := load(folder)
	if err != nil {
		return "", err
	}
	c.Metadata.Version, c.Metadata.AppVersion = s.Bare(), s.Bare()
	c.ModTime, c.SchemaModTime = s.Time, s.Time
	for _, files := range [][]*common.File{c.Raw, c.Templates, c.Files} {
		for _, file := range files {
			file.ModTime = s.Time
		}
	}
	path, err := chartutil.Save(c, out)
	if err != nil {
		return "", fmt.Errorf("packaging the chart %s: %w", folder, err)
	}
	return path, nil
}

func load(folder string) (*v2.Chart, error) {
	c, err := loader.LoadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the chart %s: %w", folder, err)
	}
	// Go's own files stand in the chart's folder because a Go package embeds its manifests; no chart needs them.
	drop := func(file *common.File) bool { return strings.HasSuffix(file.Name, ".go") }
	c.Files = slices.DeleteFunc(c.Files, drop)
	return c, nil
}

// Manifests renders a chart with its own values into one file, for those who apply manifests without Helm.
func Manifests(folder, path string) error {
	c, err := load(folder)
	if err != nil {
		return err
	}
	values, err := util.ToRenderValues(c, nil, common.ReleaseOptions{Name: c.Name(), Namespace: "kube-system",
		IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return fmt.Errorf("reading the values of %s: %w", folder, err)
	}
	rendered, err := engine.Render(c, values)
	if err != nil {
		return fmt.Errorf("rendering %s: %w", folder, err)
	}
	var names []string
	for name := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return errors.New(folder + " renders no manifest")
	}
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rendered[name]), "---"))
		if text != "" {
			out.WriteString("---\n" + text + "\n")
		}
	}
	return os.WriteFile(path, []byte(out.String()), fs.FileMode(0o644))
}
