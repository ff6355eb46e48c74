// Command release writes what people get of Tenon: the controller's image, and everything of a release. It is a module
// of its own, so that what it needs is no part of the controller.
//
//	release image    the controller's image as an OCI layout
//	release all      executables, image, charts, manifests, bills of materials and checksums
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"

	"github.com/tenon-sh/tenon/release/internal/archive"
	"github.com/tenon-sh/tenon/release/internal/chart"
	"github.com/tenon-sh/tenon/release/internal/compile"
	"github.com/tenon-sh/tenon/release/internal/image"
	"github.com/tenon-sh/tenon/release/internal/sbom"
	"github.com/tenon-sh/tenon/release/internal/source"
)

// rootsModule holds the certificates of the image.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to write: image or all")
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	root := flags.String("root", "..", "folder of the repository")
	out := flags.String("out", "../dist", "folder to write to")
	given := flags.String("version", "", "version, such as v1.2.3; without it, the one by tag (git describe)")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	s, err := source.Read(ctx, *root, *given)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tenon-release-*")
	if err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	r := release{source: s, out: *out, work: work}
	switch args[0] {
	case "image":
		return r.image(ctx)
	case "all":
		return r.all(ctx)
	default:
		return fmt.Errorf("%q can't be written: say image or all", args[0])
	}
}

// release is one run: what is built, where it is built and where it goes.
type release struct {
	source    source.Source
	out, work string
}

// image writes the folder image, an OCI layout, and says its digest.
func (r release) image(ctx context.Context) error {
	var executables []image.Executable
	for _, p := range compile.Nodes() {
		file := filepath.Join(r.work, "controller-"+p.OS+"-"+p.Arch)
		r.say("building the controller for %s", p)
		if err := compile.Build(ctx, r.source, compile.Controller, p, file); err != nil {
			return err
		}
		executables = append(executables, image.Executable{Platform: p, File: file})
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	folder := filepath.Join(r.out, "image")
	digest, err := image.Write(folder, r.source, executables)
	if err != nil {
		return err
	}
	for _, e := range executables {
		path := filepath.Join(r.out, r.name("image", e.Platform, ".cdx.json"))
		if err := sbom.Write(path, e.File, r.source, rootsVersion()); err != nil {
			return err
		}
	}
	fmt.Printf("%s  %s  version %s\n", digest, folder, r.source.Bare())
	return nil
}

// all empties the folder and writes everything that a release has.
func (r release) all(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("emptying %s: %w", r.out, err)
	}
	if err := r.image(ctx); err != nil {
		return err
	}
	layout := filepath.Join(r.out, "image")
	if err := archive.Folder(filepath.Join(r.out, "tenon-image_"+r.source.Version+".tar"), layout,
		r.source.Time); err != nil {
		return err
	}
	for _, p := range compile.Downloads() {
		if err := r.download(ctx, p); err != nil {
			return err
		}
	}
	if err := r.charts(); err != nil {
		return err
	}
	if err := archive.Checksums(r.out, "SHA256SUMS"); err != nil {
		return err
	}
	r.say("%s is in %s", r.source.Version, r.out)
	return nil
}

// download writes the executable of a platform as people unpack it there, and its bill of materials.
func (r release) download(ctx context.Context, p compile.Platform) error {
	r.say("building tenon for %s", p)
	name, suffix, write := "tenon", ".tar.gz", archive.TarGz
	if p.OS == "windows" {
		name, suffix, write = "tenon.exe", ".zip", archive.Zip
	}
	file := filepath.Join(r.work, name)
	if err := compile.Build(ctx, r.source, compile.Tenon, p, file); err != nil {
		return err
	}
	err := write(filepath.Join(r.out, r.name("tenon", p, suffix)), r.source.Time, []archive.Entry{
		{Name: name, Mode: 0o755, File: file},
		{Name: "LICENSE", Mode: 0o644, File: filepath.Join(r.source.Root, "LICENSE")},
		{Name: "CHANGELOG.md", Mode: 0o644, File: filepath.Join(r.source.Root, "CHANGELOG.md")},
	})
	if err != nil {
		return err
	}
	return sbom.Write(filepath.Join(r.out, r.name("tenon", p, ".cdx.json")), file, r.source)
}

// charts packages every chart, and writes the CustomResourceDefinitions for those who have no Helm.
func (r release) charts() error {
	folder := filepath.Join(r.source.Root, "charts")
	found, err := chart.Find(folder)
	if err != nil {
		return err
	}
	for _, c := range found {
		path, err := chart.Package(c, r.out, r.source)
		if err != nil {
			return err
		}
		r.say("packaged %s", filepath.Base(path))
	}
	return chart.Manifests(filepath.Join(folder, "karpenter-crd"), filepath.Join(r.out, "crds.yaml"))
}

func (r release) name(what string, p compile.Platform, suffix string) string {
	if what != "tenon" {
		what = "tenon-" + what
	}
	return fmt.Sprintf("%s_%s_%s_%s%s", what, r.source.Version, p.OS, p.Arch, suffix)
}

func (r release) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "release: "+format+"\n", args...)
}

// rootsVersion is the module of the certificates as this program was built with it.
func rootsVersion() sbom.Module {
	m := sbom.Module{Path: rootsModule, Version: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == rootsModule {
				m.Version = dep.Version
			}
		}
	}
	return m
}
