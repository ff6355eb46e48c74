package logging

import (
	"slices"

	"go.uber.org/zap/zapcore"
)

// uniqueKeys is a zap core whose lines have each key once. Readers of JSON keep either the first or the last of two, or
// refuse the line, so what a pipeline shows would be a matter of luck. A logger that is handed on collects keys on its
// way, such as the object that a controller works on, so nobody who logs can know them all. The value nearest to the
// line counts. A key that the line has of itself, such as "message", gets an underscore.
type uniqueKeys struct {
	zapcore.Core
	encoding *zapcore.EncoderConfig
	with     []zapcore.Field
}

// With implements zapcore.Core. The fields are kept here, where they can still be replaced.
func (u *uniqueKeys) With(fields []zapcore.Field) zapcore.Core {
	return &uniqueKeys{Core: u.Core, encoding: u.encoding, with: slices.Concat(u.with, fields)}
}

// Check implements zapcore.Core. Whether the line is written is for the core below to say, which may leave out
// repetitions.
func (u *uniqueKeys) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if u.Core.Check(entry, nil) == nil {
		return checked
	}
	return checked.AddCore(entry, u)
}

// Write implements zapcore.Core.
func (u *uniqueKeys) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	own := u.own(&entry)
	out := make([]zapcore.Field, 0, len(u.with)+len(fields))
	for _, field := range slices.Concat(u.with, fields) {
		if field.Type == zapcore.SkipType {
			continue
		}
		if slices.Contains(own, field.Key) {
			field.Key += "_"
		}
		if at := slices.IndexFunc(out, func(other zapcore.Field) bool { return other.Key == field.Key }); at >= 0 {
			out[at] = field
		} else {
			out = append(out, field)
		}
	}
	return u.Core.Write(entry, out)
}

// own are the keys that the encoder writes by itself.
func (u *uniqueKeys) own(entry *zapcore.Entry) []string {
	out := []string{u.encoding.TimeKey, u.encoding.LevelKey, u.encoding.MessageKey}
	if entry.LoggerName != "" {
		out = append(out, u.encoding.NameKey)
	}
	if entry.Caller.Defined {
		out = append(out, u.encoding.CallerKey)
	}
	return out
}
