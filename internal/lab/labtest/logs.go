package labtest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// KeyTwice is a key that an object in the JSON text has twice; empty if each is there once. An error says that the text
// is no JSON.
func KeyTwice(text string) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return keyTwice(decoder)
}

// keyTwice reads one value.
func keyTwice(decoder *json.Decoder) (string, error) {
	token, err := decoder.Token()
	if err != nil {
		return "", fmt.Errorf("reading JSON: %w", err)
	}
	open, nested := token.(json.Delim)
	if !nested {
		return "", nil
	}
	seen := map[string]bool{}
	for decoder.More() {
		if open == '{' {
			key, err := decoder.Token()
			if err != nil {
				return "", fmt.Errorf("reading JSON: %w", err)
			}
			name, _ := key.(string)
			if seen[name] {
				return name, nil
			}
			seen[name] = true
		}
		if twice, err := keyTwice(decoder); twice != "" || err != nil {
			return twice, err
		}
	}
	_, err = decoder.Token()
	return "", err
}
