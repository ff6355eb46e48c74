package query

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// namespace is EC2's, with the version of its API.
const namespace = "http://ec2.amazonaws.com/doc/2016-11-15/"

// Encode writes the response of an action. A member that is nil or empty is left out; a list that is empty but not nil
// is an empty element.
func (n *Names) Encode(action, requestID string, output any) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s<%sResponse xmlns=%q><requestId>%s</requestId>", xml.Header, action, namespace, requestID)
	if err := n.writeStruct(&b, reflect.ValueOf(output).Elem()); err != nil {
		return nil, fmt.Errorf("writing the response of %s: %w", action, err)
	}
	fmt.Fprintf(&b, "</%sResponse>", action)
	return b.Bytes(), nil
}

// Error writes an error response.
func Error(requestID, code, message string) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header + "<Response><Errors><Error><Code>")
	escape(&b, code)
	b.WriteString("</Code><Message>")
	escape(&b, message)
	b.WriteString("</Message></Error></Errors><RequestID>" + requestID + "</RequestID></Response>")
	return b.Bytes()
}

func (n *Names) writeStruct(b *bytes.Buffer, v reflect.Value) error {
	for _, m := range n.membersOf(v.Type()) {
		if err := n.write(b, m.response, m.element, v.Field(m.index)); err != nil {
			return fmt.Errorf("%s: %w", m.response, err)
		}
	}
	return nil
}

func (n *Names) write(b *bytes.Buffer, name, element string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return n.wrap(b, name, v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		b.WriteString("<" + name + ">")
		for i := range v.Len() {
			if err := n.wrap(b, element, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteString("</" + name + ">")
		return nil
	case reflect.String:
		if v.Len() == 0 {
			return nil // an enumeration that was not set
		}
	}
	return n.wrap(b, name, v)
}

// wrap writes one element with its content.
func (n *Names) wrap(b *bytes.Buffer, name string, v reflect.Value) error {
	b.WriteString("<" + name + ">")
	if err := n.content(b, v); err != nil {
		return err
	}
	b.WriteString("</" + name + ">")
	return nil
}

func (n *Names) content(b *bytes.Buffer, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			b.WriteString(at.UTC().Format("2006-01-02T15:04:05.000Z"))
			return nil
		}
		return n.writeStruct(b, v)
	case reflect.String:
		escape(b, v.String())
	case reflect.Bool:
		b.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Int32, reflect.Int64:
		b.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Float32, reflect.Float64:
		b.WriteString(strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits()))
	default:
		return fmt.Errorf("no element for a %s", v.Type())
	}
	return nil
}

func escape(b *bytes.Buffer, text string) {
	xml.EscapeText(b, []byte(text)) //nolint:errcheck // a buffer takes everything
}
