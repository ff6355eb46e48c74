package archive

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The same content gives the same bytes, whenever and wherever its files were made.
func TestArchivesAreReproducible(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	first, second := t.TempDir(), t.TempDir()
	for i, folder := range []string{first, second} {
		file := filepath.Join(folder, "tenon")
		if err := os.WriteFile(file, bytes.Repeat([]byte("x"), 100_000), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Unix(int64(i)*1e6, 0), time.Unix(int64(i)*1e6, 0)); err != nil {
			t.Fatal(err)
		}
		entries := []Entry{{Name: "tenon", Mode: 0o755, File: file}, {Name: "LICENSE", Mode: 0o644,
			Text: []byte("free")}}
		out := t.TempDir()
		for _, err := range []error{
			TarGz(filepath.Join(out, "a.tar.gz"), when, entries), Zip(filepath.Join(out, "a.zip"), when, entries),
			Folder(filepath.Join(out, "a.tar"), folder, when), Checksums(out, "SHA256SUMS"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(filepath.Join(out, "SHA256SUMS"), filepath.Join(folder, "SHA256SUMS")); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sha256sum", "-c", filepath.Join(folder, "SHA256SUMS"))
		cmd.Dir = out
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("sha256sum does not agree: %v\n%s", err, text)
		}
	}
	a, err := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(second, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(a, []byte("\n")) != 3 || !bytes.Equal(a, b) {
		t.Errorf("the archives differ:\n%s\n%s", a, b)
	}
}

func TestTarKeepsModesAndOwners(t *testing.T) {
	var out bytes.Buffer
	err := Tar(&out, time.Unix(7, 0), []Entry{{Name: "tmp/", Mode: os.ModeSticky | 0o777}, {Name: "home", Mode: 0o640,
		Owner: 65532, Text: []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(&out)
	folder, err := r.Next()
	if err != nil || folder.Typeflag != tar.TypeDir || folder.Mode != 0o1777 {
		t.Errorf("%+v, %v", folder, err)
	}
	file, err := r.Next()
	if err != nil || file.Uid != 65532 || file.Gid != 65532 || file.Mode != 0o640 || file.ModTime.Unix() != 7 {
		t.Errorf("%+v, %v", file, err)
	}
}
