// Package image makes the controller's OCI image from its executable alone, without a container runtime, a registry or
// a base image. The same executables and the same time give the same digest.
package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tenon-sh/tenon/release/internal/archive"
	"github.com/tenon-sh/tenon/release/internal/compile"
	"github.com/tenon-sh/tenon/release/internal/source"
)

// Executable is the file that the image of a platform carries.
type Executable struct {
	Platform compile.Platform
	File     string
}

// Write makes an OCI layout in a folder, which it empties first: one index with an image for each executable. It
// returns the digest of that index, by which the image can be pulled.
func Write(folder string, s source.Source, executables []Executable) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, e := range executables {
		img, err := single(s, e)
		if err != nil {
			return "", fmt.Errorf("making the image for %s: %w", e.Platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: e.Platform.OS, Architecture: e.Platform.Arch},
		}})
	}
	annotated, ok := mutate.Annotations(index, annotations(s)).(v1.ImageIndex)
	if !ok {
		return "", errors.New("annotating the index gave no index")
	}
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("emptying %s: %w", folder, err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return "", fmt.Errorf("making the layout: %w", err)
	}
	name := map[string]string{"org.opencontainers.image.ref.name": s.Bare()}
	if err := path.AppendIndex(annotated, layout.WithAnnotations(name)); err != nil {
		return "", fmt.Errorf("writing the layout: %w", err)
	}
	digest, err := annotated.Digest()
	if err != nil {
		return "", fmt.Errorf("reading the digest: %w", err)
	}
	return digest.String(), nil
}

func single(s source.Source, e Executable) (v1.Image, error) {
	system, err := base()
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		what    string
		entries []archive.Entry
	}{
		{"certificates and the user nonroot", system},
		{"the controller", []archive.Entry{{Name: "tenon", Mode: 0o755, File: e.File}}},
	} {
		layer, err := layerOf(s.Time, part.entries)
		if err != nil {
			return nil, err
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{
			Created: v1.Time{Time: s.Time}, CreatedBy: "make image", Comment: part.what,
		}})
		if err != nil {
			return nil, fmt.Errorf("adding %s: %w", part.what, err)
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = e.Platform.OS, e.Platform.Arch,
		v1.Time{Time: s.Time}, config(s)
	if img, err = mutate.ConfigFile(img, file); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	annotated, ok := mutate.Annotations(img, annotations(s)).(v1.Image)
	if !ok {
		return nil, errors.New("annotating the image gave no image")
	}
	return annotated, nil
}

// config has the subcommand in the entry point: a chart that gives no command, as the contract's, runs the controller,
// and what a chart gives as arguments are the controller's flags.
func config(s source.Source) v1.Config {
	return v1.Config{
		Entrypoint: []string{"/tenon", "controller"},
		User:       fmt.Sprintf("%d:%d", user, user),
		WorkingDir: "/home/nonroot",
		Env:        []string{"PATH=/", "HOME=/home/nonroot"},
		Labels:     annotations(s),
	}
}

func annotations(s source.Source) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":         "tenon",
		prefix + "description":   "Just-in-time nodes for Kubernetes",
		prefix + "url":           "https://github.com/tenon-sh/tenon",
		prefix + "source":        "https://github.com/tenon-sh/tenon",
		prefix + "documentation": "https://github.com/tenon-sh/tenon/blob/main/README.md",
		prefix + "licenses":      "Apache-2.0",
		prefix + "version":       s.Bare(),
		prefix + "revision":      s.Commit,
		prefix + "created":       s.Time.Format(time.RFC3339),
	}
}

func layerOf(when time.Time, entries []archive.Entry) (v1.Layer, error) {
	var content bytes.Buffer
	if err := archive.Tar(&content, when, entries); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	return layer, nil
}

// Images reads a layout that Write has made: each platform's image.
func Images(folder string) (map[string]v1.Image, error) {
	root, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the layout: %w", err)
	}
	top, err := root.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		return nil, fmt.Errorf("the layout in %s has not one image but %v: %w", folder, top, err)
	}
	index, err := root.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		return nil, fmt.Errorf("reading the image's index: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the image's index: %w", err)
	}
	out := map[string]v1.Image{}
	for _, m := range manifest.Manifests {
		img, err := index.Image(m.Digest)
		if err != nil {
			return nil, fmt.Errorf("reading an image: %w", err)
		}
		out[m.Platform.OS+"/"+m.Platform.Architecture] = img
	}
	return out, nil
}
