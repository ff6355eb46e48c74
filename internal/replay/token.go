package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
)

func (d *decoder) scalar(v reflect.Value) error {
	token, err := d.json.Token()
	if err != nil {
		return err
	}
	bad := fmt.Errorf("found %v, and expected %s", token, v.Type())
	switch token := token.(type) {
	case bool:
		if v.Kind() != reflect.Bool {
			return bad
		}
		v.SetBool(token)
	case json.Number:
		return number(v, token.String(), bad)
	case string:
		switch {
		case v.Kind() == reflect.String:
			v.SetString(token)
			return d.charge(int64(len(token)))
		case v.CanFloat():
			f, err := strconv.ParseFloat(token, 64)
			if err != nil || !math.IsInf(f, 0) && !math.IsNaN(f) {
				return bad
			}
			v.SetFloat(f)
		default:
			return bad
		}
	default:
		return bad
	}
	return nil
}

func number(v reflect.Value, text string, bad error) error {
	switch {
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return bad
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return bad
		}
		v.SetUint(n)
	case v.CanFloat():
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return bad
		}
		v.SetFloat(f)
	default:
		return bad
	}
	return nil
}

// delim reads a brace or a bracket.
func (d *decoder) delim(want json.Delim) error {
	token, err := d.json.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if token != want {
		return fmt.Errorf("found %v, and expected %v", token, want)
	}
	return nil
}

// key reads the name of what comes next, which must be this one.
func (d *decoder) key(want string) error {
	name, err := d.text()
	if err == nil && name != want {
		err = fmt.Errorf("found %q, and expected %q", name, want)
	}
	return err
}

func (d *decoder) text() (string, error) {
	token, err := d.json.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	s, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("found %v, and expected a name", token)
	}
	return s, d.charge(int64(len(s)))
}
