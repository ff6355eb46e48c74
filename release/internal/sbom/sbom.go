// Package sbom writes what an executable is made of as a CycloneDX document. It reads what the go command has written
// into the executable, so it says what was linked and not what go.mod asks for.
package sbom

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"

	"github.com/tenon-sh/tenon/release/internal/archive"
	"github.com/tenon-sh/tenon/release/internal/source"
)

// Module is a Go module that is part of a release without being linked into its executable.
type Module struct{ Path, Version string }

// Write reads an executable and writes its bill of materials to a file; extra modules are added to it.
func Write(path, executable string, s source.Source, extra ...Module) error {
	info, err := buildinfo.ReadFile(executable)
	if err != nil {
		return fmt.Errorf("reading what %s is made of: %w", executable, err)
	}
	sum, err := archive.Sum(executable)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("making the bill of materials: %w", err)
	}
	bom := document(info, sum, s, extra)
	if err := cdx.NewBOMEncoder(file, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		_ = file.Close()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return file.Close()
}

func document(info *buildinfo.BuildInfo, sum string, s source.Source, extra []Module) *cdx.BOM {
	platform := setting(info, "GOOS") + "/" + setting(info, "GOARCH")
	main := component(cdx.ComponentTypeApplication, info.Main.Path, s.Version)
	main.Name = "tenon"
	main.BOMRef += "#" + platform
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
	main.Properties = &[]cdx.Property{{Name: "tenon:platform", Value: platform},
		{Name: "tenon:tags", Value: setting(info, "-tags")}}
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}

	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		part := component(cdx.ComponentTypeLibrary, dep.Path, dep.Version)
		if dep.Sum != "" {
			part.Properties = &[]cdx.Property{{Name: "tenon:go.sum", Value: dep.Sum}}
		}
		parts = append(parts, part)
	}
	for _, m := range extra {
		parts = append(parts, component(cdx.ComponentTypeData, m.Path, m.Version))
	}
	refs := make([]string, 0, len(parts))
	for _, part := range parts {
		refs = append(refs, part.BOMRef)
	}
	bom := cdx.NewBOM()
	// The number derives from the executable: the same release has the same number.
	bom.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(main.BOMRef+"@"+sum)).String()
	bom.Metadata = &cdx.Metadata{Timestamp: s.Time.Format(time.RFC3339), Component: &main}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return bom
}

func component(kind cdx.ComponentType, path, version string) cdx.Component {
	name := "pkg:golang/" + path + "@" + version
	return cdx.Component{BOMRef: name, Type: kind, Name: path, Version: version, PackageURL: name}
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
