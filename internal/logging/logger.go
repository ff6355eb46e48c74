// Package logging writes the log: lines of JSON that have each key once, in the shape that people's log pipelines
// expect.
//
// It stands on floor 4, above version, which each line names. It opens the files that the log goes to.
package logging

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tenon-sh/tenon/internal/version"
)

// loggerName is the key "logger" of all lines, the first part of it where a part of the program adds its own name.
const loggerName = "controller"

// Options are the settings of the log.
type Options struct {
	// Level is debug, info or error; empty for info.
	Level string
	// Output and Errors are where logs, and the logger's own errors, go, separated by commas.
	Output, Errors string
}

// New writes JSON lines. flush is called at the end.
func New(o Options) (log logr.Logger, flush func(), err error) {
	level, err := zapcore.ParseLevel(cmp.Or(o.Level, "info"))
	if err != nil {
		return logr.Logger{}, nil, fmt.Errorf("--log-level: %w", err)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.TimeKey, encoding.MessageKey = "time", "message"
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoding.EncodeLevel = zapcore.CapitalLevelEncoder
	logger, err := zap.Config{
		Level: zap.NewAtomicLevelAt(level), Encoding: "json", EncoderConfig: encoding,
		DisableCaller: level != zapcore.DebugLevel, DisableStacktrace: true,
		Sampling:         &zap.SamplingConfig{Initial: 100, Thereafter: 100},
		OutputPaths:      strings.Split(o.Output, ","),
		ErrorOutputPaths: strings.Split(o.Errors, ","),
	}.Build(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return &uniqueKeys{Core: core, encoding: &encoding}
	}), zap.Fields(zap.String("commit", version.Commit())))
	if err != nil {
		return logr.Logger{}, nil, fmt.Errorf("opening the log (--log-output-paths, --log-error-output-paths): %w", err)
	}
	return zapr.NewLogger(logger.Named(loggerName)), func() { _ = logger.Sync() }, nil
}

// SetForLibraries has the libraries log like us: what client-go says of the lease or of a watch would otherwise be
// plain text on standard error, in the middle of lines of JSON.
func SetForLibraries(log logr.Logger) {
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}
