package image

import (
	"archive/tar"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/tenon-sh/tenon/release/internal/compile"
	"github.com/tenon-sh/tenon/release/internal/source"
)

var errStop = errors.New("no more entries")

// made writes an image of two small files that stand for executables.
func made(t *testing.T, s source.Source) (folder, digest string) {
	t.Helper()
	var executables []Executable
	for _, p := range compile.Nodes() {
		file := filepath.Join(t.TempDir(), "tenon")
		if err := os.WriteFile(file, []byte("an executable for "+p.String()), 0o700); err != nil {
			t.Fatal(err)
		}
		executables = append(executables, Executable{Platform: p, File: file})
	}
	folder = filepath.Join(t.TempDir(), "image")
	digest, err := Write(folder, s, executables)
	if err != nil {
		t.Fatal(err)
	}
	return folder, digest
}

func sample() source.Source {
	return source.Source{Version: "v1.2.3", Commit: "0123456789", Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
}

func TestTheSameInputGivesTheSameDigest(t *testing.T) {
	_, first := made(t, sample())
	_, second := made(t, sample())
	if first != second {
		t.Errorf("%s and then %s", first, second)
	}
	later := sample()
	later.Time = later.Time.Add(time.Hour)
	if _, other := made(t, later); other == first {
		t.Error("another commit has the same digest")
	}
}

func TestTheImageIsSound(t *testing.T) {
	folder, _ := made(t, sample())
	images, err := Images(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(images) != 2 {
		t.Fatalf("%d images, want one each for amd64 and arm64", len(images))
	}
	for platform, img := range images {
		if err := validate.Image(img); err != nil {
			t.Errorf("%s: %v", platform, err)
		}
		file, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := file.OS + "/" + file.Architecture; got != platform {
			t.Errorf("%s says it is for %s", platform, got)
		}
		if !slices.Equal(file.Config.Entrypoint, []string{"/tenon", "controller"}) || len(file.Config.Cmd) != 0 {
			t.Errorf("%s runs %v %v", platform, file.Config.Entrypoint, file.Config.Cmd)
		}
		if file.Config.User != "65532:65532" || file.Config.Labels["org.opencontainers.image.version"] != "1.2.3" {
			t.Errorf("%s: user %s, labels %v", platform, file.Config.User, file.Config.Labels)
		}
		checkFiles(t, platform, img)
	}
}

// checkFiles looks at what a container would see: the executable, and no other program.
func checkFiles(t *testing.T, platform string, img v1.Image) {
	t.Helper()
	flat := mutate.Extract(img)
	defer flat.Close()
	names := map[string]*tar.Header{}
	r := tar.NewReader(flat)
	for {
		header, content, err := next(r)
		if errors.Is(err, errStop) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names[header.Name] = header
		switch header.Name {
		case "tenon":
			if want := "an executable for " + platform; string(content) != want {
				t.Errorf("%s holds %q", platform, content)
			}
		case certificatesPath:
			checkRoots(t, content)
		}
		if header.Typeflag == tar.TypeReg && header.Mode&0o111 != 0 && header.Name != "tenon" {
			t.Errorf("%s can be run in the image", header.Name)
		}
		if header.Typeflag == tar.TypeReg && header.Mode&0o022 != 0 {
			t.Errorf("%s can be changed in the image: mode %o", header.Name, header.Mode)
		}
	}
	for _, want := range []string{"tenon", "etc/passwd", "etc/group", certificatesPath, "tmp"} {
		if names[want] == nil {
			t.Errorf("%s is missing; there are %v", want, names)
		}
	}
}

func next(r *tar.Reader) (*tar.Header, []byte, error) {
	header, err := r.Next()
	if errors.Is(err, io.EOF) {
		return nil, nil, errStop
	}
	if err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(r)
	return header, content, err
}

func checkRoots(t *testing.T, text []byte) {
	t.Helper()
	var subjects []string
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		subjects = append(subjects, certificate.Subject.CommonName)
	}
	if len(subjects) < 100 || !slices.Contains(subjects, "Amazon Root CA 1") {
		t.Errorf("%d certificates: %v", len(subjects), subjects)
	}
}
