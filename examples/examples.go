// Package examples carries the manifests of this folder inside the binary, so that the demo shows exactly the files
// that people can use. It stands beside the API: it touches nothing and imports only the standard library.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed kwok/*.yaml aws/*.yaml
var manifests embed.FS

// FS returns the manifests, under the paths that they have in this folder.
func FS() fs.FS { return manifests }
