// Package crds carries the CustomResourceDefinitions of Tenon inside the binary, so that the demo, the tests and the
// lab install exactly what the chart installs. It stands beside the API: it touches nothing and imports only the
// standard library. The manifests are generated from api (make generate); don't edit them.
package crds

import (
	"embed"
	"io/fs"
)

//go:embed templates/*.yaml
var templates embed.FS

// FS returns the manifests, one file a kind, at the root of a file system.
func FS() fs.FS {
	sub, err := fs.Sub(templates, "templates")
	if err != nil {
		// The directory is part of the embed pattern above, so a build without it does not compile.
		panic(err)
	}
	return sub
}
