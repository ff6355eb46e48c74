package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sourceKey names a build by everything that decides its outcome: the sources
// of the module, the compiler and the flags.
func sourceKey(source, identity string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00%s\x00", identity, strings.Join(buildFlags(), "\x00"))
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != source && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !isBuildInput(entry.Name()) {
			return nil
		}
		relative, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		return addFile(sum, path, filepath.ToSlash(relative))
	})
	if err != nil {
		return "", fmt.Errorf("read the sources of the lab: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:24], nil
}

func isBuildInput(name string) bool {
	switch {
	case strings.HasPrefix(name, "."), strings.HasSuffix(name, "_test.go"):
		return false
	case name == "go.mod", name == "go.sum":
		return true
	}
	extension := filepath.Ext(name)
	return extension == ".go" || extension == ".yaml"
}

func addFile(sum io.Writer, path, name string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(sum, "%s\x00%d\x00", name, len(content))
	_, err = sum.Write(content)
	return err
}
