// Package archive writes tar and zip archives and checksums whose bytes depend on the content alone.
package archive

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is a file or a folder of an archive; a folder's name ends in a slash.
type Entry struct {
	Name string
	Mode fs.FileMode
	// Owner is the number of the user and of the group.
	Owner int
	// Text is the content. If it is nil, File is where the content comes from.
	Text []byte
	File string
}

// Tar writes entries in the order that they have, all with the same time.
func Tar(out io.Writer, when time.Time, entries []Entry) error {
	w := tar.NewWriter(out)
	for _, e := range entries {
		content, size, err := e.open()
		if err != nil {
			return err
		}
		header := &tar.Header{
			Name: e.Name, Mode: tarMode(e.Mode), Size: size, Uid: e.Owner, Gid: e.Owner,
			ModTime:  when.Truncate(time.Second),
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(e.Name, "/") {
			header.Typeflag = tar.TypeDir
		}
		err = w.WriteHeader(header)
		if err == nil {
			_, err = io.Copy(w, content)
		}
		if _ = content.Close(); err != nil {
			return fmt.Errorf("writing %s into the archive: %w", e.Name, err)
		}
	}
	return w.Close()
}

func tarMode(mode fs.FileMode) int64 {
	out := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		out |= 0o1000
	}
	return out
}

func (e Entry) open() (io.ReadCloser, int64, error) {
	if e.File == "" || e.Text != nil {
		return io.NopCloser(strings.NewReader(string(e.Text))), int64(len(e.Text)), nil
	}
	file, err := os.Open(e.File)
	if err != nil {
		return nil, 0, fmt.Errorf("reading what goes into the archive: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, 0, fmt.Errorf("reading what goes into the archive: %w", err)
	}
	return file, info.Size(), nil
}

// TarGz writes a compressed tar archive to a file.
func TarGz(path string, when time.Time, entries []Entry) error {
	return create(path, func(out io.Writer) error {
		w, err := gzip.NewWriterLevel(out, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := Tar(w, when, entries); err != nil {
			return err
		}
		return w.Close()
	})
}

// Zip writes a zip archive to a file.
func Zip(path string, when time.Time, entries []Entry) error {
	return create(path, func(out io.Writer) error {
		w := zip.NewWriter(out)
		for _, e := range entries {
			header := &zip.FileHeader{Name: e.Name, Method: zip.Deflate, Modified: when.UTC()}
			header.SetMode(e.Mode)
			part, err := w.CreateHeader(header)
			if err != nil {
				return fmt.Errorf("writing %s into the archive: %w", e.Name, err)
			}
			content, _, err := e.open()
			if err != nil {
				return err
			}
			_, err = io.Copy(part, content)
			if _ = content.Close(); err != nil {
				return fmt.Errorf("writing %s into the archive: %w", e.Name, err)
			}
		}
		return w.Close()
	})
}

// Folder writes what is below a folder into a tar archive, in the order of the names.
func Folder(path, folder string, when time.Time) error {
	var entries []Entry
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == folder {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		e := Entry{Name: filepath.ToSlash(name), Mode: 0o644, File: file}
		if d.IsDir() {
			e = Entry{Name: e.Name + "/", Mode: 0o755}
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing %s: %w", folder, err)
	}
	return create(path, func(out io.Writer) error { return Tar(out, when, entries) })
}

func create(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("making an archive: %w", err)
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return file.Close()
}

// Checksums writes the SHA-256 of every file in a folder to a file there, in the form that sha256sum -c reads.
func Checksums(folder, name string) error {
	list, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("listing what to sum up: %w", err)
	}
	var lines []string
	for _, d := range list {
		if !d.Type().IsRegular() || d.Name() == name {
			continue
		}
		sum, err := Sum(filepath.Join(folder, d.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, sum+"  "+d.Name()+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	return os.WriteFile(filepath.Join(folder, name), []byte(strings.Join(lines, "")), 0o644)
}

// Sum is the SHA-256 of a file in hexadecimal digits.
func Sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("summing up: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("summing up %s: %w", path, err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}
