package family

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
)

// MaxUserData is how many bytes of user data EC2 takes, counted before they are encoded as base64.
const MaxUserData = 16 * 1024

// TooLargeError says that user data is more than EC2 takes.
type TooLargeError struct {
	// Bytes is its size, and Packed its size after compression, 0 if the image can't unpack it.
	Bytes, Packed int
}

func (e *TooLargeError) Error() string {
	packed := ""
	if e.Packed > 0 {
		packed = fmt.Sprintf(" (%d when compressed)", e.Packed)
	}
	return fmt.Sprintf("user data is %d bytes%s and EC2 takes %d; shorten spec.userData, for instance by a script "+
		"that downloads the rest",
		e.Bytes, packed, MaxUserData)
}

// Encode makes of user data what EC2's API takes: base64. If it is more than EC2 allows and the family's images can
// unpack it, it is compressed first.
func (f Family) Encode(userData string) (string, error) {
	data := []byte(userData)
	if len(data) > MaxUserData {
		if !f.unpacks {
			return "", &TooLargeError{Bytes: len(data)}
		}
		packed, err := pack(data)
		if err != nil {
			return "", err
		}
		if len(packed) > MaxUserData {
			return "", &TooLargeError{Bytes: len(data), Packed: len(packed)}
		}
		data = packed
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// pack compresses with gzip. The result depends on the bytes only: it has no name and no time in it.
func pack(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress user data: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return nil, fmt.Errorf("compress user data: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress user data: %w", err)
	}
	return out.Bytes(), nil
}
