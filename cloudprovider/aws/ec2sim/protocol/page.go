package protocol

import (
	"encoding/base64"
	"strconv"
)

// Page cuts a list: the part that begins at token (empty: the beginning), at most size long, and the token of the next
// part (empty: there is none). It says false for a token that it did not give out.
func Page[T any](all []T, token string, size int) (part []T, next string, ok bool) {
	from := 0
	if token != "" {
		text, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return nil, "", false
		}
		if from, err = strconv.Atoi(string(text)); err != nil || from < 0 {
			return nil, "", false
		}
	}
	from = min(from, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		next = base64.URLEncoding.EncodeToString([]byte(strconv.Itoa(to)))
	}
	return all[from:to], next, true
}
